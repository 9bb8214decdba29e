// The past: a slider over all that journal and lake still have; the map then shows that time instead of the present.

import { get } from "./api.js";
import { remember } from "./address.js";
import { Crowd } from "./crowd.js";
import { announce, byId, show } from "./dom.js";
import { clock, duration } from "./formats.js";

const WINDOW_S = 60;
const STEP_S = 5; // of the past, for each
const STEP_MS = 500; // of the present, while it plays
const SETTLE_MS = 120;
const FRESH_MS = 10_000;

export class Past {
  at = null; // milliseconds; null: the present
  crowd = new Crowd();
  #extent = null;
  #timer = 0;
  #playing = 0;
  #asked = 0;
  #seen = new Set();

  constructor(map, present, layers, changed) {
    Object.assign(this, { map, present, layers, changed });
    this.slider = byId("slider");
    this.slider.addEventListener("input", () => {
      this.#stop();
      clearTimeout(this.#timer);
      this.#label();
      this.#timer = setTimeout(() => this.#slid(), SETTLE_MS);
    });
    byId("play").addEventListener("click", () => (this.#playing ? this.#stop() : this.#play()));
    byId("banner-live").addEventListener("click", () => this.leave());
    setInterval(() => this.measure(), FRESH_MS);
  }

  async measure() {
    if (this.closed) return;
    try {
      const { oldest, newest } = await get("api/past/extent");
      this.#extent = oldest && newest ? [Date.parse(oldest), Date.parse(newest)] : null;
    } catch {
      this.#extent = null;
    }
    const there = this.#extent !== null && this.#extent[1] > this.#extent[0];
    this.slider.disabled = byId("play").disabled = !there;
    byId("past-note").textContent = there ? `${duration(this.#extent[1] - this.#extent[0])} kept` : "Nothing is kept yet";
    if (!there) return;
    [this.slider.min, this.slider.max] = this.#extent.map((at) => Math.floor(at / 1000));
    if (this.at === null && !this.#timer) this.slider.value = this.slider.max; // unless it is being moved
    this.#label();
  }

  #label() {
    const seconds = Number(this.slider.value);
    const live = this.at === null && seconds >= Number(this.slider.max);
    const text = live ? "now" : clock(seconds * 1000);
    byId("slider-time").textContent = text;
    this.slider.setAttribute("aria-valuetext", text);
  }

  #slid() {
    this.#timer = 0;
    if (Number(this.slider.value) >= Number(this.slider.max)) this.leave();
    else this.show(Number(this.slider.value) * 1000);
  }

  async show(at, walkMs = 0) {
    const turn = (this.#asked += 1);
    const entering = this.at === null;
    this.at = at;
    if (entering) {
      this.map.crowd = this.crowd;
      this.#seen.clear();
      this.changed(true);
      announce("The map shows the past.");
    }
    this.slider.value = Math.round(at / 1000);
    this.#label();
    byId("banner-text").textContent = `The past: ${clock(at)}`;
    byId("banner-detail").textContent = "";
    remember({ at: new Date(at).toISOString() });
    try {
      const answer = await get("api/past", { at: new Date(at).toISOString(), window: WINDOW_S });
      if (turn !== this.#asked || this.at === null) return;
      this.#draw(answer, walkMs);
    } catch (refusal) {
      if (turn === this.#asked) byId("banner-detail").textContent = refusal.message;
      this.#stop();
    }
  }

  #draw({ clients = [], events = [], scheme, complete = true }, walkMs) {
    const now = performance.now();
    this.crowd.scheme.fill(Math.max(0, this.layers.schemes.indexOf(scheme))); // what most were in; each one's own is not kept
    this.crowd.readNamed(clients, now, walkMs);
    for (const event of events) {
      if (walkMs && this.#seen.has(event.id)) continue; // spreads once while it plays
      this.#seen.add(event.id);
      this.map.spread.add(event, now);
    }
    const parts = [`${clients.length} clients`, `${events.length} events in a minute`, scheme, complete ? null : "not all of them"];
    byId("banner-detail").textContent = parts.filter(Boolean).join(" · ");
  }

  #play() {
    const start = this.at ?? Math.max(this.#extent[0], this.#extent[1] - 300_000);
    byId("play").setAttribute("aria-pressed", "true");
    byId("play").setAttribute("aria-label", "Stop the replay");
    this.show(start, 0);
    this.#playing = setInterval(() => {
      const next = this.at + STEP_S * 1000;
      if (next >= this.#extent[1]) this.leave();
      else this.show(next, STEP_MS);
    }, STEP_MS);
  }

  #stop() {
    clearInterval(this.#playing);
    this.#playing = 0;
    byId("play").setAttribute("aria-pressed", "false");
    byId("play").setAttribute("aria-label", "Replay");
  }

  leave() {
    this.#stop();
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#asked += 1;
    if (this.at === null) return;
    this.at = null;
    this.map.crowd = this.present;
    this.slider.value = this.slider.max;
    this.#label();
    remember({ at: null });
    show(byId("banner"), false);
    this.changed(false);
    announce("The map shows the present.");
  }
}
