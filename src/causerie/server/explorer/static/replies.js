// Find replies: a form, a page of what it finds, and a file of it. The address holds the form.
import { at, figure, make, named } from "/static/dom.js";
import { ask, bar, chosen, go, link, many, metrics, offer, page, stepOf } from "./explore.js";

const TYPED = ["text", "least", "most", "percentile_least", "percentile_most", "dialogue"];
const CHOSEN = ["system", "speaker", "unscored", "tag"];
const FIELDS = [...TYPED, ...CHOSEN, "metric"];
const HIDDEN = ["least", "most", "percentile_least", "percentile_most", "unscored", "tag", "dialogue"];

function fill(parameters, told) {
  for (const name of TYPED) at(name).value = parameters.get(name) ?? "";
  offer(at("system"), told.systems, parameters.get("system"), "all");
  offer(at("speaker"), told.speakers, parameters.get("speaker"), "all");
  offer(at("unscored"), [{ name: "any", label: "for any reason" }, ...told.reasons], parameters.get("unscored"), "–");
  const tags = told.tags.filter(({ name }) => name).map(({ name, label, count }) => ({ name, label: `${label} (${count})` }));
  offer(at("tag"), [{ name: "any", label: "with any tag or comment" }, ...tags], parameters.get("tag"), "–");
  metrics(told.run, told.metric);
  const column = told.run.columns.find(({ name }) => name === told.metric.name);
  const [low, high] = column.better === "lower" ? ["best first", "worst first"] : column.better ? ["worst first", "best first"] : ["lowest first", "highest first"];
  offer(at("order"), [{ name: "given", label: "as given" }, { name: "lowest", label: low }, { name: "highest", label: high }], parameters.get("order") ?? "given");
  if (HIDDEN.some((name) => parameters.has(name))) at("details").open = true;
  at("percentile_least").disabled = at("percentile_most").disabled = !column.percentiles;
  return column;
}

function card(row, run, column, steps) {
  const value = row.scores[column.name];
  const percentile = row.percentiles[column.name];
  const href = link("conversation", { run: run.name, dialogue: row.dialogue.name, file: row.file, system: row.system.name, turn: row.turn, metric: column.name });
  const empty = row.text !== null && !row.text.trim();
  const said = row.text === null ? "(its text is not in the table)" : empty ? "(empty)" : row.text;
  return make(
    "li", { "data-step": stepOf(value, steps, column) },
    row.before ? make("p", { class: "before text", dir: "auto" }, row.before) : null,
    make("p", { class: row.text === null || empty ? "text quiet" : "text", dir: "auto" }, said),
    make(
      "p", { class: "meta" },
      make("b", {}, value === null ? `unscored (${row.reasons[column.name]})` : figure(value)),
      percentile === null ? null : make("span", {}, `better than ${Math.round(percentile)}% of human replies`),
      named(row.system.label),
      make("a", { href, class: "open" }, named(row.dialogue.label), row.turn === null ? "" : `, turn ${row.turn}`),
      ...row.tags.map((tag) => make("span", { class: "tag" }, named(tag))),
      row.comment ? make("span", { class: "noted", dir: "auto" }, `“${row.comment}”`) : null,
    ),
  );
}

function show(parameters, told, found) {
  bar(told.run);
  const column = fill(parameters, told);
  at("count").textContent = many(found.count, "reply", "replies");
  at("replies").replaceChildren(...found.rows.map((row) => card(row, told.run, column, told.steps)));
  const pages = Math.max(1, Math.ceil(found.count / found.size));
  at("place").textContent = `${(found.page + 1).toLocaleString("en")} of ${pages.toLocaleString("en")}`;
  const to = (number) => link("replies", { ...Object.fromEntries(parameters), page: number });
  for (const [id, number, there] of [["previous", found.page - 1, found.page > 0], ["next", found.page + 1, found.page + 1 < pages]]) {
    at(id).hidden = !there;
    at(id).href = to(number);
  }
  at("clear").href = link("replies", { run: told.run.name });
  at("export").hidden = !told.run.whole || !found.count;
  const wanted = { ...Object.fromEntries(parameters), run: told.run.name, page: null };
  at("save-replies").href = link("api/export", { ...wanted, what: "replies" });
  at("save-conversations").href = link("api/export", { ...wanted, what: "conversations" });
}

function find(event) {
  if (event) event.preventDefault();
  const changes = { page: null };
  for (const name of TYPED) changes[name] = at(name).value.trim() || null;
  for (const name of CHOSEN) changes[name] = chosen(at(name));
  changes.metric = chosen(at("metric"));
  changes.order = chosen(at("order")) === "given" ? null : chosen(at("order"));
  go(changes);
}

function move(by) {
  const links = [...document.querySelectorAll("#replies a.open")];
  const here = links.findIndex((node) => node === document.activeElement);
  const next = links[here < 0 ? 0 : Math.max(0, Math.min(links.length - 1, here + by))];
  if (next) {
    next.focus();
    next.closest("li").scrollIntoView({ block: "nearest" });
  }
}

at("filter").addEventListener("submit", find);
for (const name of [...CHOSEN, "metric", "order"]) at(name).addEventListener("change", () => find());
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest("input, select, textarea")) return;
  if (event.key === "j" || event.key === "k") move(event.key === "j" ? 1 : -1);
  else if (event.key === "/") at("text").focus();
  else return;
  event.preventDefault();
});

page(async (parameters) => {
  const given = Object.fromEntries(parameters);
  const known = Object.fromEntries(FIELDS.concat("order", "page", "run").filter((name) => name in given).map((name) => [name, given[name]]));
  const told = await ask("choices", { run: given.run, metric: given.metric });
  const found = await ask("replies", known);
  return () => show(parameters, told, found);
});
