// Everything that was done goes to the server at once; until the server has it, it is kept in this
// browser, and sent again and again. Every event has a key, so sending it twice does no harm.
import { send } from "/static/dom.js";

const SLOWEST = 30000;
const MOST = 100;

export class Queue {
  constructor(whose, { changed, kept, refused }) {
    this.prefix = `causerie-annotate-${whose}-`;
    Object.assign(this, { changed, kept, refused });
    this.busy = false;
    this.wait = 500;
    this.count = 0;
    this.failing = null;
    this.items = this.stored();
    window.addEventListener("online", () => this.flush());
    window.addEventListener("beforeunload", (event) => {
      if (this.items.length) event.preventDefault();
    });
  }

  stored() {
    const names = Object.keys(localStorage).filter((name) => name.startsWith(this.prefix)).sort();
    return names.map((name) => ({ name, ...JSON.parse(localStorage.getItem(name)) }));
  }

  add(work, event) {
    this.count += 1;
    const order = `${Date.now()}`.padStart(15, "0") + `${this.count}`.padStart(6, "0");
    const item = { name: `${this.prefix}${order}-${event.key}`, work, event };
    try {
      localStorage.setItem(item.name, JSON.stringify({ work, event }));
    } catch {
      // no room, or none allowed: the page keeps it while it is open
    }
    this.items.push(item);
    this.changed();
    this.flush();
  }

  of(work) {
    return this.items.filter((item) => item.work === work).map((item) => item.event);
  }

  // Resolves when everything is on the server.
  async drained() {
    while (this.items.length) {
      await this.flush();
      if (this.items.length) await new Promise((go) => setTimeout(go, 200));
    }
  }

  async flush() {
    if (this.busy || !this.items.length) return;
    this.busy = true;
    clearTimeout(this.timer);
    let alone = false;
    while (this.items.length) {
      const { work } = this.items[0];
      const stop = this.items.findIndex((item) => item.work !== work);
      const part = this.items.slice(0, alone ? 1 : Math.min(MOST, stop < 0 ? MOST : stop));
      try {
        const events = part.map((item) => item.event);
        const view = await send("POST", `/annotate/api/work/${work}/events`, { events });
        this.drop(part);
        this.wait = 500;
        this.failing = null;
        this.kept(work, view);
      } catch (error) {
        if (![400, 404, 409, 422].includes(error.status)) {
          this.failing = error.status === 401 || error.status === 403 ? error.message : "no connection";
          break;
        }
        if (part.length > 1) {
          alone = true;
        } else {
          this.drop(part);
          this.refused(work, part[0].event, error.message);
        }
      }
      this.changed();
    }
    this.busy = false;
    this.changed();
    if (this.items.length) {
      this.timer = setTimeout(() => this.flush(), this.wait);
      this.wait = Math.min(SLOWEST, 2 * this.wait);
    }
  }

  drop(part) {
    part.forEach((item) => localStorage.removeItem(item.name));
    const names = new Set(part.map((item) => item.name));
    this.items = this.items.filter((item) => !names.has(item.name));
  }
}
