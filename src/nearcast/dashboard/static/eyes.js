// Through a client's eyes: where it is, what it wants to hear of, what it was sent, what was withheld, and why.

import { get } from "./api.js";
import { byId, h, icon, keyed, replace, show } from "./dom.js";
import { Explanation } from "./explanation.js";
import { clockOfText, degrees, number, plain } from "./formats.js";
import { latOf, lonOf } from "./mercator.js";
import { variable, withAlpha } from "./palette.js";

const FEW = 6; // rows that are shown at once

export class Eyes {
  client = null;
  event = null;
  #answer = null;
  #shown = "";
  #opened = new Set();
  #from = null; // what had the focus before
  #gone = null; // why there is nothing more to be told of it
  #then = null; // what the map shows, if that is not the present

  constructor(map, changed) {
    this.map = map;
    this.changed = changed;
    this.panel = byId("eyes");
    this.explanation = new Explanation(byId("explanation"));
    byId("eyes-close").addEventListener("click", () => this.close());
  }

  async open(client, event = null) {
    if (!this.panel.contains(document.activeElement)) this.#from = document.activeElement;
    this.client = client;
    this.event = event;
    this.#answer = this.#gone = null;
    this.#shown = "";
    this.map.selected = client;
    this.map.shapes = [];
    this.explanation.hide();
    byId("eyes-name").textContent = client;
    byId("eyes-body").replaceChildren(h("p", { class: "note" }, "Looking…"));
    show(this.panel, true);
    this.changed(this);
    byId("eyes-name").focus({ preventScroll: true });
    await this.refresh();
    if (client !== this.client) return;
    this.map.follow(client);
    if (event && event === this.event) await this.explain(event);
  }

  close() {
    const held = this.panel.contains(document.activeElement);
    this.client = this.event = this.#answer = null;
    this.map.selected = null;
    this.map.shapes = [];
    this.map.repaint();
    this.explanation.hide();
    show(this.panel, false);
    this.changed(this);
    if (held) this.#returnFocus();
  }

  /** To where it came from; a table may have built that anew meanwhile. */
  #returnFocus() {
    const from = this.#from?.isConnected ? this.#from : keyed(document, this.#from?.dataset?.key);
    const there = from && from !== document.body && from.getClientRects().length > 0;
    (there ? from : byId("map")).focus({ preventScroll: true });
  }

  async refresh() {
    const { client } = this;
    try {
      const answer = await get(`api/client?name=${encodeURIComponent(client)}`);
      if (client === this.client) this.update(answer);
    } catch (refusal) {
      if (client === this.client) this.#write([h("p", { class: "problem", role: "alert" }, refusal.message)]);
    }
  }

  /** The crowd of that time, while the map shows the past; null: the present again. */
  setPast(then) {
    this.#then = then;
    this.#draw();
  }

  /** Once a second from the live connection; what looks the same is not built anew under somebody's fingers. */
  update(answer) {
    if (answer.client !== this.client) return;
    this.#answer = answer;
    this.#gone = null;
    this.#draw();
  }

  gone({ client, why }) {
    if (client !== this.client) return;
    this.#gone = why;
    this.#draw();
  }

  #draw() {
    const answer = this.#answer;
    if (answer === null) return;
    this.map.shapes = this.#then || this.#gone ? [] : shapesOf(answer); // what it was interested in then is not known
    const shown = this.#then ? { ...answer, position: placeIn(this.#then, answer.client) } : answer;
    const text = JSON.stringify([this.#then !== null, this.#gone, shown]);
    if (text === this.#shown) return;
    this.#shown = text;
    const notes = [
      this.#gone && `${this.#gone}. This is what was known last.`,
      this.#then && "The map shows the past, and the position is of that time. All else is of now.",
    ];
    this.#write([...notes.filter(Boolean).map((note) => h("p", { class: "notice", role: "status" }, note)), ...this.#body(shown)]);
  }

  #write(parts) {
    replace(byId("eyes-body"), parts, byId("eyes-name"));
  }

  async explain(event) {
    this.event = event;
    this.changed(this);
    await this.explanation.show(event, this.client);
  }

  #body({ position, contexts = [], subscriptions = [], proximities = [], scheme, cell, sent = [], withheld = [] }) {
    const facts = h("dl", { class: "facts" },
      fact("Position", position ? `${degrees(position.lat)}, ${degrees(position.lon)}` : "not known"),
      fact("Scheme", scheme || "–"),
      cell ? fact("Cell", String(cell)) : null,
      contexts.flatMap(({ attributes = {} }) => Object.entries(attributes).map(([name, value]) => fact(name, plain(value)))));
    return [
      facts,
      this.#section("Subscriptions", subscriptions.map(subscription), "It has not subscribed to anything."),
      proximities.length ? this.#section("Its events reach", proximities.map(proximity), "") : null,
      this.#section("Sent to it", sent.map((row) => this.#happened(row)), "Nothing was sent to it lately."),
      this.#section("Withheld from it", withheld.map((row) => this.#happened(row)), "Nothing was withheld from it lately."),
    ].filter(Boolean);
  }

  #section(title, items, empty) {
    const rest = items.slice(FEW);
    const more = h("details", { class: "more", open: this.#opened.has(title),
      toggle: ({ target }) => (target.open ? this.#opened.add(title) : this.#opened.delete(title)) },
      h("summary", { "data-key": `more:${title}` }, `${number(rest.length)} more`), h("ul", { class: "rows" }, rest));
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
      h("button", { type: "button", class: "quiet small", "data-why": event, "data-key": `why:${event}`, "aria-label": `Why? ${topic}, event ${event}`,
        click: () => this.explain(event) }, "Why?"));
  }
}

function placeIn(crowd, client) {
  const index = crowd.indexOf(client);
  return index < 0 || !crowd.here[index] ? null : { lat: latOf(crowd.toY[index]), lon: lonOf(crowd.toX[index]) };
}

function fact(name, value) {
  return h("div", {}, h("dt", {}, name), h("dd", {}, value));
}

function subscription({ filter, where, area }) {
  return h("li", {}, h("span", { class: "topic" }, icon("ear"), filter),
    where ? h("code", { class: "where" }, where) : null,
    h("span", { class: "muted small" }, areaText(area)));
}

function proximity({ topic, area }) {
  return h("li", {}, h("span", { class: "topic" }, topic), h("span", { class: "muted small" }, areaText(area)));
}

export function areaText(area) {
  if (!area) return "everywhere";
  if (typeof area === "string") return /^[\d.]+$/.test(area) ? `within ${number(Number(area))} m` : area;
  return area.radius ? `within ${number(area.radius)} m` : (area.text ?? `a ${area.kind}`);
}

function shapesOf({ subscriptions = [], proximities = [], cells }) {
  const mine = variable("--selected");
  const areas = subscriptions.filter(({ area }) => area?.geometry).map(({ area }) => ({
    shape: area.geometry, look: { fill: withAlpha(mine, 0.1), stroke: withAlpha(mine, 0.9), width: 1.5 },
  }));
  const own = cells ? [{ shape: cells, look: { stroke: withAlpha(mine, 0.7), width: 2, dash: [3, 3] } }] : [];
  const told = variable("--event");
  const reaches = proximities.filter(({ area }) => area.geometry).map(({ area }) => ({
    shape: area.geometry, look: { fill: withAlpha(told, 0.07), stroke: withAlpha(told, 0.8), width: 1.5, dash: [8, 4] },
  }));
  return [...own, ...reaches, ...areas];
}
