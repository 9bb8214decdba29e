// Now: a few figures, who runs which scheme, and the latest events.

import { byId, h } from "./dom.js";
import { clock, number, span } from "./formats.js";
import { colourOf } from "./palette.js";

const MOST_EVENTS = 12;

export class Overview {
  #events = [];
  #stale = false;
  #leftOut = 0;

  constructor(find) {
    this.find = find; // shows an event on the map
    this.figures = byId("figures");
    this.groups = byId("groups");
    this.list = byId("events");
    setInterval(() => this.#drawEvents(), 1000);
  }

  tick(tick, colourNumber) {
    this.#leftOut = tick.left_out ?? 0;
    const { load } = tick;
    const shown = [
      ["On the map", number(tick.clients)], ["Sessions", number(tick.sessions)],
      ["Deliveries", `${number(load.deliveries_per_s)}/s`], ["Delay, p99", span(load.delay_ms_p99 && load.delay_ms_p99 * 1000)],
    ];
    this.figures.replaceChildren(...shown.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
    const all = Math.max(1, Object.values(tick.groups ?? {}).reduce((sum, count) => sum + count, 0));
    const bars = Object.entries(tick.groups ?? {}).sort(([, a], [, b]) => b - a).map(([scheme, count]) => {
      const bar = h("i", { class: "bar" });
      bar.style.width = `${(100 * count) / all}%`;
      bar.style.background = colourOf(colourNumber(scheme));
      return h("li", {}, h("span", {}, scheme || "no scheme"), h("span", { class: "muted" }, number(count)), h("span", { class: "track" }, bar));
    });
    this.groups.replaceChildren(...(bars.length ? bars : [h("li", { class: "note" }, "Nobody takes part in a scheme.")]));
  }

  event(event) {
    this.#events.unshift(event);
    this.#events.length = Math.min(this.#events.length, MOST_EVENTS);
    this.#stale = true;
  }

  /** At most once a second, and never under a finger: a list that jumps cannot be read. */
  #drawEvents() {
    if (!this.#stale || this.list.matches(":hover, :focus-within")) return;
    this.#stale = false;
    this.list.replaceChildren(...this.#events.map((event) => h("li", { class: "happened" },
      h("span", { class: "topic" }, event.topic),
      h("span", { class: "muted small" }, `${clock(event.at_us / 1000)} · to ${number(event.count)}`),
      event.lat === null || event.lat === undefined ? null : h("button",
        { type: "button", class: "quiet small", "aria-label": `Show ${event.topic} on the map`, click: () => this.find(event) }, "Show"))));
    byId("events-note").textContent = this.#leftOut ? `${number(this.#leftOut)} more in the last second are not shown.` : "";
  }

  nothing(sentence) {
    this.list.replaceChildren(h("li", { class: "note" }, sentence));
  }
}
