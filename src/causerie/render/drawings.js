// Drawings that written pages and the explorer share. A written page holds this text before its own
// script, without the last line; the explorer imports it.
// Everything from the data reaches the page as text (textContent, never markup).

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

// An explanation is drawn as its metric says: a graph of topics, or lists of keys and values. Arcs
// are drawn over the conversation; beside it stands in words what they show.

function explanation(value, drawing) {
  if (drawing === "arcs" && isCauses(value)) return causes(value);
  if (drawing !== "graph" || !value.topics) return listed(value);
  const { topics, edges, ...others } = value;
  const box = make("div");
  box.append(topicGraph({ topics, edges }), listed(others));
  return box;
}

// How surely a response depends on a turn, and how surely if another one is known (a row for each
// turn, a column for each other).

const isCauses = ({ dependents }) => Array.isArray(dependents)
  && dependents.every((one) => one !== null && typeof one === "object" && typeof one.p === "number");

function causes({ dependents, conditional, ...others }) {
  const box = make("div");
  if (!dependents.length) box.append(make("span", "", "It depends on no turn before it."));
  const list = make("ul");
  dependents.forEach(({ turn, p, direct }, row) => {
    const given = dependents.map((other, column) => [other, ((conditional || [])[row] || [])[column]])
      .filter(([, known]) => typeof known === "number")
      .map(([other, known]) => `${percent(known)} beside turn ${other.turn}`);
    const surely = [percent(p), ...given].join(", ");
    list.append(make("li", "", `turn ${turn}${direct ? ", a direct cause" : ""}: ${surely}`));
  });
  if (dependents.length) box.append(list);
  if (Object.keys(others).length) box.append(listed(others));
  return box;
}

const percent = (p) => `${Math.round(100 * p)}%`;

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

// The name of its space is an address, which nothing on a written page may be: asked of the parser.
const drawing = new DOMParser().parseFromString("<svg>", "text/html").querySelector("svg");

function shape(tag, attributes) {
  const node = document.createElementNS(drawing.namespaceURI, tag);
  Object.entries(attributes).forEach(([name, value]) => node.setAttribute(name, value));
  return node;
}

// Arcs from turns to those that depend on them: [{ from, to, p, direct }] of elements in `node`.
// They run left of all bubbles, where no text is, the longest outermost.

const GUTTER = 4;
const LANE = 7;
const BEND = 8;

function drawArcs(node, arcs) {
  const around = node.getBoundingClientRect();
  const place = (bubble) => {
    const box = bubble.getBoundingClientRect();
    return { x: box.left - around.left, y: box.top - around.top + Math.min(box.height / 2, 18) };
  };
  const long = ({ from, to }) => Math.abs(to.y - from.y);
  const drawn = arcs.map(({ from, to, ...arc }) => ({ ...arc, from: place(from), to: place(to) }))
    .sort((a, b) => long(b) - long(a))
    .map(({ from, to, p, direct }, number, all) => {
      const room = Math.max(0, Math.min(from.x, to.x) - GUTTER - 2 * BEND);
      const x = GUTTER + number * Math.min(LANE, room / all.length);
      const down = from.y < to.y ? BEND : -BEND;
      return shape("path", {
        d: `M${from.x},${from.y} H${x + BEND} Q${x},${from.y} ${x},${from.y + down}`
          + ` V${to.y - down} Q${x},${to.y} ${x + BEND},${to.y} H${to.x} m-6,-4 l6,4 l-6,4`,
        "stroke-width": 1 + 2 * p,
        "stroke-dasharray": direct ? "none" : "5 4",
      });
    });
  let svg = node.querySelector("svg.arcs");
  if (!svg && drawn.length) {
    // What it shows is in the explanation, too, as text.
    svg = shape("svg", { class: "arcs", "aria-hidden": "true" });
    node.append(svg);
  }
  if (svg) svg.replaceChildren(...drawn);
}

export { drawArcs, explanation, figure, make, named, shape };
