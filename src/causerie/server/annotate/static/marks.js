// What an annotator has done, as events, and the state they add up to; texts with marks in them.
// The server has the same rules: causerie/annotation/marks.py.
import { make } from "/static/dom.js";

const UNDOABLE = new Set(["mark", "unmark", "none", "answer", "comment", "undo"]);

// A key that nobody else chooses; randomUUID is only there on https and on this machine.
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

// The events that stand: none that a later one takes back.
export function effective(events) {
  const gone = new Set();
  const kept = [];
  [...events].reverse().forEach((event) => {
    if (gone.has(event.key)) return;
    if (event.action === "undo") gone.add(event.body.event);
    else kept.push(event);
  });
  return kept.reverse();
}

export function lastUndoable(events) {
  return effective(events).filter((event) => UNDOABLE.has(event.action)).pop();
}

export const asked = (turn, question) => `${turn ?? ""}|${question}`;

export function stateOf(events, start) {
  const answers = new Map((start?.answers ?? []).map((a) => [asked(a.turn, a.question), a.value]));
  const state = {
    marks: [...(start?.marks ?? [])], none: start?.none ?? false, answers, comment: "",
    finished: false,
  };
  effective(events).forEach(({ key, action, body }) => {
    if (action === "mark") {
      const gone = body.instead ?? [];
      state.marks = state.marks.filter((mark) => !same(mark, body) && !gone.includes(mark.key));
      state.marks.push({ ...body, key });
      state.none = false;
    } else if (action === "unmark") {
      state.marks = state.marks.filter((mark) => mark.key !== body.mark);
    } else if (action === "none") {
      state.marks = [];
      state.none = true;
    } else if (action === "answer") {
      state.answers.set(asked(body.turn, body.question), body.value);
    } else if (action === "comment") {
      state.comment = body.text;
    } else if (action === "finish" || action === "reopen") {
      state.finished = action === "finish";
    }
  });
  state.marks.sort((a, b) => a.turn - b.turn || a.start - b.start || a.stop - b.stop);
  return state;
}

export const same = (a, b) =>
  a.turn === b.turn && a.start === b.start && a.stop === b.stop && a.label === b.label;

export const touch = (a, b) =>
  a.turn === b.turn && a.label === b.label && a.start < b.stop && b.start < a.stop;

// Places count characters as the server does; scripts count UTF-16 units.
export const toPoints = (text, units) => [...text.slice(0, units)].length;
export const toUnits = (text, points) => [...text].slice(0, points).join("").length;
export const length = (text) => [...text].length;
export const cut = (text, { start, stop }) => [...text].slice(start, stop).join("");

// Whole words without white space around them; null if there is nothing else.
export function words(text, start, stop) {
  const all = [...text];
  const inWord = (at) => at >= 0 && at < all.length && /[\p{L}\p{N}\p{M}_'’]/u.test(all[at]);
  while (start < stop && /\s/.test(all[start])) start += 1;
  while (stop > start && /\s/.test(all[stop - 1])) stop -= 1;
  if (start >= stop) return null;
  while (inWord(start) && inWord(start - 1)) start -= 1;
  while (inWord(stop - 1) && inWord(stop)) stop += 1;
  return { start, stop };
}

// The text of a turn, cut where marks begin and end.
export function markedText(turn, marks, labels = []) {
  const edges = new Set([0, length(turn.text)]);
  marks.forEach((mark) => edges.add(mark.start).add(mark.stop));
  const places = [...edges].sort((a, b) => a - b);
  return places.slice(1).map((stop, i) => {
    const start = places[i];
    const here = marks.filter((mark) => mark.start <= start && mark.stop >= stop);
    const text = cut(turn.text, { start, stop });
    if (!here.length) return document.createTextNode(text);
    const number = Math.max(0, labels.indexOf(here[here.length - 1].label)) % 6;
    return make("mark", { class: `label${number}`, title: here.map((m) => m.label).join(", ") }, text);
  });
}

// A conversation to be read, with marks of somebody.
export function conversation(turns, marks, labels, options = {}) {
  const items = turns.map((turn, number) =>
    make("li", { class: number === options.response ? "turn response" : "turn" },
      make("span", { class: "who" }, make("bdi", {}, turn.speaker)),
      make("p", { class: "text", dir: "auto" },
        ...markedText(turn, marks.filter((mark) => mark.turn === number), labels))));
  return make("ol", { class: "talk" }, ...items);
}
