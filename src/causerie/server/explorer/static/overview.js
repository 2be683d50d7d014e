// The first screen: how good are the bots, which is better and is that certain, where they fail.
import { at, figure, get, make, named } from "/static/dom.js";
import { histograms, intervals, legend, lines } from "./charts.js";
import { ask, bar, chosen, columnName, go, interval, link, many, metrics, page, share } from "./explore.js";

const WORST = 6;

function showSystems(told, seriesOf) {
  const by = new Map(told.systems.map((system) => [system.name, system]));
  const rows = told.order.map((name, place) => {
    const system = by.get(name);
    const { behind } = system;
    let note = many(system.rows, "reply", "replies");
    if (place === 0 && told.order.length > 1) note += " · the best";
    if (behind) note += ` · ${figure(Math.abs(behind.value))} behind, ${behind.chance}`;
    return {
      label: system.label,
      mean: system.means[told.metric.name],
      href: link("replies", { run: told.run.name, system: name ?? "", metric: told.metric.name, order: worstOrder(told) }),
      series: seriesOf(system.label),
      note,
    };
  });
  at("systems").replaceChildren(intervals(rows, `Mean ${told.metric.label} of each system`));
}

const columnOf = (told) => told.run.columns.find(({ name }) => name === told.metric.name);
const worstOrder = (told) => (columnOf(told).better === "lower" ? "highest" : "lowest");

function showFaults(told) {
  const faults = told.run.columns.filter(({ fault }) => fault);
  at("faults").hidden = !faults.length;
  if (!faults.length) return;
  const most = Math.max(...told.systems.flatMap((s) => faults.map(({ name }) => s.faults[name] || 0)), 1e-9);
  const heads = told.systems.map(({ label }) => make("th", { scope: "col" }, named(label)));
  const rows = faults.map((fault) => make("tr", {}, make("th", { scope: "row" }, fault.fault), ...told.systems.map((system) => {
    const part = system.faults[fault.name];
    const href = link("replies", { run: told.run.name, system: system.name ?? "", metric: fault.name, least: fault.limit, order: "highest" });
    return make("td", { class: "number" }, make("a", { href, class: "heat", "data-heat": part ? Math.ceil((5 * part) / most) : 0 }, share(part)));
  })));
  at("faults").replaceChildren(make(
    "table", {},
    make("caption", { class: "quiet" }, "Share of replies with each fault"),
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "fault"), ...heads)),
    make("tbody", {}, ...rows),
  ));
}

function showReasons(told) {
  at("reasons").replaceChildren(...Object.entries(told.reasons).map(([reason, count]) => make("li", {}, make("a", {
    href: link("replies", { run: told.run.name, metric: told.metric.name, unscored: reason }),
  }, `${many(count, "reply", "replies")} without a score: `, named(reason)))));
}

function showWorst(told, found) {
  at("worst").replaceChildren(...found.rows.slice(0, WORST).map((row) => {
    const href = link("conversation", {
      run: told.run.name, dialogue: row.dialogue.name, file: row.file, system: row.system.name, turn: row.turn, metric: told.metric.name,
    });
    const value = row.scores[told.metric.name];
    return make(
      "li", {},
      row.before ? make("p", { class: "before text", dir: "auto" }, row.before) : null,
      make("p", { class: "text", dir: "auto" }, row.text === null ? "(its text is not in the table)" : row.text.trim() || "(empty)"),
      make("p", { class: "meta" }, make("b", {}, value === null ? row.reasons[told.metric.name] : figure(value)), named(row.system.label), make("a", { href }, named(row.dialogue.label), row.turn === null ? "" : `, turn ${row.turn}`)),
    );
  }));
  at("more").href = link("replies", { run: told.run.name, metric: told.metric.name, order: worstOrder(told) });
}

function showAlong(told, seriesOf) {
  const points = told.along;
  at("along").parentElement.hidden = new Set(points.map(({ turn }) => turn)).size < 2;
  if (!points.length) return;
  const systems = [...new Set(points.map(({ system }) => system))];
  const picture = lines(points, seriesOf, `Mean ${told.metric.label} at each turn of a conversation`);
  at("along").replaceChildren(legend(systems, seriesOf), picture);
}

function showAll(told) {
  const heads = told.systems.map(({ label }) => make("th", { scope: "col" }, named(label)));
  const rows = told.run.columns.map((column) => {
    const href = link("", { run: told.run.name, metric: column.name });
    const cells = told.systems.map((system) => make("td", {}, interval(system.means[column.name], figure)));
    return make("tr", { class: column.name === told.metric.name ? "chosen" : null }, make("th", { scope: "row", title: column.help }, make("a", { href }, columnName(column)), column.sentinel ? make("span", { class: "tag" }, "sentinel") : null), ...cells);
  });
  at("all").replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "measure"), ...heads)), make("tbody", {}, ...rows)));
}

function show(told, worst) {
  bar(told.run);
  const labels = told.systems.map(({ label }) => label);
  const seriesOf = (label) => Math.max(0, labels.indexOf(label)) % 8;
  at("title").textContent = told.systems.length > 1 ? "How good are your bots?" : "How good is your bot?";
  at("sentences").replaceChildren(...told.sentences.map((text) => make("p", { class: "lead", dir: "auto" }, text)));
  at("notes").textContent = told.notes.join(" ");
  metrics(told.run, told.metric);
  at("help").textContent = columnOf(told).help;
  showSystems(told, seriesOf);
  showFaults(told);
  showReasons(told);
  showWorst(told, worst);
  at("spread").replaceChildren(told.distribution ? histograms(told.distribution, seriesOf) : make("p", { class: "quiet" }, "Nothing is scored."));
  showAlong(told, seriesOf);
  showAll(told);
}

at("choice").addEventListener("submit", (event) => event.preventDefault());
at("metric").addEventListener("change", () => go({ metric: chosen(at("metric")) }));
at("about").addEventListener("click", async () => {
  const open = at("signature").hidden;
  if (open) {
    const told = await get(link("api/about", { run: new URLSearchParams(location.search).get("run") }));
    at("signature").textContent = JSON.stringify(told, null, 2);
  }
  at("signature").hidden = !open;
  at("about").setAttribute("aria-expanded", String(open));
});

page(async (parameters) => {
  const wanted = { run: parameters.get("run"), metric: parameters.get("metric") };
  const told = await ask("overview", wanted);
  const worst = await ask("replies", { ...wanted, run: told.run.name, order: worstOrder(told) });
  return () => show(told, worst);
});
