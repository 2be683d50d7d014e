// The guideline with its worked examples, and the keys.
import { make } from "/static/dom.js";
import { conversation, length } from "./marks.js";

const KEYS = {
  marked: [
    ["↑ ↓", "another turn"], ["← →", "its sentences and parts"], ["Enter", "mark it, or remove the mark"],
    ["1 … 9", "mark a turn by its number"], ["0", "no cause"],
  ],
  labels: [["1 … 9", "choose a label"], ["↑ ↓ ← →", "another turn, or part"], ["Enter", "mark it"],
    ["0", "nothing fits"]],
  judged: [["1 … 9", "answer the outlined question"], ["↑ ↓", "another question"]],
  all: [["u", "undo"], ["c", "comment"], ["f", "finish, and go on"], ["n  p", "next, previous"],
    ["g", "guideline"]],
};

export function guide(guideline, kind) {
  const keys = kind === "causes" ? KEYS.marked : kind === "labels" ? KEYS.labels : KEYS.judged;
  const list = [...keys, ...KEYS.all].map(([key, does]) =>
    make("div", {}, make("dt", {}, make("kbd", {}, key)), make("dd", {}, does)));
  return make("details", { open: window.innerWidth > 900, id: "guideline" },
    make("summary", {}, "Guideline"),
    ...guideline.text.map((part) => make("p", { class: "said" }, part)),
    ...guideline.examples.map(example),
    make("h2", {}, "Keys"),
    make("dl", { class: "keys" }, ...list));
}

function example({ turns, response, marks, why }, number) {
  const said = [...turns, response].map(([speaker, text]) => ({ speaker, text }));
  const placed = marks.map(([turn, text]) => {
    const start = length(said[turn].text.slice(0, said[turn].text.indexOf(text)));
    return { turn, start, stop: start + length(text), label: "cause" };
  });
  return make("details", { class: "example" },
    make("summary", {}, `Example ${number + 1}`),
    conversation(said, placed, ["cause"], { response: turns.length }),
    make("p", { class: "quiet" }, why));
}
