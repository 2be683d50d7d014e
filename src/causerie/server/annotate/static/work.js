// An annotator's page: one item after the other, saved at every change.
import { at, get, make, tell } from "/static/dom.js";
import { guide } from "./guide.js";
import { Judging } from "./judging.js";
import { Marking } from "./marking.js";
import { asked, lastUndoable, newKey, stateOf } from "./marks.js";
import { Queue } from "./saving.js";

const ROUNDS = {
  dry: "Practice", first: "Annotation", review: "Review of another's marks",
  adjudication: "Decision between different marks",
};
const me = await get("/annotate/api/me");
const isMarked = me.task.labels.length > 0;
const desk = isMarked ? new Marking(me.task, act) : new Judging(me.task, act);
// Another server may stand at the same address another day, and number its people alike.
const queue = new Queue(`${me.fingerprint}-${me.id}`, { changed: saved, kept, refused });
let view = null;
let place = 0;

// Do something to the item; without an action, show it anew.
function act(action, body) {
  if (action) {
    const event = { key: newKey(), action, body };
    view.events.push(event);
    queue.add(view.id, event);
  }
  draw();
}

const state = () => stateOf(view.events, view.start);

function draw() {
  const focused = document.activeElement?.closest("[data-turn]")?.dataset.turn;
  const name = document.activeElement?.name;
  const now = state();
  desk.show(at("item"), view, now);
  if (focused !== undefined) at("item").querySelector(`[data-turn="${focused}"]`)?.focus();
  else if (name) at("item").querySelector(`[name="${name}"]:checked`)?.focus();
  const one = me.work[place];
  Object.assign(one, { finished: now.finished });
  const done = me.work.filter((work) => work.finished).length;
  at("where").textContent =
    `${ROUNDS[one.round]}: item ${place + 1} of ${me.work.length}, ${done} finished`;
  at("progress").value = done / me.work.length;
  at("buttons").replaceChildren(...buttons(now));
  saved();
}

function buttons(now) {
  const button = (text, key, does, options = {}) =>
    make("button", { type: "button", ...options, on: { click: does } }, text, " ", make("kbd", {}, key));
  const open = !now.finished && !view.closed;
  const none = me.task.kind === "causes" ? "No cause" : "Nothing fits";
  return [
    button("Previous", "p", () => go(place - 1), { disabled: place === 0 }),
    isMarked && open ? button(none, "0", () => act("none", {}), { "aria-pressed": String(now.none) }) : null,
    open ? button("Undo", "u", undo, { disabled: !lastUndoable(view.events) }) : null,
    open ? button(now.comment ? "Comment ✓" : "Comment", "c", comment) : null,
    open ? button("Finish", "f", finish, { class: "primary", id: "finish" }) : null,
    now.finished && !view.closed
      ? make("button", { type: "button", on: { click: () => act("reopen", {}) } }, "Change it again") : null,
    view.closed ? make("p", { class: "quiet" }, "This item can no longer be changed.") : null,
    button("Next", "n", () => go(place + 1), { disabled: place === me.work.length - 1 }),
  ].filter(Boolean);
}

function undo() {
  const last = lastUndoable(view.events);
  if (last && !state().finished) act("undo", { event: last.key });
}

function comment() {
  const box = make("textarea", { id: "comment", maxlength: 10000, "aria-label": "Comment" });
  box.value = state().comment;
  const keep = () => {
    dialog.close();
    if (box.value !== state().comment) act("comment", { text: box.value });
  };
  const dialog = make("dialog", { "aria-label": "Comment" },
    make("h2", {}, "Comment"), box,
    make("p", { class: "fields" }, make("button", { type: "button", class: "primary", on: { click: keep } }, "Keep it")));
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("cancel", (event) => { event.preventDefault(); keep(); });
  document.body.append(dialog);
  dialog.showModal();
}

function missing(now) {
  if (isMarked) {
    if (me.task.kind === "labels" || now.marks.length || now.none) return null;
    return "Mark at least one cause, or say that there is none.";
  }
  const turns = me.task.kind === "replies" ? view.asked : [null];
  const left = turns.flatMap((turn) => me.task.questions.map((one) => asked(turn, one.name)))
    .filter((one) => !now.answers.has(one)).length;
  return left ? `${left} left to answer.` : null;
}

async function finish() {
  const left = missing(state());
  tell(left ?? "");
  if (left || state().finished || view.closed) return;
  const { round } = view;
  act("finish", {});
  if (round === "dry") {
    await queue.drained();
    await go(place);
  } else if (place < me.work.length - 1) {
    const next = me.work.findIndex((one, number) => number > place && !one.finished);
    await go(next < 0 ? place + 1 : next);
  } else {
    tell("That was the last one. Thank you!");
  }
}

async function go(to) {
  if (to < 0 || to >= me.work.length) return;
  try {
    const found = await get(`/annotate/api/work/${me.work[to].id}`);
    place = to;
    show(found);
    at("item").focus({ preventScroll: true });
    if (!view.events.length && !view.closed) act("open", {});
  } catch (error) {
    tell(error.status ? error.message : "No connection: your work is kept. Try again.");
  }
}

// What the server has, and after it what it has not got yet.
function show(found) {
  const known = new Set(found.events.map((event) => event.key));
  const waiting = queue.of(found.id).filter((event) => !known.has(event.key));
  view = { ...found, events: [...found.events, ...waiting] };
  history.replaceState(null, "", `#${found.id}`);
  draw();
}

function saved() {
  const waiting = queue.items.length;
  at("saved").textContent = !waiting ? "All saved"
    : queue.failing ? `Not saved yet (${queue.failing}): ${waiting} kept here, trying again` : "Saving …";
  at("saved").className = waiting && queue.failing ? "saved error" : "saved";
}

// The server has more than this page if somebody works in two windows.
function kept(work, found) {
  if (view?.id !== work) return;
  const own = new Set(view.events.map((event) => event.key));
  if (found.events.some((event) => !own.has(event.key)) || found.closed !== view.closed) show(found);
}

async function refused(work, event, why) {
  tell(`Not possible: ${why}.`);
  if (view?.id === work) show(await get(`/annotate/api/work/${work}`));
}

document.addEventListener("keydown", (event) => {
  if (!view || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("textarea, dialog, input:not([type=radio])")) return;
  const does = {
    u: undo, c: comment, f: finish, n: () => go(place + 1), p: () => go(place - 1),
    g: () => { at("guideline").open = !at("guideline").open; },
  }[event.key];
  if (desk.key(event)) event.preventDefault();
  else if (does) {
    event.preventDefault();
    does();
  }
});

at("guide").append(guide(me.guideline, me.task.kind));
if (me.leads) {
  at("guide").prepend(make("p", {}, make("a", { href: "/annotate/lead" }, "The project")));
}
await queue.flush();
if (me.work.length) {
  const wanted = me.work.findIndex((one) => `#${one.id}` === location.hash);
  const open = me.work.findIndex((one) => !one.finished);
  await go(Math.max(0, wanted >= 0 ? wanted : open));
} else {
  at("item").append(make("p", { class: "lead" }, "There is nothing for you to do here yet."));
}
