// The history of runs: when, what, with which metrics, and how their means moved.
import { at, figure, make, named } from "/static/dom.js";
import { past } from "./charts.js";
import { ask, bar, chosen, go, interval, link, many, offer, page } from "./explore.js";

const day = (written) => new Date(written).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" });

function row(run, place, runs, metric) {
  const before = runs[place + 1];
  return make(
    "tr", {},
    make("th", { scope: "row" }, make("a", { href: link("", { run: run.name, metric: run.mean ? metric.name : null }) }, named(run.label))),
    make("td", {}, make("time", { datetime: run.written }, day(run.written))),
    make("td", { class: "number" }, interval(run.mean, figure)),
    make("td", {}, many(run.rows, run.level === "turn" ? "reply" : "conversation", run.level === "turn" ? "replies" : "conversations")),
    make("td", {}, ...run.inputs.flatMap((input, i) => [i ? ", " : "", named(input)])),
    make("td", {}, named(run.plan)),
    make("td", {}, before ? make("a", { href: link("compare", { a: before.name, b: run.name, metric: run.mean && before.mean ? metric.name : null }) }, "against the run before") : ""),
  );
}

at("choice").addEventListener("submit", (event) => event.preventDefault());
at("metric").addEventListener("change", () => go({ metric: chosen(at("metric")) }));

page(async (parameters) => {
  const told = await ask("runs", { metric: parameters.get("metric") });
  return () => {
    bar(told.runs.find(({ name }) => name === parameters.get("run")) ?? null);
    offer(at("metric"), told.metrics, told.metric.name);
    const picture = past([...told.runs].reverse().map(({ label, mean, written }) => ({ label, mean, when: day(written) })), `Mean ${told.metric.label} of each run, the earliest first`);
    at("past").hidden = !picture;
    if (picture) at("past").replaceChildren(picture);
    const heads = ["run", "written", told.metric.label, "size", "inputs", "metrics", ""].map((head, i) => (i === 6 ? make("td") : make("th", { scope: "col", class: i === 2 ? "number" : null }, named(head))));
    at("runs").replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...told.runs.map((run, i) => row(run, i, told.runs, told.metric)))));
  };
});
