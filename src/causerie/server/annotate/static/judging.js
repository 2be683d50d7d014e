// Answering questions: about every reply of a conversation, about two responses, about the whole.
import { make, tell } from "/static/dom.js";
import { asked, conversation } from "./marks.js";

const VOTES = [["A", "A is better"], ["B", "B is better"], ["both good", "both good"],
  ["both bad", "both bad"]];

export class Judging {
  constructor(task, act) {
    Object.assign(this, { task, act, at: 0 });
  }

  show(place, view, state) {
    const fresh = this.view?.id !== view.id;
    Object.assign(this, { view, state });
    const turns = this.task.kind === "replies" ? view.asked : [null];
    this.questions = turns.flatMap((turn) => this.task.questions.map((question) => ({ turn, question })));
    if (fresh) this.at = Math.max(0, this.questions.findIndex((one) => !this.answered(one)));
    const blocks = { pairs: () => this.pair(), replies: () => this.replies(), dialogues: () => this.whole() };
    place.replaceChildren(...blocks[this.task.kind]());
    if (fresh) window.scrollTo(0, 0);
  }

  answered({ turn, question }) {
    return this.state.answers.get(asked(turn, question.name));
  }

  pair() {
    const cards = this.view.responses.map((text, number) =>
      make("section", { class: "card", "aria-label": `Response ${"AB"[number]}` },
        make("h2", {}, `Response ${"AB"[number]}`), make("p", { class: "text", dir: "auto" }, text)));
    return [make("h1", {}, "Which response is better?"), conversation(this.view.turns, [], []),
      make("div", { class: "columns" }, ...cards), this.fields(null)];
  }

  replies() {
    const list = make("ol", { class: "talk" }, ...this.view.turns.map((turn, number) => {
      const isAsked = this.view.asked.includes(number);
      return make("li", { class: isAsked ? "turn response" : "turn" },
        make("span", { class: "who" }, make("bdi", {}, turn.speaker)),
        make("p", { class: "text", dir: "auto" }, turn.text), isAsked ? this.fields(number) : null);
    }));
    return [make("h1", {}, "How good is every reply?"), list];
  }

  whole() {
    return [make("h1", {}, "How good is this conversation?"),
      conversation(this.view.turns, [], []), this.fields(null)];
  }

  fields(turn) {
    const own = this.questions.map((one, number) => ({ ...one, number })).filter((one) => one.turn === turn);
    return make("div", { class: "questions" }, ...own.map((one) => this.field(one)));
  }

  field({ turn, question, number }) {
    const value = this.state.answers.get(asked(turn, question.name));
    const choices = this.task.kind === "pairs" ? VOTES
      : Array.from({ length: question.scale }, (_, i) => [i + 1, ""]);
    const disabled = this.view.closed || this.state.finished;
    const buttons = choices.map(([choice, words], i) =>
      make("label", { class: "choice" },
        make("input", {
          type: "radio", name: `q${number}`, checked: value === choice, disabled,
          "aria-label": words || `${choice} of ${question.scale}`,
          on: { change: () => this.answer(number, choice) },
        }), words || String(choice), words ? make("kbd", {}, i + 1) : null));
    const ends = this.task.kind === "pairs" ? [] : question.ends;
    return make("fieldset", { class: number === this.at && !disabled ? "here" : "", "data-number": number },
      make("legend", {}, make("strong", {}, question.name), " ", question.text),
      ends.length ? make("span", { class: "quiet" }, ends[0]) : null, ...buttons,
      ends.length ? make("span", { class: "quiet" }, ends[1]) : null);
  }

  answer(number, value) {
    const { turn, question } = this.questions[number];
    this.at = Math.min(this.questions.length - 1, number + 1);
    this.act("answer", { turn, question: question.name, value });
    const here = document.querySelector(`[data-number="${this.at}"]`);
    here?.scrollIntoView({ block: "nearest" });
  }

  key(event) {
    const { key } = event;
    if (this.view.closed || this.state.finished) return false;
    if (key === "ArrowUp" || key === "ArrowDown") {
      if (event.target.matches("input")) return false;
      this.at = Math.min(this.questions.length - 1, Math.max(0, this.at + (key === "ArrowUp" ? -1 : 1)));
      this.act();
      document.querySelector(".here")?.scrollIntoView({ block: "nearest" });
      return true;
    }
    if (!/^[0-9]$/.test(key)) return false;
    const one = this.questions[this.at];
    const choices = this.task.kind === "pairs" ? VOTES.map(([vote]) => vote)
      : Array.from({ length: one.question.scale }, (_, i) => i + 1);
    const number = key === "0" ? 10 : Number(key);
    if (number > choices.length) tell(`there are ${choices.length} answers`);
    else this.answer(this.at, choices[number - 1]);
    return true;
  }
}
