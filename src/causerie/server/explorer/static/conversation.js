// One conversation to read: turns coloured by a metric, what is behind each score, and marks.
import { at, figure, make, named, send, tell } from "/static/dom.js";
import { sparkline } from "./charts.js";
import { drawArcs, explanation, named as entries } from "./drawings.js";
import { address, ask, bar, chosen, go, link, metrics, page, stepOf } from "./explore.js";

let talks = [];

// What is behind a score. Explanations come from files of others: one that cannot be drawn as its
// metric says is told as lists.

function explained(value, drawing) {
  try {
    return explanation(value, drawing);
  } catch {
    return explanation(value, null);
  }
}

function details(turn, run) {
  const list = make("dl");
  for (const { name, label, limit } of run.columns) {
    const reason = turn.reasons[name];
    const percentile = turn.percentiles[name];
    const beside = [
      percentile === null ? "" : ` (better than ${Math.round(percentile)}% of human replies)`,
      limit !== null && turn.scores[name] > limit ? " (found)" : "",
    ].join("");
    list.append(make("dt", {}, named(label)), make("dd", {}, reason ? `unscored (${reason})` : figure(turn.scores[name]) + beside));
  }
  const drawings = new Map(run.columns.map(({ name, drawing }) => [name, drawing]));
  const told = Object.entries(turn.explanation);
  const box = make("div", {}, list);
  if (told.length) box.append(make("h2", {}, "Explanation"), entries(told, (value, name) => explained(value, drawings.get(name))));
  return box;
}

// Tags and a comment, kept as soon as they are changed.

function marking(turn, run, show) {
  const tags = make("input", { list: "tags", autocomplete: "off", maxlength: 1000, value: turn.tags.join(", ") });
  const comment = make("textarea", { maxlength: 4000, rows: 2 });
  comment.value = turn.comment;
  const keep = async () => {
    try {
      const kept = await send("PUT", link("api/marks"), {
        run: run.name,
        dialogue: turn.dialogue.name,
        system: turn.system.name ?? "",
        turn: turn.turn ?? -1,
        tags: tags.value.split(",").map((tag) => tag.trim()).filter(Boolean),
        comment: comment.value,
      });
      Object.assign(turn, kept);
      tell("Kept");
      setTimeout(() => tell(""), 1500);
      show();
    } catch (error) {
      tell(`Not saved: ${error.message}`);
    }
  };
  tags.addEventListener("change", keep);
  comment.addEventListener("change", keep);
  return make("div", { class: "marking" }, make("label", {}, "Tags, with commas between them ", tags), make("label", {}, "Comment ", comment));
}

function drawTurn(turn, run) {
  if (turn.gap) return { node: make("p", { class: "gap quiet" }, turn.gap === 1 ? "one turn is not in this table" : `${turn.gap} turns are not in this table`) };
  const empty = turn.text !== null && !turn.text.trim();
  const said = turn.text === null ? "(its text is not in this table)" : empty ? "(empty)" : turn.text;
  const text = make("p", { class: turn.text === null || empty ? "text quiet" : "text", dir: "auto" }, said);
  const bubble = make("div", { class: "bubble" }, text);
  const node = make("div", { class: `turn ${turn.side === "user" ? "user" : "system"}` }, make("div", { class: "who" }, named(turn.speaker || turn.side)), bubble);
  const view = { turn, node, bubble };
  if (!turn.scores) return view;
  view.notes = make("p", { class: "notes" });
  view.show = () => view.notes.replaceChildren(
    ...turn.tags.map((tag) => make("span", { class: "tag" }, named(tag))),
    ...(turn.comment ? [make("span", { class: "noted", dir: "auto" }, `“${turn.comment}”`)] : []),
  );
  view.show();
  view.summary = make("summary");
  view.box = make("details", { class: "scores" }, view.summary);
  view.box.addEventListener("toggle", () => {
    if (view.box.open && !view.box.querySelector("dl")) view.box.append(details(turn, run), marking(turn, run, view.show));
  });
  bubble.append(view.box, view.notes);
  return view;
}

function drawTalk(turns, run) {
  const views = turns.map((turn) => drawTurn(turn, run));
  const spark = make("div", { class: "sparks" });
  const node = make("article", { class: "talk" }, ...views.map((view) => view.node));
  const places = new Map(views.filter(({ turn }) => turn).map((view) => [view.turn.turn, view]));
  const drawings = new Map(run.columns.map(({ name, drawing }) => [name, drawing]));
  const arcsOf = (view) => Object.entries(view.turn.explanation)
    .flatMap(([name, { dependents }]) => (drawings.get(name) === "arcs" && Array.isArray(dependents) && dependents) || [])
    .filter(({ turn, p }) => places.has(turn) && typeof p === "number")
    .map(({ turn, p, direct }) => ({ from: places.get(turn).bubble, to: view.bubble, p, direct }));
  const arcs = () => drawArcs(node, views.filter(({ box }) => box && box.open).flatMap(arcsOf));
  for (const { box } of views) if (box) box.addEventListener("toggle", arcs);
  new ResizeObserver(arcs).observe(node);
  return { node, spark, views };
}

function focus(view, { open }) {
  document.querySelectorAll(".turn.focus").forEach((node) => node.classList.remove("focus"));
  view.node.classList.add("focus");
  if (open) view.box.open = true;
  view.node.scrollIntoView({ block: "center" });
  view.summary.focus({ preventScroll: true });
}

function colour(run, column, steps) {
  for (const { spark, views } of talks) {
    const scored = views.filter(({ box }) => box);
    for (const { turn, bubble, summary } of scored) {
      const value = turn.scores[column.name];
      const empty = value === null && column.better && turn.text !== null && !turn.text.trim();
      bubble.dataset.step = empty ? "0" : stepOf(value, steps, column);
      summary.textContent = `${column.label} ${figure(value)}`;
    }
    const points = scored.map((view) => ({
      value: view.turn.scores[column.name],
      step: view.bubble.dataset.step,
      said: `turn ${view.turn.turn}: ${figure(view.turn.scores[column.name])}`,
      choose: () => focus(view, { open: false }),
    }));
    const picture = sparkline(points, `${column.label} along the conversation`);
    spark.replaceChildren(...(picture ? [picture] : []));
  }
}

function show(parameters, told, found) {
  bar(told.run);
  const column = told.run.columns.find(({ name }) => name === told.metric.name);
  at("title").replaceChildren(named(found.label));
  const first = found.talks.flat().find((turn) => turn.scores);
  at("whose").replaceChildren(...(first ? ["by ", make("a", { href: link("replies", { run: told.run.name, system: first.system.name ?? "" }) }, named(first.system.label))] : ["This run has no such conversation."]));
  if (first && !told.run.whole) at("whose").append(". This table holds only the scored replies: score with --conversations to read the others' turns, too.");
  metrics(told.run, told.metric);
  at("tags").replaceChildren(...told.tags.filter(({ name }) => name).map(({ name }) => make("option", { value: name })));
  talks = found.talks.map((turns) => drawTalk(turns, told.run));
  at("talks").replaceChildren(...talks.flatMap(({ spark, node }) => [spark, node]));
  colour(told.run, column, told.steps);
  const wanted = parameters.get("turn");
  const view = wanted !== null && talks.flatMap(({ views }) => views).find(({ box, turn }) => box && String(turn.turn) === wanted);
  if (view) focus(view, { open: true });
}

function move(by) {
  const views = talks.flatMap((talk) => talk.views).filter(({ box }) => box);
  const here = views.findIndex(({ node }) => node.classList.contains("focus"));
  const next = views[here < 0 ? 0 : Math.max(0, Math.min(views.length - 1, here + by))];
  if (!next) return;
  focus(next, { open: false });
  const parameters = address();
  parameters.set("turn", next.turn.turn);
  history.replaceState(null, "", `${location.pathname}?${parameters}`);
}

at("choice").addEventListener("submit", (event) => event.preventDefault());
at("metric").addEventListener("change", () => go({ metric: chosen(at("metric")) }));
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest("input, select, textarea")) return;
  if (event.key !== "n" && event.key !== "p") return;
  move(event.key === "n" ? 1 : -1);
  event.preventDefault();
});

page(async (parameters) => {
  const [run, metric] = [parameters.get("run"), parameters.get("metric")];
  const told = await ask("choices", { run, metric });
  const found = await ask("conversation", {
    run: told.run.name, dialogue: parameters.get("dialogue") ?? "", file: parameters.get("file"), system: parameters.get("system"),
  });
  return () => show(parameters, told, found);
});
