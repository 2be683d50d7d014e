// Two runs, or two systems, side by side: which is better, and the turns that changed most.
import { at, figure, make, named } from "/static/dom.js";
import { intervals } from "./charts.js";
import { address, ask, bar, chosen, go, link, offer, page } from "./explore.js";

const SIDES = ["a", "b"];

function reply(row, run, metric) {
  const href = link("conversation", { run, dialogue: row.dialogue.name, file: row.file, system: row.system.name, turn: row.turn, metric });
  const value = row.scores[metric];
  const empty = row.text !== null && !row.text.trim();
  return make(
    "div", { class: "side" },
    make("p", { class: "text", dir: "auto" }, row.text === null ? "(its text is not in the table)" : empty ? "(empty)" : row.text),
    make("p", { class: "meta" }, make("b", {}, value === null ? row.reasons[metric] : figure(value)), named(row.system.label), make("a", { href }, "read")),
  );
}

function pair(change, told) {
  const { name } = told.metric;
  const gap = change.to - change.from;
  const better = told.better === "lower" ? gap < 0 : gap > 0;
  const word = gap === 0 ? "same" : !told.better ? "moved" : better ? "better" : "worse";
  return make(
    "li", {},
    make("p", { class: "meta" }, make("b", { class: word }, `${gap > 0 ? "+" : ""}${figure(gap)}`), make("span", {}, word), named(change.a.dialogue.label), change.a.turn === null ? "" : `turn ${change.a.turn}`),
    change.a.before ? make("p", { class: "before text", dir: "auto" }, change.a.before) : null,
    make("div", { class: "two" }, reply(change.a, told.a.name, name), reply(change.b, told.b.name, name)),
  );
}

function show(parameters, told, both, runs, problem) {
  const all = runs.runs.map(({ name, label }) => ({ name, label }));
  SIDES.forEach((side, i) => {
    offer(at(side), all, both[i].run.name);
    offer(at(`system_${side}`), both[i].systems, parameters.get(`system_${side}`), "all");
  });
  bar(both[1].run);
  const shared = both[0].run.columns.filter(({ name }) => both[1].run.columns.some((other) => other.name === name));
  offer(at("metric"), shared, told ? told.metric.name : both[0].metric.name);
  at("means-section").hidden = !told;
  at("changed-section").hidden = !told || told.pairs === null;
  at("sentence").textContent = told ? told.sentence : problem;
  at("how").textContent = told ? told.how : "";
  if (!told) return;
  at("means").replaceChildren(intervals(SIDES.map((side, i) => ({ label: told[side].side, mean: told[side].mean, series: i })), `Mean ${told.metric.label} of both sides`));
  const [down, up] = told.better === "lower" ? ["most improved first", "most worsened first"] : told.better ? ["most worsened first", "most improved first"] : ["most lowered first", "most raised first"];
  offer(at("order"), [{ name: "most", label: "changed most first" }, { name: "down", label: down }, { name: "up", label: up }], parameters.get("order") ?? "most");
  at("changed").replaceChildren(...told.changed.map((change) => pair(change, told)));
  const number = Number(parameters.get("page") ?? 0);
  const pages = Math.max(1, Math.ceil((told.pairs ?? 0) / told.size));
  at("place").textContent = `${number + 1} of ${pages.toLocaleString("en")}`;
  for (const [id, to, there] of [["previous", number - 1, number > 0], ["next", number + 1, number + 1 < pages]]) {
    at(id).hidden = !there;
    at(id).href = link("compare", { ...Object.fromEntries(parameters), page: to });
  }
}

at("sides").addEventListener("submit", (event) => event.preventDefault());
for (const name of [...SIDES, "system_a", "system_b", "metric", "order"]) {
  at(name).addEventListener("change", () => {
    const changes = { page: null, [name]: chosen(at(name)) };
    if (SIDES.includes(name)) changes[`system_${name}`] = null;
    go(changes);
  });
}

// Without an address: the two latest runs, or the two largest systems of the only one.
async function sides(parameters, runs) {
  if (!runs.runs.length) return {};
  const [latest, before] = runs.runs;
  const b = parameters.get("b") ?? latest.name;
  const earlier = runs.runs.find(({ name }, i) => i > runs.runs.findIndex((run) => run.name === b));
  const a = parameters.get("a") ?? (earlier ?? before ?? latest).name;
  return { a, b };
}

page(async (parameters) => {
  const runs = await ask("runs");
  const { a, b } = await sides(parameters, runs);
  const metric = parameters.get("metric");
  const both = await Promise.all([ask("choices", { run: a }), ask("choices", { run: b })]);
  let systems = { system_a: parameters.get("system_a"), system_b: parameters.get("system_b") };
  if (a === b && !parameters.has("system_a") && !parameters.has("system_b") && both[0].systems.length > 1) {
    systems = { system_a: both[0].systems[0].name, system_b: both[0].systems[1].name };
  }
  const shown = address();
  Object.entries({ a, b, ...systems }).forEach(([name, value]) => value !== null && value !== undefined && shown.set(name, value));
  let told = null;
  let problem = "";
  try {
    told = await ask("compare", { a, b, ...systems, metric, order: parameters.get("order"), page: parameters.get("page") });
  } catch (error) {
    problem = error.message;
  }
  return () => show(shown, told, both, runs, problem);
});
