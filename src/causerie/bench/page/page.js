"use strict";
// Everything from the data reaches the page as text (textContent, never markup).
(() => {
  const at = (id) => document.getElementById(id);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Signature: selecting and copying needs no permission; where it fails, it stays selected.

  at("copy").hidden = false;
  at("copy").addEventListener("click", () => {
    getSelection().selectAllChildren(at("signature"));
    const done = document.execCommand("copy");
    at("copied").textContent = done ? "copied" : "selected: copy it with the keyboard";
  });

  // Heat map: one table per statistic, one of them shown.

  at("statistic-label").hidden = false;
  at("statistic").addEventListener("change", (event) => {
    all(".map").forEach((map, index) => { map.hidden = index !== event.target.selectedIndex; });
  });

  // Grids: arrow keys walk through the cells; the cell's title is read out below the table.

  const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

  all("table.grid").forEach((table) => {
    const readout = table.parentElement.nextElementSibling;
    const hint = "Point at a cell, or walk through them with the arrow keys, to read it in full.";
    const cells = [...table.tBodies[0].rows].map((row) => all("td", row));
    let current = cells[0] && cells[0][0];
    readout.textContent = hint;
    cells.flat().forEach((cell) => {
      cell.dataset.said = cell.title;
      cell.removeAttribute("title"); // or the browser would show it a second time
      cell.tabIndex = cell === current ? 0 : -1;
    });
    const tell = (event) => {
      const cell = event.target.closest("td");
      if (cell) readout.textContent = cell.dataset.said;
    };
    table.addEventListener("mouseover", tell);
    table.addEventListener("focusin", (event) => {
      const cell = event.target.closest("td");
      if (!cell) return;
      current.tabIndex = -1;
      current = cell;
      current.tabIndex = 0;
      tell(event);
    });
    table.addEventListener("keydown", (event) => {
      const step = STEPS[event.key];
      const line = cells.findIndex((row) => row.includes(event.target));
      if (!step || line < 0) return;
      const next = (cells[line + step[0]] || [])[cells[line].indexOf(event.target) + step[1]];
      event.preventDefault();
      if (next) next.focus();
    });
  });

  // Scatter plots: a metric's scores (up) against what people said (across).

  function draw(parent, tag, attributes, text) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    Object.entries(attributes).forEach(([key, value]) => node.setAttribute(key, value));
    if (text !== undefined) node.textContent = text;
    parent.append(node);
    return node;
  }

  function figure(value) {
    const size = Math.abs(value);
    const digits = size >= 1000 && size < 1e6
      ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(4)));
    return digits.replace("-", "−");
  }

  function ticksOf(low, high, wanted) {
    const rough = (high - low) / wanted;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= rough * 0.999);
    const ticks = [];
    for (let n = Math.ceil(low / step - 1e-6); n * step <= high + step * 1e-6; n += 1) ticks.push(n * step);
    return ticks;
  }

  // The values with room around them, but without a few far outliers that would flatten the rest.
  function rangeOf(values) {
    const sorted = [...values].sort((a, b) => a - b);
    let [low, high] = [sorted[0], sorted[sorted.length - 1]];
    const quarter = sorted[Math.floor(sorted.length / 4)];
    const upper = sorted[Math.floor((3 * sorted.length) / 4)];
    const fence = 3 * (upper - quarter);
    const [bottom, top] = [Math.max(low, quarter - fence), Math.min(high, upper + fence)];
    const far = sorted.filter((value) => value < bottom || value > top).length;
    if (far <= sorted.length / 50 && top - bottom < (high - low) / 2) [low, high] = [bottom, top];
    const room = (high - low) * 0.05 || Math.abs(low) / 2 || 1;
    return [low - room, high + room];
  }

  // Ratings fall on few values; dots are spread within a part of the gap between them, always alike.
  function jittered(values) {
    const distinct = [...new Set(values)].sort((a, b) => a - b);
    const gaps = distinct.slice(1).map((value, index) => value - distinct[index]);
    const span = distinct.length > 1 ? distinct[distinct.length - 1] - distinct[0] : 1;
    const reach = Math.min(span / 25, gaps.length ? Math.min(...gaps) * 0.8 : span / 25);
    return values.map((value, index) => value + (((index * 0.618034) % 1) - 0.5) * reach);
  }

  function lineOf(across, up) {
    const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
    const [x, y] = [mean(across), mean(up)];
    const spread = across.reduce((sum, value) => sum + (value - x) ** 2, 0);
    if (!spread) return null;
    const slope = across.reduce((sum, value, i) => sum + (value - x) * (up[i] - y), 0) / spread;
    return (value) => y + slope * (value - x);
  }

  function plot(box, set, metric) {
    const kept = metric.scores.map((_, i) => i).filter((i) => metric.scores[i] !== null);
    const across = kept.map((i) => set.human[i]);
    const up = kept.map((i) => metric.scores[i]);
    const width = Math.max(280, Math.min(640, box.clientWidth));
    const height = Math.round(width * 0.66);
    const [left, right, top, bottom] = [54, width - 8, 26, height - 42];
    const [[x0, x1], [y0, y1]] = [rangeOf(across), rangeOf(up)];
    const x = (value) => ((value - x0) / (x1 - x0)) * (right - left);
    const y = (value) => (1 - (value - y0) / (y1 - y0)) * (bottom - top);
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("role", "img");
    draw(svg, "title", {}, `${metric.name} against human judgement`);
    draw(svg, "desc", {}, `${kept.length} points. ${metric.said}`);
    for (const value of ticksOf(y0, y1, 5)) {
      draw(svg, "path", { class: "rule", d: `M${left} ${top + y(value)}H${right}` });
      draw(svg, "text", { x: left - 6, y: top + y(value) + 4, "text-anchor": "end" }, figure(value));
    }
    for (const value of ticksOf(x0, x1, 6)) {
      draw(svg, "text", { x: left + x(value), y: bottom + 16, "text-anchor": "middle" }, figure(value));
    }
    draw(svg, "path", { class: "frame", d: `M${left} ${top}V${bottom}H${right}` });
    draw(svg, "text", { class: "name", x: (left + right) / 2, y: height - 6, "text-anchor": "middle" }, set.across);
    draw(svg, "text", { class: "name", x: 4, y: 13 }, `${metric.name}${metric.higher ? "" : " (lower is better)"}`);
    // An inner drawing clips what lies outside it.
    const inner = draw(svg, "svg", { x: left, y: top, width: right - left, height: bottom - top });
    jittered(across).forEach((value, n) => {
      const beyond = up[n] < y0 || up[n] > y1;
      const spot = { cx: x(value).toFixed(1), cy: y(Math.min(y1, Math.max(y0, up[n]))).toFixed(1), r: 3 };
      spot.class = (set.written[kept[n]] ? "written" : "made") + (beyond ? " beyond" : "");
      const dot = draw(inner, "circle", spot);
      draw(dot, "title", {}, `${set.points[kept[n]]}: ${figure(up[n])}, people ${figure(across[n])}`);
    });
    const line = lineOf(across, up);
    if (line) {
      draw(inner, "path", { class: "line", d: `M${x(x0)} ${y(line(x0))}L${x(x1)} ${y(line(x1))}` });
    }
    box.replaceChildren(svg);
    const beyond = up.filter((value) => value < y0 || value > y1).length;
    return [
      `${metric.said}.`,
      `${kept.length} items${kept.some((i) => set.written[i]) ? ", human-written responses hollow" : ""}, spread sideways a little; line: least squares.`,
      beyond ? `${beyond} beyond the scale, at its edge.` : "",
    ].filter(Boolean).join(" ");
  }

  const sets = JSON.parse(at("data").textContent);
  all(".scatter").forEach((frame) => {
    const set = sets[Number(frame.dataset.set)];
    const [select, box, said] = ["select", ".plot", ".said"].map((s) => frame.querySelector(s));
    if (!set.metrics.length) {
      select.parentElement.hidden = true;
      said.textContent = "No metric has a score to show.";
      return;
    }
    set.metrics.forEach((metric) => {
      const option = document.createElement("option");
      option.textContent = metric.name;
      select.append(option);
    });
    select.selectedIndex = Math.max(0, set.metrics.findIndex(({ name }) => name === set.chosen));
    const show = () => { said.textContent = plot(box, set, set.metrics[select.selectedIndex]); };
    select.addEventListener("change", show);
    let width = -1;
    new ResizeObserver(() => {
      if (box.clientWidth !== width) show();
      width = box.clientWidth;
    }).observe(box);
  });
})();
