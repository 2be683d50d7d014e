// What more annotations bring: the quality of a metric that was trained on growing parts of them.
import { shape } from "/static/dom.js";

const [WIDTH, HEIGHT, LEFT, FOOT] = [560, 220, 44, 26];
const STEP = 0.05;

// The picture of [{ annotations, auc, low, high }], and in a sentence whether it still rises.
export function learning(points) {
  if (points.length < 2) return { picture: null, said: "" };
  const ends = points.flatMap(({ auc, low, high }) => [low ?? auc, high ?? auc]);
  const bottom = Math.floor(Math.min(...ends) / STEP) * STEP;
  const top = Math.ceil(Math.max(...ends) / STEP) * STEP;
  const most = Math.max(...points.map(({ annotations }) => annotations));
  const x = (n) => LEFT + 12 + (n / most) * (WIDTH - LEFT - 40);
  const y = (auc) => HEIGHT - FOOT - ((auc - bottom) / (top - bottom || 1)) * (HEIGHT - FOOT - 12);
  const inside = [];
  for (let auc = bottom; auc < top + STEP / 2; auc += STEP) {
    inside.push(shape("path", { class: "grid", d: `M${LEFT},${y(auc)}H${WIDTH - 8}` }));
    inside.push(shape("text", { x: LEFT - 8, y: y(auc) + 4, "text-anchor": "end" }, auc.toFixed(2)));
  }
  const path = points.map(({ annotations, auc }, i) => `${i ? "L" : "M"}${x(annotations)},${y(auc)}`);
  inside.push(shape("path", { class: "line", d: path.join("") }));
  for (const { annotations, auc, low, high } of points) {
    if (low !== null) inside.push(shape("path", { class: "whisker", d: `M${x(annotations)},${y(low)}V${y(high)}` }));
    inside.push(shape("circle", { cx: x(annotations), cy: y(auc), r: 4 }));
    inside.push(shape("text", { x: x(annotations), y: HEIGHT - 6, "text-anchor": "middle" }, annotations.toLocaleString("en")));
  }
  const said = verdict(points);
  const picture = shape("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "drawn", role: "img",
    "aria-label": `Validation AUC by annotated exchanges. ${said}`,
  }, ...inside);
  return { picture, said };
}

// A rise counts where the interval of the last point lies above the point before it.
function verdict(points) {
  const [before, last] = points.slice(-2);
  const gain = last.auc - before.auc;
  const from = `From ${before.annotations.toLocaleString("en")} to ${last.annotations.toLocaleString("en")} annotated exchanges the AUC`;
  if (last.low !== null && last.low > before.auc) {
    return `${from} rose by ${gain.toFixed(3)}, which is more than chance would do: more annotations may help.`;
  }
  return `${from} changed by ${gain.toFixed(3)}, which may be chance.`;
}
