// Charts as SVG: intervals on one axis, histograms, lines along a conversation, a history.
import { figure, make, named, shape } from "/static/dom.js";

const WIDTH = 640;

function ticksOf(low, high, most = 6) {
  const raw = (high - low || Math.abs(high) || 1) / most;
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((n) => n * size).find((n) => n >= raw);
  const ticks = [];
  for (let n = Math.floor(low / step); n <= Math.ceil(high / step); n += 1) ticks.push(n * step);
  return ticks;
}

function scaleOf(values, from, to) {
  const ticks = ticksOf(Math.min(...values), Math.max(...values));
  const [low, high] = [ticks[0], ticks[ticks.length - 1]];
  const at = (value) => from + ((value - low) / (high - low || 1)) * (to - from);
  return { ticks, at };
}

const drawing = (width, height, spoken, ...inside) => shape("svg", {
  viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": spoken, class: "drawn",
}, ...inside);

const titled = (node, text) => {
  node.append(shape("title", {}, text));
  return node;
};

// Means with their intervals: [{ label, mean: { value, low, high }, href, series }].
export function intervals(rows, spoken) {
  const known = rows.filter(({ mean }) => mean);
  const ends = known.flatMap(({ mean }) => [mean.low ?? mean.value, mean.high ?? mean.value]);
  if (!ends.length) return make("p", { class: "quiet" }, "Nothing is scored.");
  const { ticks, at } = scaleOf(ends, 12, WIDTH - 12);
  const list = make("ul", { class: "intervals", "aria-label": spoken });
  known.forEach(({ label, mean, href, series, note }) => {
    const [low, high] = [mean.low ?? mean.value, mean.high ?? mean.value];
    const said = `${label}: ${figure(mean.value)}, between ${figure(low)} and ${figure(high)}`;
    const grid = ticks.map((tick) => shape("path", { class: "grid", d: `M${at(tick)},0V28` }));
    const picture = shape(
      "svg",
      { viewBox: `0 0 ${WIDTH} 28`, "aria-hidden": "true", class: `drawn series-${series}`, preserveAspectRatio: "none" },
      ...grid,
      titled(shape("path", { class: "whisker", d: `M${at(low)},14H${at(high)}` }), said),
      titled(shape("path", { class: "dot", d: `M${at(mean.value)},14h0` }), said),
    );
    list.append(make(
      "li", {},
      make("span", { class: "who" }, href ? make("a", { href }, named(label)) : named(label)),
      picture,
      make("span", { class: "value" }, make("b", {}, figure(mean.value)), mean.low === null ? "" : ` ${figure(low)} to ${figure(high)}`),
      note ? make("span", { class: "note quiet" }, note) : null,
    ));
  });
  const axis = make("div", { class: "ticks" }, ...ticks.map((tick) => {
    const mark = make("span", {}, figure(Number(tick.toPrecision(6))));
    mark.style.left = `${(100 * at(tick)) / WIDTH}%`; // the picture is stretched, words are not
    return mark;
  }));
  list.append(make("li", { class: "axis", "aria-hidden": "true" }, make("span", { class: "who" }), axis, make("span", { class: "value" })));
  return list;
}

// Shares of each system's replies in bars of one axis.
export function histograms({ edges, ticks, systems, below, above }, seriesOf) {
  const [width, height] = [340, 56];
  const [low, high] = [edges[0], edges[edges.length - 1]];
  const x = (value) => ((value - low) / (high - low)) * width;
  const tallest = Math.max(...systems.flatMap(({ shares }) => shares));
  const box = make("div", { class: "cards" });
  for (const { label, shares } of systems) {
    const mode = shares.indexOf(Math.max(...shares));
    const spoken = `${label}: most replies lie between ${figure(edges[mode])} and ${figure(edges[mode + 1])}`;
    const bars = shares.map((part, i) => titled(shape("rect", {
      x: x(edges[i]) + 0.5, width: Math.max(0.5, width / shares.length - 1),
      y: height - (part / tallest) * (height - 4), height: (part / tallest) * (height - 4),
    }), `${figure(edges[i])} to ${figure(edges[i + 1])}: ${(100 * part).toFixed(1)}%`));
    const marks = ticks.map((tick) => shape("text", { x: Math.min(width - 8, Math.max(8, x(tick))), y: height + 15, "text-anchor": "middle" }, figure(Number(tick.toPrecision(6)))));
    box.append(make(
      "figure", { class: `card histogram series-${seriesOf(label)}` },
      make("figcaption", {}, named(label)),
      drawing(width, height + 20, spoken, ...bars, shape("path", { class: "base", d: `M0,${height}H${width}` }), ...marks),
    ));
  }
  const beyond = [[below, "below"], [above, "above"]].filter(([count]) => count).map(([count, side]) => `${count.toLocaleString("en")} ${side}`);
  const remark = beyond.length ? make("p", { class: "quiet" }, `${beyond.join(" and ")} this range, in the outermost bars.`) : null;
  return make("div", {}, box, remark);
}

// Means by turn: [{ system, turn, mean, n }], a line for each system.
export function lines(points, seriesOf, spoken) {
  const [width, height, left, foot] = [WIDTH, 230, 46, 34];
  const values = scaleOf(points.map(({ mean }) => mean), height - foot, 10);
  const last = Math.max(...points.map(({ turn }) => turn), 1);
  const x = (turn) => left + (turn / last) * (width - left - 10);
  const inside = values.ticks.flatMap((tick) => [
    shape("path", { class: "grid", d: `M${left},${values.at(tick)}H${width - 10}` }),
    shape("text", { x: left - 6, y: values.at(tick) + 4, "text-anchor": "end" }, figure(Number(tick.toPrecision(6)))),
  ]);
  for (let turn = 0; turn <= last; turn += Math.max(1, Math.ceil(last / 10))) {
    inside.push(shape("text", { x: x(turn), y: height - foot + 16, "text-anchor": "middle" }, turn));
  }
  inside.push(shape("text", { x: (left + width) / 2, y: height - 2, "text-anchor": "middle" }, "turn of the conversation"));
  const systems = [...new Set(points.map(({ system }) => system))];
  for (const system of systems) {
    const own = points.filter((point) => point.system === system);
    const path = own.map(({ turn, mean }, i) => `${i ? "L" : "M"}${x(turn)},${values.at(mean)}`).join("");
    inside.push(shape("g", { class: `series-${seriesOf(system)}` }, shape("path", { class: "line", d: path }), ...own.map(({ turn, mean, n }) => titled(
      shape("circle", { cx: x(turn), cy: values.at(mean), r: 3 }),
      `${system}, turn ${turn}: ${figure(mean)} (${n.toLocaleString("en")} replies)`,
    ))));
  }
  return drawing(width, height, spoken, ...inside);
}

export function legend(systems, seriesOf) {
  return make("ul", { class: "legend-list" }, ...systems.map((label) => make(
    "li", { class: `series-${seriesOf(label)}` }, make("i", { "aria-hidden": "true" }), named(label),
  )));
}

// Values in order, with what to do when one is chosen: [{ value, step, said, choose }].
export function sparkline(points, spoken) {
  const known = points.filter(({ value }) => value !== null);
  if (known.length < 2) return null;
  const [width, height] = [Math.max(160, Math.min(900, 26 * points.length)), 54];
  const values = scaleOf(known.map(({ value }) => value), height - 7, 7);
  const x = (i) => 8 + (i / (points.length - 1)) * (width - 16);
  const path = points.map(({ value }, i) => (value === null ? "" : `${i && points[i - 1].value !== null ? "L" : "M"}${x(i)},${values.at(value)}`)).join("");
  const dots = points.flatMap(({ value, step, said, choose }, i) => {
    if (value === null) return [];
    const dot = titled(shape("circle", { cx: x(i), cy: values.at(value), r: 5, "data-step": step }), said);
    dot.addEventListener("click", choose);
    return [dot];
  });
  const box = drawing(width, height, spoken, shape("path", { class: "line", d: path }), ...dots);
  box.classList.add("spark");
  return box;
}

// Means over time: [{ label, mean, when }], the earliest first.
export function past(points, spoken) {
  const known = points.filter(({ mean }) => mean);
  if (known.length < 2) return null;
  const [width, height, left, foot] = [WIDTH, 210, 46, 26];
  const ends = known.flatMap(({ mean }) => [mean.low ?? mean.value, mean.high ?? mean.value]);
  const values = scaleOf(ends, height - foot, 10);
  const x = (i) => left + 20 + (i / (known.length - 1)) * (width - left - 50);
  const inside = values.ticks.flatMap((tick) => [
    shape("path", { class: "grid", d: `M${left},${values.at(tick)}H${width - 10}` }),
    shape("text", { x: left - 6, y: values.at(tick) + 4, "text-anchor": "end" }, figure(Number(tick.toPrecision(6)))),
  ]);
  const path = known.map(({ mean }, i) => `${i ? "L" : "M"}${x(i)},${values.at(mean.value)}`).join("");
  inside.push(shape("path", { class: "line", d: path }));
  known.forEach(({ label, mean, when }, i) => {
    if (mean.low !== null) inside.push(shape("path", { class: "whisker", d: `M${x(i)},${values.at(mean.low)}V${values.at(mean.high)}` }));
    inside.push(titled(shape("circle", { cx: x(i), cy: values.at(mean.value), r: 4.5 }), `${label}, ${when}: ${figure(mean.value)}`));
  });
  inside.push(shape("text", { x: x(0), y: height - 6, "text-anchor": "start" }, known[0].when));
  inside.push(shape("text", { x: x(known.length - 1), y: height - 6, "text-anchor": "end" }, known[known.length - 1].when));
  const box = drawing(width, height, spoken, shape("g", { class: "series-0" }, ...inside));
  return box;
}
