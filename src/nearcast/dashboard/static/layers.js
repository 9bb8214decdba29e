// What is shown on the map: switches, the heat map, and the legend that says what colours mean.

import { get } from "./api.js";
import { asked, remember } from "./address.js";
import { byId, h, show } from "./dom.js";
import { number } from "./formats.js";
import { colourOf, heatSteps, numbersOf } from "./palette.js";

const FRESH_MS = 5000;
const NAMES = ["points", "streets", "cells", "areas", "events"];

export class Layers {
  schemes = [];
  roles = [];
  kinds = []; // of schemes, in the broker's order
  #heat = "none";
  #timer = 0;

  constructor(map) {
    this.map = map;
    if (matchMedia("(max-width: 820px)").matches) byId("layers").open = false; // a small map is for the people on it
    const hidden = (asked("hide") ?? "").split(",");
    for (const name of NAMES) {
      const box = byId(`layer-${name}`);
      box.checked = !hidden.includes(name);
      box.addEventListener("change", () => this.#apply());
    }
    byId("heat").addEventListener("change", () => this.#chooseHeat(byId("heat").value));
    byId("colour-by").addEventListener("change", () => {
      this.map.colourBy = byId("colour-by").value;
      this.#apply();
    });
    this.#apply();
  }

  /** When somebody is let in: before, the broker would not answer. */
  start() {
    const kind = asked("heat");
    if ([...byId("heat").options].some(({ value }) => value === kind)) this.#chooseHeat(kind);
  }

  #apply() {
    const on = Object.fromEntries(NAMES.map((name) => [name, byId(`layer-${name}`).checked]));
    Object.assign(this.map.layers, on);
    Object.assign(this.map.ground.layers, on);
    this.map.repaint();
    remember({ hide: NAMES.filter((name) => !on[name]).join(",") });
    this.legend();
  }

  #chooseHeat(kind) {
    this.#heat = kind;
    byId("heat").value = kind;
    remember({ heat: kind === "none" ? null : kind });
    clearInterval(this.#timer);
    byId("heat-note").textContent = "";
    if (kind === "none") {
      this.map.ground.heat = null;
      this.map.repaint();
    } else {
      this.#loadHeat();
      this.#timer = setInterval(() => this.#loadHeat(), FRESH_MS);
    }
    this.legend();
  }

  async #loadHeat() {
    const kind = this.#heat;
    try {
      const answer = await get("api/heat", { kind });
      if (kind !== this.#heat) return;
      this.map.ground.heat = { kind, cells: answer.cells ?? [] };
      const size = answer.cell_metres ? ` of ${number(answer.cell_metres)} m` : "";
      const counted = `${number(answer.cells?.length ?? 0)} cells${size}`;
      byId("heat-note").textContent = answer.cells?.length ? [counted, answer.source].filter(Boolean).join(", ") : (answer.source ?? "Nothing measured yet.");
    } catch (refusal) {
      this.map.ground.heat = null;
      byId("heat-note").textContent = refusal.message;
    }
    this.map.ground.change();
    this.legend();
  }

  /** The number of a scheme's colour. */
  colourNumber(scheme) {
    return numbersOf(this.schemes, this.kinds)[this.schemes.indexOf(scheme)] ?? 0;
  }

  legend() {
    const names = this.map.colourBy === "role" ? this.roles : this.schemes;
    const unnamed = this.map.colourBy === "role" ? "no role" : "no scheme";
    const numbers = this.map.colourBy === "role" ? names.map((_, at) => at) : numbersOf(names, this.kinds);
    this.map.numbers = numbers;
    this.map.repaint();
    const items = names.map((name, at) => {
      const dot = h("i", { class: "dot" });
      dot.style.background = colourOf(numbers[at]);
      return h("li", {}, dot, name || unnamed);
    });
    byId("legend").replaceChildren(...items);
    show(byId("legend-title"), items.length > 0);
    const heated = this.#heat !== "none";
    show(byId("ramp"), heated);
    if (!heated) return;
    byId("ramp-steps").replaceChildren(...heatSteps(this.#heat).map((colour) => {
      const step = h("i", {});
      step.style.background = colour;
      return step;
    }));
    const most = Math.max(0, ...(this.map.ground.heat?.cells ?? []).map(({ value }) => value));
    byId("ramp-least").textContent = "0";
    byId("ramp-most").textContent = this.#heat === "density" ? `${number(most)} clients` : "1";
  }
}
