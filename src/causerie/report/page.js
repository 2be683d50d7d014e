"use strict";
// Everything from the data reaches the page as text (textContent, never markup).
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { columns, systems, worst, dialogues } = data;
  const STEPS = 7;
  const WORST = 6;
  const at = (id) => document.getElementById(id);

  // Ranks: per column, the value's place among all responses shown, 0 (worst) to 1 (best).

  function rankOf(column) {
    const values = [];
    for (const talk of dialogues) {
      for (const turn of talk.turns) {
        if (turn.scores && turn.scores[column] !== null) values.push(turn.scores[column]);
      }
    }
    values.sort((a, b) => a - b);
    const ranks = new Map();
    for (let start = 0; start < values.length;) {
      let end = start;
      while (values[end] === values[start]) end += 1;
      const middle = (start + end) / 2 / values.length;
      ranks.set(values[start], columns[column].higher ? middle : 1 - middle);
      start = end;
    }
    return ranks;
  }

  // An empty response has no score but counts as the worst one.
  const isEmpty = (turn) => turn.text.trim() === "";

  function counted(turn, column) {
    if (!turn.scores) return null;
    const { directed, worst: least } = columns[column];
    return turn.scores[column] === null && isEmpty(turn) && directed ? least : turn.scores[column];
  }

  function meanOf(talk, column) {
    const values = talk.turns.map((turn) => counted(turn, column)).filter((v) => v !== null);
    return values.length ? values.reduce((a, b) => a + b, 0) / values.length : null;
  }

  // What is behind a response's score: all scores, references, explanation.

  function details(turn) {
    const box = make("div");
    const list = make("dl");
    columns.forEach((column, index) => {
      const percentile = turn.percentiles[index];
      const worse = percentile === null ? 0 : 100 - Math.round(percentile);
      const beside = percentile === null ? "" : ` (worse than ${worse}% of human responses)`;
      const reason = turn.reasons[index];
      const shown = reason ? `unscored (${reason})` : figure(turn.scores[index]) + beside;
      list.append(make("dt", "", column.name), make("dd", "", shown));
    });
    box.append(list);
    if (turn.references.length) {
      const references = make("ul");
      turn.references.forEach((text) => references.append(make("li", "text", text)));
      box.append(make("h4", "", "References"), references);
    }
    const explained = Object.entries(turn.explanation);
    if (explained.length) {
      box.append(make("h4", "", "Explanation"), named(explained, (value, column) => explanation(value, drawings.get(column))));
    }
    return box;
  }

  // Arcs from the turns that a response depends on, as long as its scores are open.

  const drawings = new Map(columns.map((column) => [column.name, column.drawing]));

  function dependentsOf(turn) {
    return Object.entries(turn.explanation)
      .flatMap(([column, { dependents }]) => (drawings.get(column) === "arcs" && dependents) || []);
  }

  function arcs({ node, turns }) {
    const open = turns.filter((view) => view.box && view.box.open);
    drawArcs(node, open.flatMap((view) => dependentsOf(view.turn)
      .filter(({ turn }) => turns[turn])
      .map(({ turn, p, direct }) => ({ from: turns[turn].bubble, to: view.bubble, p, direct }))));
  }

  function watchArcs(view) {
    if (!view.turns.some(({ turn }) => turn.scores && dependentsOf(turn).length)) return;
    for (const { box } of view.turns) {
      if (box) box.addEventListener("toggle", () => arcs(view));
    }
    new ResizeObserver(() => arcs(view)).observe(view.node);
  }

  // Conversations: drawn once, recoloured, reordered and hidden afterwards.

  function drawTurn(turn) {
    const node = make("div", `turn ${turn.side === "user" ? "user" : "system"}`);
    const who = make("div", "who");
    who.append(make("bdi", "", turn.speaker));
    const bubble = make("div", "bubble");
    const text = isEmpty(turn) ? make("p", "quiet", "(empty)") : make("p", "text", turn.text);
    text.dir = "auto";
    bubble.append(text);
    node.append(who, bubble);
    const view = { turn, node, bubble, summary: null, box: null };
    if (turn.scores) {
      const box = make("details", "scores");
      view.box = box;
      view.summary = make("summary");
      view.summary.title = columns
        .map((column, index) => `${column.name} ${figure(turn.scores[index])}`).join("\n");
      box.append(view.summary);
      box.addEventListener("toggle", () => {
        if (box.open && !box.querySelector("dl")) box.append(details(turn));
      });
      bubble.append(box);
    }
    return view;
  }

  function drawTalk(talk) {
    const node = make("article", "talk");
    const head = make("header");
    const title = make("h3");
    title.append(make("bdi", "", talk.id));
    const tag = make("span", "tag");
    tag.append(make("bdi", "", systems[talk.system]));
    const mean = make("span", "mean");
    head.append(title, tag, mean);
    node.append(head);
    if (talk.note) {
      const note = make("p", "note", talk.note);
      note.dir = "auto";
      node.append(note);
    }
    const turns = talk.turns.map(drawTurn);
    node.append(...turns.map((view) => view.node));
    const words = [talk.id, talk.note || "", ...talk.turns.map((turn) => turn.text)];
    const view = { talk, node, mean, turns, words: words.join("\n").toLowerCase() };
    watchArcs(view);
    return view;
  }

  const views = dialogues.map((talk) => drawTalk(talk));
  const ranks = new Map();

  function colour(column) {
    if (!ranks.has(column)) ranks.set(column, rankOf(column));
    const rank = ranks.get(column);
    const name = columns[column].name;
    for (const view of views) {
      const mean = meanOf(view.talk, column);
      view.mean.textContent = mean === null ? `${name} unscored` : `mean ${name} ${figure(mean)}`;
      for (const { turn, bubble, summary } of view.turns) {
        if (!turn.scores) continue;
        const value = turn.scores[column];
        const unscored = isEmpty(turn) && columns[column].directed ? 0 : "none";
        bubble.dataset.step = value === null
          ? unscored : Math.min(STEPS - 1, Math.floor(rank.get(value) * STEPS));
        summary.textContent = `${name} ${figure(value)}`;
      }
    }
    document.querySelectorAll("[data-column]").forEach((node) => {
      node.classList.toggle("chosen", Number(node.dataset.column) === column);
    });
  }

  function sort(column) {
    const order = at("order").value;
    const sign = (order === "worst") === columns[column].higher ? 1 : -1;
    const keyed = views.map((view) => [view, meanOf(view.talk, column)]);
    if (order !== "given") {
      // What has no score comes last in either order.
      keyed.sort(([, x], [, y]) => (x === null) - (y === null) || sign * (x - y));
    }
    at("conversations").append(...keyed.map(([view]) => view.node));
  }

  function filter() {
    const system = at("system").value;
    const wanted = at("search").value.toLowerCase().trim();
    let count = 0;
    for (const { node, talk, words } of views) {
      node.hidden = !(system === "" || talk.system === Number(system)) || !words.includes(wanted);
      count += !node.hidden;
    }
    at("shown").textContent = `${count} of ${views.length} conversations`;
  }

  function goTo(place, turn) {
    at("search").value = "";
    at("system").value = "";
    chooseSystem();
    document.querySelectorAll(".turn.focus").forEach((node) => node.classList.remove("focus"));
    const { node, summary } = views[place].turns[turn];
    node.classList.add("focus");
    node.scrollIntoView({ block: "center" });
    summary.focus({ preventScroll: true });
  }

  function listWorst(column) {
    const system = at("system").value;
    const { name, higher } = columns[column];
    const kept = worst[column].filter((entry) => system === "" || entry.system === Number(system));
    at("worst-note").textContent = `The ${higher ? "lowest" : "highest"} values of ${name}, each with the turn it answers.`;
    at("worst").replaceChildren(...kept.slice(0, WORST).map((entry) => {
      const item = make("li");
      const before = make("p", "before text", entry.before);
      const text = make("p", "text", entry.text);
      before.dir = text.dir = "auto";
      const meta = make("div", "meta");
      const source = entry.place === null ? make("span") : make("button", "link");
      if (entry.place !== null) {
        source.type = "button";
        source.addEventListener("click", () => goTo(entry.place, entry.turn));
      }
      source.append(make("bdi", "", entry.id), `, turn ${entry.turn}`);
      const who = make("bdi", "", systems[entry.system]);
      const score = entry.value === null ? "empty" : `${name} ${figure(entry.value)}`;
      meta.append(make("b", "", score), who, source);
      item.append(before, text, meta);
      return item;
    }));
  }

  const chosen = () => Number(at("metric").value);

  function chooseMetric() {
    colour(chosen());
    listWorst(chosen());
    sort(chosen());
  }

  function chooseSystem() {
    if (columns.length) listWorst(chosen());
    filter();
  }

  function option(value, text) {
    const node = make("option", "", text);
    node.value = value;
    return node;
  }

  columns.forEach((column, index) => at("metric").append(option(index, column.name)));
  systems.forEach((label, index) => at("system").append(option(index, label)));
  at("metric").value = String(Math.max(0, columns.findIndex((column) => !column.sentinel)));
  at("controls").addEventListener("submit", (event) => event.preventDefault());
  at("metric").addEventListener("change", chooseMetric);
  at("order").addEventListener("change", () => sort(chosen()));
  at("system").addEventListener("change", chooseSystem);
  at("search").addEventListener("input", filter);
  at("conversations").append(...views.map((view) => view.node));
  if (columns.length) chooseMetric();
  chooseSystem();
})();
