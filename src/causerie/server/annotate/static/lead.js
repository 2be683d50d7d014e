// The lead's page: how far everybody is, who agrees with whom, and what to do next.
import { at, figure, get, make, named, send, shape, tell } from "/static/dom.js";
import { learning } from "./curve.js";

const API = "/annotate/api/lead";
const ROUNDS = { dry: "practice", first: "first round", review: "review", adjudication: "decisions" };

async function load() {
  const project = await get(API);
  at("title").replaceChildren(named(project.project));
  at("summary").textContent = `${project.done} of ${project.items} items done, ${project.settled} settled. `
    + Object.entries(project.rounds)
      .map(([name, one]) => `${ROUNDS[name]}: ${one.finished} of ${one.assigned}`).join("; ");
  at("actions").replaceChildren(...actions(project));
  at("people").replaceChildren(people(project));
  at("agreement").replaceChildren(...agreement(project.agreement));
  at("items").replaceChildren(items(project));
  at("exports").replaceChildren(...project.formats.map((format) =>
    make("a", { class: "button", href: `${API}/export/${format}`, download: "" }, format)));
  curve(project.curve);
}

function actions(project) {
  const name = make("input", { id: "new-name", required: true, maxlength: 100, autocomplete: "off" });
  const add = async (event) => {
    event.preventDefault();
    await does(async () => link(name.value, await send("POST", `${API}/people`, { name: name.value })));
  };
  const review = () => does(async () => {
    const { assigned } = await send("POST", `${API}/review`, {});
    tell(assigned ? `${assigned} items assigned to reviewers.`
      : "Nothing to review: an item is reviewed when its first round is over.");
  });
  return [
    make("form", { class: "fields", on: { submit: add } },
      make("label", {}, "New annotator", name), make("button", {}, "Add, and show the link")),
    project.reviewers.length > 1
      ? make("button", { type: "button", id: "review", on: { click: review } },
        `Begin the second round with ${project.reviewers.join(", ")}`) : null,
  ].filter(Boolean);
}

function link(name, { token }) {
  const address = `${location.origin}/enter#${token}`;
  const field = make("input", { id: "link", readonly: true, value: address, "aria-label": "Secret link" });
  const dialog = make("dialog", { "aria-label": "Secret link" },
    make("h2", {}, "The link of ", named(name)),
    make("p", {}, "Anyone with this link acts as this person. It is shown only once and not stored."), field,
    make("p", { class: "fields" }, make("button", { type: "button", class: "primary", on: { click: () => dialog.close() } }, "Done")));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  field.select();
}

async function does(what) {
  try {
    await what();
    await load();
  } catch (error) {
    tell(error.message);
  }
}

function people(project) {
  const rounds = Object.keys(project.rounds);
  const shown = project.people.filter((one) => one.role === "annotator");
  if (!shown.length) return make("p", { class: "quiet" }, "Nobody yet.");
  const rows = shown.map((one) => [
    make("span", {}, named(one.name), one.active ? null : make("span", { class: "tag" }, "no link")),
    ...rounds.map((round) => one.rounds[round]
      ? `${one.rounds[round].finished} of ${one.rounds[round].assigned}` : "–"),
    one.seconds === null ? "–" : `${Math.round(one.seconds)} s`,
    value(one.gold), value(one.others), sparkline(one.curve),
    make("span", { class: "acts" },
      make("button", { type: "button", on: { click: () => renew(one.name) } }, "New link"),
      one.active ? make("button", { type: "button", on: { click: () => revoke(one.name) } }, "End link") : null),
  ]);
  return table(["name", ...rounds.map((round) => ROUNDS[round]), "time per item", "correct in practice",
    "agrees with others", "over time", "link"], rows, "of-people", "Table of people");
}

const renew = (name) => does(async () => link(name, await send("POST", `${API}/people`, { name })));
const revoke = (name) => does(async () => {
  await send("POST", `${API}/revoke`, { name });
  tell(`The link of ${name} no longer works; open items were assigned to others.`);
});

function agreement({ items: shared, measures, between }) {
  if (!shared) {
    return [make("p", { class: "quiet" }, "No item has been finished by two annotators in the first round yet.")];
  }
  const names = Object.keys(Object.values(measures)[0]);
  const rows = Object.entries(measures).map(([name, found]) =>
    [name, ...names.map((measure) => value(found[measure]))]);
  const pairs = between.map((one) => [
    make("span", {}, named(one.first), " and ", named(one.second)), one.items,
    ...Object.values(one.measures).map(value)]);
  return [make("p", { class: "quiet" }, `On ${shared} items that several annotators have finished.`),
    table(["of", ...names], rows, "measures", "Agreement of all"),
    between.length ? table(["annotators", "items", ...Object.keys(between[0].measures)], pairs, "between", "Agreement of two") : null,
  ].filter(Boolean);
}

function items({ disagreements, task }) {
  if (!disagreements.length) return make("p", { class: "quiet" }, "None so far.");
  return table(["item", "they differ by", "state", "read"], disagreements.map((one) => [
    make("span", { class: "text" }, named(one.name)), figure(one.disagreement),
    make("span", { class: "tag" }, one.settled ? "decided" : task.labels.length ? "open" : "counted as it is"),
    make("a", { href: `/annotate/item?item=${one.item}` }, "Side by side")]), "differing", "Table of items");
}

function value(one) {
  if (one.value === null) return make("span", { class: "quiet", title: one.reason ?? "" }, "–");
  const interval = one.low === null ? "" : ` [${one.low.toFixed(2)}, ${one.high.toFixed(2)}]`;
  return make("span", { title: one.n === undefined ? null : `on ${one.n}` }, one.value.toFixed(2) + interval);
}

function table(headings, rows, id, name) {
  return make("div", { class: "scroll", id, role: "region", "aria-label": name, tabindex: 0 }, make("table", {},
    make("thead", {}, make("tr", {}, ...headings.map((text) => make("th", { scope: "col" }, text)))),
    make("tbody", {}, ...rows.map((cells) => make("tr", {}, ...cells.map((cell) => make("td", {}, cell)))))));
}

function sparkline(values) {
  if (values.length < 2) return make("span", { class: "quiet" }, "–");
  const points = values.map((one, i) => `${(i / (values.length - 1)) * 76 + 2},${22 - one * 20}`);
  const words = values.map((one) => one.toFixed(2)).join(", ");
  return shape("svg", { viewBox: "0 0 80 24", class: "spark", role: "img", "aria-label": words },
    shape("polyline", { points: points.join(" "), class: "line" }));
}

function curve(points) {
  at("learning").hidden = !points.length;
  if (!points.length) return;
  const rows = points.map((one) => [
    one.annotations.toLocaleString("en"), value({ value: one.auc, low: one.low, high: one.high })]);
  const { picture, said } = learning(points);
  at("curve").replaceChildren(...(picture ? [make("p", {}, said), make("div", { class: "card" }, picture)] : []),
    table(["annotated exchanges", "validation AUC"], rows, "points", "Table of the learning curve"));
}

try {
  await load();
} catch (error) {
  tell(error.message);
}
