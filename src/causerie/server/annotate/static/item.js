// All work on one item, side by side; the lead may decide.
import { at, get, make, named, send, tell } from "/static/dom.js";
import { conversation } from "./marks.js";

const number = Number(new URLSearchParams(location.search).get("item"));
const API = `/annotate/api/lead/items/${number}`;

function column(item, work) {
  const answers = work.answers.map((one) =>
    make("li", {}, one.turn === null ? "" : `turn ${one.turn + 1}, `, `${one.question}: ${one.value}`));
  return make("section", { class: "card", "aria-label": work.name },
    make("h2", {}, named(work.name)),
    make("p", {}, make("span", { class: "tag" }, work.round), " ",
      make("span", { class: "tag" }, work.finished ? "finished" : "open"), " ",
      work.counts && item.markable ? make("span", { class: "tag" }, "counts") : null,
      ` ${Math.round(work.seconds)} s`),
    item.markable ? conversation(item.turns, work.marks, [],
      { response: item.kind === "causes" ? item.markable : -1 }) : null,
    work.none ? make("p", {}, "“There is nothing to mark.”") : null,
    answers.length ? make("ul", {}, ...answers) : null,
    work.comment ? make("p", { class: "quiet text" }, work.comment) : null);
}

async function decide() {
  try {
    const { work } = await send("POST", `${API}/adjudicate`);
    location.assign(`/annotate/#${work}`);
  } catch (error) {
    tell(error.message);
  }
}

try {
  const item = await get(API);
  at("title").replaceChildren(named(item.name));
  at("actions").replaceChildren(
    make("span", { class: "tag" }, item.settled ? "settled" : "open"),
    ...(item.markable ? [make("button", { type: "button", id: "decide", class: "primary", on: { click: decide } }, "Decide")] : []));
  const head = item.markable ? [] : [make("section", { class: "card" },
    conversation(item.turns, [], []),
    ...item.responses.map((one, i) => make("p", { class: "text" }, `${"AB"[i]} (`, named(one.system), `): ${one.text}`)))];
  at("works").replaceChildren(...head, ...item.works.map((work) => column(item, work)));
} catch (error) {
  tell(error.message);
}
