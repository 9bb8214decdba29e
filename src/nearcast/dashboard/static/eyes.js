// Through a client's eyes: where it is, what it wants to hear of, what it was sent, what was withheld, and why.

import { get } from "./api.js";
import { byId, h, icon, show } from "./dom.js";
import { explain } from "./explanation.js";
import { clockOfText, degrees, number } from "./formats.js";
import { variable, withAlpha } from "./palette.js";

const FEW = 6; // rows that are shown at once

export class Eyes {
  client = null;
  event = null;
  #shown = "";
  #opened = new Set();

  constructor(map, changed) {
    this.map = map;
    this.changed = changed;
    this.panel = byId("eyes");
    this.explanation = byId("explanation");
    byId("eyes-close").addEventListener("click", () => this.close());
  }

  async open(client, event = null) {
    this.client = client;
    this.event = event;
    this.#shown = "";
    this.map.selected = client;
    this.map.shapes = [];
    this.explanation.hidden = true;
    byId("eyes-name").textContent = client;
    byId("eyes-body").replaceChildren(h("p", { class: "note" }, "Looking…"));
    show(this.panel, true);
    this.changed(this);
    byId("eyes-name").focus({ preventScroll: true });
    await this.refresh();
    this.map.follow(client);
    if (event) await this.explain(event);
  }

  close() {
    this.client = this.event = null;
    this.map.selected = null;
    this.map.shapes = [];
    this.map.repaint();
    this.explanation.hidden = true;
    show(this.panel, false);
    this.changed(this);
  }

  async refresh() {
    const { client } = this;
    try {
      const answer = await get(`api/client?name=${encodeURIComponent(client)}`);
      if (client === this.client) this.update(answer);
    } catch (refusal) {
      if (client === this.client) byId("eyes-body").replaceChildren(h("p", { class: "problem", role: "alert" }, refusal.message));
    }
  }

  /** Once a second from the live connection; what looks the same is not built anew under somebody's fingers. */
  update(answer) {
    if (answer.client !== this.client) return;
    this.map.shapes = shapesOf(answer);
    const text = JSON.stringify(answer);
    if (text === this.#shown) return;
    this.#shown = text;
    const focused = document.activeElement?.dataset?.why;
    byId("eyes-body").replaceChildren(...this.#body(answer));
    if (focused) byId("eyes-body").querySelector(`[data-why="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }

  async explain(event) {
    this.event = event;
    this.changed(this);
    await explain(this.explanation, event, this.client);
  }

  #body({ position, contexts = [], subscriptions = [], scheme, cell, sent = [], withheld = [] }) {
    const facts = h("dl", { class: "facts" },
      fact("Position", position ? `${degrees(position.lat)}, ${degrees(position.lon)}` : "not known"),
      fact("Scheme", scheme ?? "–"),
      cell ? fact("Cell", String(cell)) : null,
      contexts.flatMap(({ attributes = {} }) => Object.entries(attributes).map(([name, value]) => fact(name, written(value)))));
    return [
      facts,
      this.#section("Subscriptions", subscriptions.map(subscription), "It has not subscribed to anything."),
      this.#section("Sent to it", sent.map((row) => this.#happened(row)), "Nothing was sent to it lately."),
      this.#section("Withheld from it", withheld.map((row) => this.#happened(row)), "Nothing was withheld from it lately."),
    ];
  }

  #section(title, items, empty) {
    const rest = items.slice(FEW);
    const more = h("details", { class: "more", open: this.#opened.has(title),
      toggle: ({ target }) => (target.open ? this.#opened.add(title) : this.#opened.delete(title)) },
      h("summary", {}, `${number(rest.length)} more`), h("ul", { class: "rows" }, rest));
    return h("section", {},
      h("h3", {}, title, items.length ? h("span", { class: "count" }, number(items.length)) : null),
      items.length ? h("ul", { class: "rows" }, items.slice(0, FEW)) : h("p", { class: "note" }, empty),
      rest.length ? more : null);
  }

  #happened({ event, topic, at, payload }) {
    return h("li", { class: "happened" },
      h("span", { class: "topic" }, topic),
      payload ? h("span", { class: "payload" }, payload) : null,
      h("span", { class: "muted small" }, clockOfText(at)),
      h("button", { type: "button", class: "quiet small", "data-why": event, "aria-label": `Why? ${topic}, event ${event}`,
        click: () => this.explain(event) }, "Why?"));
  }
}

function fact(name, value) {
  return h("div", {}, h("dt", {}, name), h("dd", {}, value));
}

/** Values come as JSON; a place in a hierarchy reads better without its braces. */
function written(value) {
  const path = /^\{"path":\s*"([^"]*)"\}$/.exec(String(value));
  return path ? path[1] : String(value);
}

function subscription({ filter, where, area }) {
  return h("li", {}, h("span", { class: "topic" }, icon("ear"), filter),
    where ? h("code", { class: "where" }, where) : null,
    h("span", { class: "muted small" }, areaText(area)));
}

export function areaText(area) {
  if (!area) return "everywhere";
  if (typeof area === "string") return /^[\d.]+$/.test(area) ? `within ${number(Number(area))} m` : area;
  return area.radius ? `within ${number(area.radius)} m` : (area.text ?? `a ${area.kind}`);
}

function shapesOf({ subscriptions = [], cells }) {
  const mine = variable("--selected");
  const areas = subscriptions.filter(({ area }) => area?.geometry).map(({ area }) => ({
    shape: area.geometry, look: { fill: withAlpha(mine, 0.1), stroke: withAlpha(mine, 0.9), width: 1.5 },
  }));
  const own = cells ? [{ shape: cells, look: { stroke: withAlpha(mine, 0.7), width: 2, dash: [3, 3] } }] : [];
  return [...own, ...areas];
}
