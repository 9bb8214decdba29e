// What is shown on the map: switches, the heat map, and the legend that says what colours mean.

import { get } from "./api.js";
import { asked, remember } from "./address.js";
import { byId, h, show } from "./dom.js";
import { number, withClocks } from "./formats.js";
import { Fresh } from "./fresh.js";
import { colourOf, heatSteps, numbersOf } from "./palette.js";

const FRESH_MS = 5000;
const NAMES = ["points", "streets", "cells", "areas", "events"];

export class Layers {
  schemes = [""]; // by number; the first is for those who have none
  roles = [""];
  kinds = []; // of schemes, in the broker's order
  #heat = "none";
  #then = null; // schemes of the past, while that is shown
  #fresh;

  constructor(map) {
    this.map = map;
    this.#fresh = new Fresh(byId("map"), FRESH_MS, () => this.#loadHeat());
    if (matchMedia("(max-width: 820px), (max-height: 560px)").matches) byId("layers").open = false; // a small map is for the people on it
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

  close() {
    this.#fresh.stop();
  }

  /** The scheme of a time of the past, or none if it is not known; `null`: the present. */
  showPast(then) {
    this.#then = then && ["", then.scheme].filter((name) => name !== null && name !== undefined);
    this.#followHeat();
    this.legend();
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
    this.map.ground.heat = null;
    this.map.repaint();
    this.#followHeat();
    this.#fresh.now();
    this.legend();
  }

  #followHeat() {
    const wanted = this.#heat !== "none";
    byId("heat-note").textContent = wanted && this.#then ? "Heat is of now: not shown over the past." : "";
    if (wanted && !this.#then) this.#fresh.start();
    else this.#fresh.stop();
  }

  async #loadHeat() {
    const kind = this.#heat;
    try {
      const answer = await get("api/heat", { kind });
      if (kind !== this.#heat || this.#then) return;
      this.map.ground.heat = { kind, cells: answer.cells ?? [] };
      const size = answer.cell_metres ? ` of ${number(answer.cell_metres)} m` : "";
      const counted = `${number(answer.cells?.length ?? 0)} cells${size}`;
      const source = withClocks(answer.source ?? "");
      byId("heat-note").textContent = answer.cells?.length ? [counted, source].filter(Boolean).join(", ") : (source || "Nothing measured yet.");
    } catch (refusal) {
      this.map.ground.heat = null;
      byId("heat-note").textContent = refusal.message;
    }
    this.map.ground.change();
    this.legend();
  }

  /** The number of a scheme's colour, also of one that has cells and nobody in them. */
  colourNumber(scheme) {
    return this.#schemeNumbers([scheme])[0];
  }

  /** What also runs now has the same colour as now. */
  #schemeNumbers(names) {
    const all = [...new Set([...this.schemes, ...names])];
    const numbers = numbersOf(all, this.kinds);
    return names.map((name) => numbers[all.indexOf(name)]);
  }

  legend() {
    const names = this.map.colourBy === "role" ? this.roles : (this.#then ?? this.schemes);
    const unnamed = this.map.colourBy === "role" ? "no role" : "no scheme";
    const numbers = this.map.colourBy === "role" ? names.map((_, at) => at) : this.#schemeNumbers(names);
    this.map.numbers = numbers;
    this.map.repaint();
    const items = names.flatMap((name, at) => {
      if (names.indexOf(name) !== at) return []; // it is just being given another number
      const dot = h("i", { class: "dot" });
      dot.style.background = colourOf(numbers[at]);
      return h("li", {}, dot, name || unnamed);
    });
    byId("legend").replaceChildren(...items);
    show(byId("legend-title"), items.length > 0);
    const heated = this.#heat !== "none" && !this.#then;
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
