// What the pages of the explorer share: the address, which holds all that a page shows; the bar
// with the pages and the run; loading, and what is told while it lasts or where it fails.
import { at, get, make, named, tell } from "/static/dom.js";

export const address = () => new URLSearchParams(location.search);

// A link to a page of the explorer: link("replies", { run, system }), without what is empty.
export function link(page, parameters = {}) {
  const known = Object.entries(parameters)
    .filter(([, value]) => value !== null && value !== undefined);
  const query = new URLSearchParams(known).toString();
  return `/explorer/${page}${query ? `?${query}` : ""}`;
}

// Ask the explorer; parameters without a value are left out.
export const ask = (what, parameters = {}, options) => get(link(`api/${what}`, parameters), options);

// Draw the page now, and whenever the address changes. `draw` is handed the parameters; only the
// last of several drawings that overlap is shown.
let turn = 0;
let draw = async () => {};

export function page(drawing) {
  draw = drawing;
  addEventListener("popstate", refresh);
  return refresh();
}

export async function refresh() {
  turn += 1;
  const mine = turn;
  const main = at("main");
  main.setAttribute("aria-busy", "true");
  const slow = setTimeout(() => tell("Counting …"), 400);
  try {
    const show = await draw(address());
    if (mine === turn) {
      at("problem").hidden = true;
      show();
    }
  } catch (error) {
    if (mine !== turn) return;
    at("problem").textContent = error.message;
    at("problem").hidden = false;
  } finally {
    clearTimeout(slow);
    if (mine === turn) {
      main.removeAttribute("aria-busy");
      tell("");
    }
  }
}

// Change the address, so that it holds what is shown, and draw.
export function go(changes) {
  const parameters = address();
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined) parameters.delete(name);
    else parameters.set(name, value);
  }
  history.pushState(null, "", `${location.pathname}?${parameters}`);
  return refresh();
}

export function option(value, text) {
  return make("option", { value }, text);
}

// Fill a list of choices: [{ name, label }]. What is chosen stays, even if it is not among them.
export function offer(select, items, chosen, all = null) {
  const options = items.map(({ name, label }) => option(`=${name}`, label));
  if (all !== null) options.unshift(option("", all));
  const wanted = chosen === null ? "" : `=${chosen}`;
  if (wanted && !items.some(({ name }) => name === chosen)) options.push(option(wanted, chosen));
  select.replaceChildren(...options);
  select.value = wanted || (all === null && items.length ? `=${items[0].name}` : "");
}

// What is chosen; null stands for all.
export const chosen = (select) => (select.value === "" ? null : select.value.slice(1));

const PAGES = [["", "Overview"], ["replies", "Replies"], ["compare", "Compare"], ["runs", "Runs"]];

// The pages with the run that is shown, which stays the same on all of them.
export function bar(run) {
  const here = location.pathname.replace("/explorer/", "");
  const links = PAGES.map(([name, title]) => {
    const to = link(name, name === "compare" ? { b: run && run.name } : { run: run && run.name });
    return make("li", {}, make("a", { href: to, "aria-current": name === here ? "page" : null }, title));
  });
  at("pages").replaceChildren(...links);
  at("run").replaceChildren(...(run ? [named(run.label)] : []));
  document.title = document.title.replace(/^(.*? · )?/, run ? `${run.label} · ` : "");
}

export function metrics(run, metric) {
  offer(at("metric"), run.columns, metric.name);
}

const WORDS = { higher: "higher is better", lower: "lower is better" };

export function columnName(column) {
  if (!column.better) return named(column.label);
  const words = WORDS[column.better];
  return make("span", {}, named(column.label), " ", make("span", {
    class: "arrow", role: "img", title: words, "aria-label": words,
  }, column.better === "higher" ? "↑" : "↓"));
}

// Seven steps from worse to better by where a value lies among all of the run.
export function stepOf(value, steps, column) {
  if (value === null || value === undefined) return "none";
  const place = steps.filter((cut) => value >= cut).length;
  return String(column.better === "lower" ? 6 - place : place);
}

export const share = (value) => (value === null ? "–" : `${(100 * value).toFixed(value < 0.0995 ? 1 : 0)}%`);

export const many = (count, one, more = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : more}`;

export function interval(mean, figure) {
  if (!mean) return "–";
  const within = mean.low === null ? "" : ` [${figure(mean.low)}, ${figure(mean.high)}]`;
  return figure(mean.value) + within;
}
