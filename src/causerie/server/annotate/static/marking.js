// Marking text: by dragging over it, by clicking a turn, or with the keyboard alone.
import { make, tell } from "/static/dom.js";
import { conversation, cut, length, markedText, same, toPoints, touch, words } from "./marks.js";

export class Marking {
  constructor(task, act) {
    Object.assign(this, { task, act, label: task.labels[0], turn: null, clause: null });
    document.addEventListener("selectionchange", () => this.offer());
  }

  // The page of an item; `view` is what the server shows, `state` how it stands.
  show(place, view, state) {
    const fresh = this.view?.id !== view.id;
    Object.assign(this, { view, state });
    if (fresh) {
      this.turn = Math.max(0, view.markable - 1);
      this.clause = null;
    }
    this.list = make("ol", { class: "talk", on: { mouseup: () => setTimeout(() => this.drag()) } },
      ...view.turns.map((turn, number) => this.row(turn, number)));
    this.offered = make("button", {
      type: "button", class: "offered", hidden: true,
      on: { pointerdown: (event) => event.preventDefault(), click: () => this.selected() },
    }, "Mark the selected text");
    place.replaceChildren(...this.head(), this.list, this.offered, ...this.below());
    if (fresh) window.scrollTo(0, 0);
  }

  head() {
    if (this.task.kind !== "labels") {
      return [make("h1", {}, "What made the last speaker say this?")];
    }
    const buttons = this.task.labels.map((label, number) =>
      make("button", {
        type: "button", class: `label${number % 6}`, "aria-pressed": String(label === this.label),
        on: { click: () => this.choose(number) },
      }, make("kbd", {}, number + 1), " ", label));
    return [make("h1", {}, "What is said where?"), make("p", { class: "fields labels" }, ...buttons)];
  }

  choose(number) {
    this.label = this.task.labels[number] ?? this.label;
    this.act();
  }

  // The nearest turn before the response is number 1.
  number(turn) {
    return this.task.kind === "causes" ? this.view.markable - turn : null;
  }

  row(turn, number) {
    const free = number < this.view.markable && !this.view.closed && !this.state.finished;
    const marks = this.state.marks.filter((mark) => mark.turn === number);
    const key = this.number(number);
    const answers = this.task.kind === "causes" && number === this.view.markable;
    const text = make("p", { class: "text", dir: "auto" },
      ...markedText(turn, marks, this.task.labels));
    const chips = marks.map((mark) =>
      make("button", {
        type: "button", class: "chip", disabled: !free,
        "aria-label": `Remove: ${cut(turn.text, mark)}`,
        on: { click: () => this.act("unmark", { mark: mark.key }) },
      }, this.task.kind === "labels" ? `${mark.label}: ` : "", shorter(cut(turn.text, mark)), " ×"));
    const item = make("li", {
      class: ["turn", answers ? "response" : "", free ? "free" : "", marks.length ? "has" : ""].join(" "),
      "data-turn": number, tabindex: free && number === this.turn ? 0 : -1,
      "aria-label": answers ? "The response" : `Turn ${number + 1}${marks.length ? ", marked" : ""}`,
    },
      make("span", { class: "who" }, make("bdi", {}, turn.speaker),
        free && key !== null && key <= 9 ? make("kbd", {}, key) : null,
        answers ? make("span", { class: "tag" }, "response") : null),
      text,
      free && number === this.turn && this.clause !== null ? this.outline(turn) : null,
      chips.length ? make("div", { class: "chips" }, ...chips) : null);
    return item;
  }

  // Show which part the keyboard is at.
  outline(turn) {
    const [start, stop] = turn.clauses[this.clause];
    return make("p", { class: "at" }, "Enter: ", cut(turn.text, { start, stop }));
  }

  below() {
    const parts = [];
    if (this.state.none) {
      parts.push(make("p", { class: "lead" }, this.task.kind === "causes"
        ? "You said: there is no cause." : "You said: nothing fits."));
    }
    if (this.view.right) {
      parts.push(make("section", { class: "card feedback" },
        make("h2", {}, "What we would have marked"),
        make("p", {}, this.view.right.none ? "Nothing: there is no cause." : agrees(this.state, this.view.right)),
        conversation(this.view.turns, this.view.right.marks, this.task.labels,
          { response: this.task.kind === "causes" ? this.view.markable : -1 })));
    }
    if (this.view.others) {
      parts.push(make("h2", {}, "What others marked"), make("div", { class: "columns" },
        ...this.view.others.map((other) => this.other(other))));
    }
    return parts;
  }

  other(other) {
    const take = () => {
      const own = this.state.marks;
      const lacks = (marks) => (mark) => !marks.some((one) => same(one, mark));
      own.filter(lacks(other.marks)).forEach((mark) => this.act("unmark", { mark: mark.key }));
      other.marks.filter(lacks(own))
        .forEach(({ turn, start, stop, label }) => this.act("mark", { turn, start, stop, label }));
      if (other.none) this.act("none", {});
    };
    return make("section", { class: "card", "aria-label": other.name },
      make("h3", {}, other.name),
      conversation(this.view.turns, other.marks, this.task.labels,
        { response: this.task.kind === "causes" ? this.view.markable : -1 }),
      other.none ? make("p", {}, "“There is no cause.”") : null,
      other.comment ? make("p", { class: "quiet text" }, other.comment) : null,
      this.view.closed || this.state.finished ? null
        : make("button", { type: "button", on: { click: take } }, "Take these marks"));
  }

  get free() {
    return !this.view.closed && !this.state.finished;
  }

  // A stretch takes the place of those of its label that it touches; the same one again goes.
  mark(turn, start, stop) {
    const body = { turn, start, stop, label: this.label };
    const there = this.state.marks.find((mark) => same(mark, body));
    if (there) {
      this.act("unmark", { mark: there.key });
      return;
    }
    const instead = this.state.marks.filter((mark) => touch(mark, body)).map((mark) => mark.key);
    this.act("mark", instead.length ? { ...body, instead } : body);
  }

  whole(turn) {
    this.mark(turn, 0, length(this.view.turns[turn].text));
  }

  // Where the selection is in every turn that it touches.
  places() {
    const selection = window.getSelection();
    if (!selection.rangeCount || selection.isCollapsed) return [];
    const range = selection.getRangeAt(0);
    return [...this.list.children].flatMap((row, turn) => {
      const text = row.querySelector(".text");
      if (turn >= this.view.markable || !range.intersectsNode(text)) return [];
      const said = this.view.turns[turn].text;
      const before = document.createRange();
      const units = (container, offset, otherwise) => {
        if (!text.contains(container)) return otherwise;
        before.setStart(text, 0);
        before.setEnd(container, offset);
        return before.toString().length;
      };
      const first = units(range.startContainer, range.startOffset, 0);
      const last = units(range.endContainer, range.endOffset, said.length);
      const place = words(said, toPoints(said, first), toPoints(said, Math.min(last, said.length)));
      return place ? [{ turn, ...place }] : [];
    });
  }

  // The mouse was let go: over text that was dragged over, or after a click on a turn.
  drag() {
    if (!this.free) return;
    if (this.places().length) {
      this.selected();
      return;
    }
    const row = this.list.querySelector(".turn:hover");
    if (row && !this.list.querySelector(".chip:hover") && window.getSelection().isCollapsed) {
      const turn = Number(row.dataset.turn);
      if (turn < this.view.markable) {
        this.turn = turn;
        this.whole(turn);
      }
    }
  }

  selected() {
    const places = this.places();
    window.getSelection().removeAllRanges();
    places.forEach(({ turn, start, stop }) => this.mark(turn, start, stop));
  }

  // Fingers select without a mouse button that is let go.
  offer() {
    if (this.offered?.isConnected) this.offered.hidden = !this.free || !this.places().length;
  }

  key(event) {
    const { key } = event;
    if (!this.free) return false;
    const clauses = this.view.turns[this.turn].clauses;
    if (key === "ArrowUp" || key === "ArrowDown") {
      this.turn = Math.min(this.view.markable - 1, Math.max(0, this.turn + (key === "ArrowUp" ? -1 : 1)));
      this.clause = null;
      this.focus();
    } else if (key === "ArrowLeft" || key === "ArrowRight") {
      const step = key === "ArrowLeft" ? -1 : 1;
      const next = this.clause === null ? (step > 0 ? 0 : clauses.length - 1) : this.clause + step;
      this.clause = next < 0 || next >= clauses.length ? null : next;
      this.focus();
    } else if ((key === "Enter" || key === " ") && !event.target.closest("button, summary, a")) {
      if (this.clause === null) this.whole(this.turn);
      else this.mark(this.turn, ...clauses[this.clause]);
      this.focus();
    } else if (key === "0") {
      this.act("none", {});
    } else if (/^[1-9]$/.test(key)) {
      if (this.task.kind === "labels") this.choose(Number(key) - 1);
      else if (Number(key) <= this.view.markable) this.whole(this.view.markable - Number(key));
      else tell(`there is no turn ${key}`);
    } else {
      return false;
    }
    return true;
  }

  focus() {
    this.act();
    this.list.children[this.turn]?.focus();
  }
}

const shorter = (text) => (length(text) > 40 ? `${[...text].slice(0, 39).join("")}…` : text);

function agrees(state, right) {
  const missed = right.marks.filter((mark) => !state.marks.some((own) => touch(own, mark))).length;
  const more = state.marks.filter((mark) => !right.marks.some((own) => touch(own, mark))).length;
  if (!missed && !more) return "You found the same.";
  return `You missed ${missed}, and marked ${more} that we would not have.`;
}
