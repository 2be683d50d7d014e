// What every page uses. Everything from data reaches a page as text (textContent, never markup).

export const at = (id) => document.getElementById(id);

// make("button", { class: "primary", type: "button", on: { click: f } }, "Text", node, ...)
export function make(tag, attributes = {}, ...inside) {
  const { on = {}, ...others } = attributes;
  const node = document.createElement(tag);
  setAll(node, others);
  Object.entries(on).forEach(([event, listener]) => node.addEventListener(event, listener));
  node.append(...inside.filter((item) => item !== null && item !== undefined).map(asNode));
  return node;
}

const asNode = (item) => (item instanceof Node ? item : document.createTextNode(String(item)));

function setAll(node, attributes) {
  Object.entries(attributes).forEach(([name, value]) => {
    if (/^on/i.test(name) || name === "style") throw new Error(`no attribute ${name} here`);
    if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  });
}

// An element of a drawing: shape("line", { x1: 0, ... }).
export function shape(tag, attributes = {}, ...inside) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  setAll(node, attributes);
  node.append(...inside.map(asNode));
  return node;
}

// Text of others, which keeps its own writing direction to itself.
export const named = (text) => make("bdi", {}, text);

export function figure(value) {
  if (value === null || value === undefined) return "unscored";
  const size = Math.abs(value);
  const digits = size >= 1000 && size < 1e6
    ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));
  return digits.replace("-", "−");
}

// The answer of the server as JSON; its sentence as an Error where it refuses. A body is a file as
// it is, or anything else as JSON.
export async function send(method, path, body, { signal } = {}) {
  const request = { method, signal, headers: { Accept: "application/json" } };
  if (body instanceof Blob) {
    request.headers["Content-Type"] = "application/octet-stream";
    request.body = body;
  } else if (body !== undefined) {
    request.headers["Content-Type"] = "application/json";
    request.body = JSON.stringify(body);
  }
  const response = await fetch(path, request);
  const answer = response.status === 204 ? null : await response.json().catch(() => ({}));
  if (!response.ok) {
    const error = new Error(answer.error || `the server answered with status ${response.status}`);
    error.status = response.status;
    throw error;
  }
  return answer;
}

export const get = (path, options) => send("GET", path, undefined, options);

// A sentence at the foot of the page, which screen readers say, too.
export function tell(text) {
  at("status").textContent = text;
}
