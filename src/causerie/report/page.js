"use strict";
// Everything from the data reaches the page as text (textContent, never markup).
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { columns, systems, worst, dialogues } = data;
  const STEPS = 7;
  const WORST = 6;
  const at = (id) => document.getElementById(id);

  function make(tag, className, text) {
    const node = document.createElement(tag);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    return node;
  }

  function figure(value) {
    if (value === null || value === undefined) return "unscored";
    const size = Math.abs(value);
    const digits = size >= 1000 && size < 1e6
      ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));
    return digits.replace("-", "−");
  }

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
      box.append(make("h4", "", "Explanation"), named(explained, explanation));
    }
    return box;
  }

  // An explanation is drawn as its metric says: a graph of topics, or lists of keys and values.
  // Arcs are drawn over the conversation, beside the list.

  const drawings = new Map(columns.map((column) => [column.name, column.drawing]));

  function explanation(value, column) {
    if (drawings.get(column) !== "graph" || !value.topics) return listed(value);
    const { topics, edges, ...others } = value;
    const box = make("div");
    box.append(topicGraph({ topics, edges }), listed(others));
    return box;
  }

  function named(entries, draw) {
    const list = make("dl");
    entries.forEach(([key, item]) => {
      const entry = make("dd");
      entry.append(draw(item, key));
      list.append(make("dt", "", key), entry);
    });
    return list;
  }

  function listed(value) {
    if (Array.isArray(value)) {
      const list = make("ul");
      value.forEach((item) => {
        const entry = make("li");
        entry.append(listed(item));
        list.append(entry);
      });
      return list;
    }
    if (value !== null && typeof value === "object") return named(Object.entries(value), listed);
    return make("span", "", typeof value === "number" ? figure(value) : String(value));
  }

  // A topic graph: words of the context on the left, of the response on the right, wide lines
  // where attention is, strong ones where the way between two words is short.

  const ROW = 22;
  const SIDE = 120;
  const ACROSS = 110;
  const NAMED = 5;

  function wayOf({ path, hops }, from, to) {
    if (!path) return `${from} … ${to} (no path)`;
    return `${path.length > 1 ? path.join(" – ") : `${from} = ${to}`} (${hops} hop${hops === 1 ? "" : "s"})`;
  }

  function topicGraph({ topics, edges }) {
    const box = make("div");
    const rows = Math.max(topics.context.length, topics.response.length);
    if (!rows) return make("span", "", "none");
    const height = ROW * rows;
    const y = (side, place) => (height * (place + 0.5)) / topics[side].length;
    const drawing = shape("svg", {
      class: "topics", role: "img", viewBox: `0 0 ${2 * SIDE + ACROSS} ${height}`,
      "aria-label": "topics of the context and of the response",
    });
    const strongest = Math.max(...edges.map((edge) => edge.attention || 0), 1e-9);
    const way = (edge) => wayOf(edge, topics.context[edge.context], topics.response[edge.response]);
    for (const edge of edges) {
      const line = shape("line", {
        x1: SIDE + 4, y1: y("context", edge.context),
        x2: SIDE + ACROSS - 4, y2: y("response", edge.response),
        "stroke-width": 0.5 + 3.5 * ((edge.attention || 0) / strongest),
        "stroke-opacity": 0.15 + 0.85 * edge.weight,
      });
      const title = shape("title", {});
      title.textContent = edge.attention === undefined
        ? way(edge) : `${way(edge)}, attention ${figure(edge.attention)}`;
      line.append(title);
      drawing.append(line);
    }
    for (const [side, x, anchor] of [["context", SIDE, "end"], ["response", SIDE + ACROSS, "start"]]) {
      topics[side].forEach((word, place) => {
        const text = shape("text", { x, y: y(side, place), "text-anchor": anchor, class: side });
        text.textContent = word.length > 18 ? `${word.slice(0, 17)}…` : word;
        drawing.append(text);
      });
    }
    const ways = make("ul");
    [...edges]
      .sort((a, b) => b.weight - a.weight || (b.attention || 0) - (a.attention || 0))
      .slice(0, NAMED)
      .forEach((edge) => ways.append(make("li", "", way(edge))));
    box.append(drawing, ways);
    return box;
  }

  // Arcs from the turns that a response depends on, as long as its scores are open.

  const GUTTER = 3;

  function dependentsOf(turn) {
    return Object.entries(turn.explanation)
      .flatMap(([column, { dependents }]) => (drawings.get(column) === "arcs" && dependents) || []);
  }

  // The name of its space is an address, which nothing on this page may be: asked of the parser.
  const drawing = new DOMParser().parseFromString("<svg>", "text/html").querySelector("svg");

  function shape(tag, attributes) {
    const node = document.createElementNS(drawing.namespaceURI, tag);
    Object.entries(attributes).forEach(([name, value]) => node.setAttribute(name, value));
    return node;
  }

  function arcs({ node, turns }) {
    const around = node.getBoundingClientRect();
    const place = (view) => {
      const box = view.bubble.getBoundingClientRect();
      return { x: box.left - around.left, y: box.top - around.top + Math.min(box.height / 2, 18) };
    };
    const drawn = [];
    for (const view of turns) {
      if (!view.box || !view.box.open) continue;
      const to = place(view);
      for (const { turn, p, direct } of dependentsOf(view.turn)) {
        if (!turns[turn]) continue;
        const from = place(turns[turn]);
        // A curve comes three quarters of the way to its control points.
        const left = Math.min(from.x, to.x);
        const bow = left - (left - GUTTER) / 0.75;
        drawn.push(shape("path", {
          d: `M${from.x},${from.y} C${bow},${from.y} ${bow},${to.y} ${to.x},${to.y}`
            + ` m-7,-4 l7,4 l-7,4`,
          "stroke-width": 1 + 2 * p,
          "stroke-dasharray": direct ? "none" : "5 4",
        }));
      }
    }
    let svg = node.querySelector("svg.arcs");
    if (!svg && drawn.length) {
      // What it shows is in the explanation, too, as text.
      svg = shape("svg", { class: "arcs", "aria-hidden": "true" });
      node.append(svg);
    }
    if (svg) svg.replaceChildren(...drawn);
  }

  function drawArcs(view) {
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
    drawArcs(view);
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
