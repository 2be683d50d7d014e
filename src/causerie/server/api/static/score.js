// Try the metrics on a pasted conversation; send whole files and watch what becomes of them.
import { at, figure, get, make, named, send, tell } from "/static/dom.js";

const PAUSE = 2000;
const ARROWS = { higher: " ↑", lower: " ↓" };
const columns = new Map();

// A conversation as it is pasted: JSON, or lines with or without names in front.

const NAMED = /^([^:]{1,40}):(?:\s+(.*))?$/;

function recordOf(pasted) {
  const text = pasted.trim();
  if (text.startsWith("[") || text.startsWith("{")) {
    try {
      const data = JSON.parse(text);
      return Array.isArray(data) ? { data } : { data: [data] };
    } catch (error) {
      throw new Error(`this starts like JSON but is not valid: ${error.message}`);
    }
  }
  const lines = text.split("\n").map((line) => line.trim()).filter((line) => line);
  const found = lines.map((line) => NAMED.exec(line));
  const turns = found.every((match) => match)
    ? found.map(([, speaker, said]) => ({ speaker, text: said || "" }))
    : lines.map((said, place) => ({ speaker: "AB"[place % 2], text: said }));
  return { data: [{ id: "pasted", turns }], shown: turns };
}

// What came of it.

function value(row, name) {
  const column = columns.get(name);
  const reason = row.unscored[name];
  const percentile = row[`${name}.percentile`];
  const item = make("li", { class: column.sentinel ? "sentinel" : null, title: column.help },
    `${name}${ARROWS[column.better] || ""} `,
    make("b", {}, reason ? "–" : figure(row[name])));
  if (reason) item.append(make("small", {}, ` ${reason}`));
  if (typeof percentile === "number") {
    item.append(make("small", {}, ` percentile ${Math.round(percentile)}`));
  }
  return item;
}

function said(speaker, text, row) {
  const words = make("p", { class: "text", dir: "auto" }, text || "(empty)");
  const box = make("div", { class: row ? "said scored" : "said" },
    make("div", { class: "who" }, named(speaker)), words);
  if (!row) return box;
  const names = [...columns.keys()].filter((name) => name in row);
  box.append(make("ul", { class: "values" }, ...names.map((name) => value(row, name))));
  const explained = Object.entries(row.explanation || {}).filter(([, one]) => !("unscored" in one));
  if (explained.length) {
    box.append(make("details", { class: "why" }, make("summary", {}, "Why"),
      ...explained.map(([name, one]) => make("pre", {}, `${name}: ${JSON.stringify(one, null, 1)}`))));
  }
  return box;
}

function show(answer, turns) {
  const rows = answer.rows;
  const shown = turns
    ? turns.map(({ speaker, text }, place) => said(speaker, text, rows.find((r) => r.turn === place)))
    : rows.map((row) => said(`${row.dialogue_id}, ${row.speaker}`, row.text, row));
  at("turns").replaceChildren(...shown);
  at("signature").textContent = answer.signature;
  at("results").hidden = false;
  at("results-title").focus();
  const skipped = answer.skipped.map((one) => `record ${one.record} was skipped: ${one.reason}`);
  at("refused").textContent = skipped.join("; ");
}

async function waiting() {
  const { ready, reason } = await (await fetch("/readyz")).json();
  return ready ? "scoring …" : `scoring … (${reason})`;
}

async function score(event) {
  event.preventDefault();
  at("refused").textContent = "";
  at("score").disabled = true;
  tell(await waiting());
  try {
    const { data, shown } = recordOf(at("talk").value);
    const chosen = [...document.querySelectorAll("#metrics input:checked")].map((box) => box.value);
    if (!chosen.length) throw new Error("choose at least one metric");
    const calibrated = [...columns.values()]
      .some((column) => column.calibrated && chosen.includes(column.alias));
    const body = {
      data, metrics: chosen, speaker: "all", percentiles: calibrated, explain: at("explain").checked,
    };
    show(await send("POST", "/v1/score", body), shown);
  } catch (error) {
    at("refused").textContent = error.message;
  } finally {
    at("score").disabled = false;
    tell("");
  }
}

async function begin() {
  const { metrics } = await get("/v1/metrics");
  for (const { alias, summary, columns: levels } of metrics) {
    levels.turn.forEach((column) => columns.set(column.column, { ...column, alias }));
    const box = make("input", { type: "checkbox", value: alias, checked: true });
    at("metrics").append(make("label", { title: summary }, box, alias));
  }
}

// Jobs: drawn anew while one of them is under way.

function state(job) {
  if (job.status === "running") {
    const bar = make("progress", { max: job.size, value: job.done, "aria-label": `${job.name} scored` });
    return [bar, ` ${Math.floor((100 * job.done) / job.size)}%`];
  }
  return job.error ? [make("span", { class: "error" }, job.error)] : [job.status];
}

function drawn(job) {
  const remove = make("button", {
    class: "link", type: "button", "aria-label": `remove ${job.name}`,
    on: { click: () => send("DELETE", `/v1/jobs/${job.id}`).then(watch) },
  }, job.status === "done" ? "remove" : "stop");
  const actions = make("div", { class: "actions" });
  if (job.status === "done") {
    const href = `/v1/jobs/${job.id}/result`;
    actions.append(make("a", { href, download: "", "aria-label": `download the scores of ${job.name}` }, job.out));
  }
  actions.append(remove);
  return make("tr", {},
    make("td", {}, named(job.name)),
    make("td", {}, ...state(job)),
    make("td", { class: "number" }, job.rows.toLocaleString("en")),
    make("td", { class: "number", title: job.notes.join("\n") }, job.skipped.toLocaleString("en")),
    make("td", {}, actions));
}

let timer;

async function watch() {
  clearTimeout(timer);
  const { jobs } = await get("/v1/jobs").catch(() => ({ jobs: null }));
  if (jobs) {
    at("jobs-box").hidden = !jobs.length;
    at("jobs").replaceChildren(...jobs.map(drawn));
  }
  if (!jobs || jobs.some(({ status }) => status === "queued" || status === "running")) {
    timer = setTimeout(watch, PAUSE);
  }
}

async function submit(event) {
  event.preventDefault();
  const [file] = at("file").files;
  const query = new URLSearchParams({ name: file.name, out: at("out").value });
  at("unsent").textContent = "";
  tell(`sending ${file.name} …`);
  try {
    await send("POST", `/v1/jobs?${query}`, file);
    at("send").reset();
  } catch (error) {
    at("unsent").textContent = error.message;
  } finally {
    tell("");
    watch();
  }
}

const here = location.origin;
at("python").textContent = `from causerie import Client

client = Client("${here}")
rows = client.score([
    {"role": "user", "content": "Any plans for the weekend?"},
    {"role": "assistant", "content": "I want to hike up to the lake."},
], turns="last")`;
at("curl").textContent = `curl ${here}/v1/score -H 'Content-Type: application/json' -d '{
  "messages": [{"role": "user", "content": "Any plans for the weekend?"},
               {"role": "assistant", "content": "I want to hike up to the lake."}],
  "turns": "last"}'`;
at("try").addEventListener("submit", score);
at("send").addEventListener("submit", submit);
begin().catch((error) => { at("refused").textContent = error.message; });
watch();
