// The past: a slider over all that journal and lake still have; the map then shows that time instead of the present.

import { get } from "./api.js";
import { remember } from "./address.js";
import { Crowd } from "./crowd.js";
import { announce, byId } from "./dom.js";
import { clock, counted, duration } from "./formats.js";
import { Fresh } from "./fresh.js";

const WINDOW_S = 60;
const STEP_S = 5; // of the past, for each
const STEP_MS = 500; // of the present, while it plays
const SETTLE_MS = 120;
const FRESH_MS = 10_000;

/** Tells `entered`, `drawn` (with what is known of that time) and `left`. */
export class Past extends EventTarget {
  at = null; // milliseconds; null: the present
  crowd = new Crowd();
  #present;
  #spread;
  #extent = null;
  #fresh;
  #timer = 0;
  #replay = null; // the one that is running
  #asked = 0;
  #seen = new Set();

  constructor(present, spread) {
    super();
    this.#present = present;
    this.#spread = spread;
    this.slider = byId("slider");
    this.slider.addEventListener("input", () => {
      this.#stop();
      clearTimeout(this.#timer);
      this.#label();
      this.#timer = setTimeout(() => this.#slid(), SETTLE_MS);
    });
    byId("play").addEventListener("click", () => (this.#replay ? this.#stop() : this.#play()));
    byId("banner-live").addEventListener("click", () => {
      this.leave();
      this.slider.focus({ preventScroll: true }); // the button has gone
    });
    this.#fresh = new Fresh(this.slider, FRESH_MS, () => this.measure());
  }

  open() {
    this.#fresh.start();
  }

  close() {
    this.#fresh.stop();
    this.#stop();
  }

  async measure() {
    try {
      const { oldest, newest } = await get("api/past/extent");
      this.#extent = oldest && newest ? [Date.parse(oldest), Date.parse(newest)] : null;
    } catch {
      // what was there is there still
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

  /** Whether that time is on the map now: not if the broker does not tell, or something else was asked for meanwhile. */
  async show(at, walkMs = 0) {
    const turn = (this.#asked += 1);
    if (this.at === null) {
      this.crowd.reset({});
      this.#seen.clear();
      this.at = at;
      this.dispatchEvent(new Event("entered"));
      announce("The map shows the past.");
    }
    this.at = at;
    this.slider.value = Math.round(at / 1000);
    this.#label();
    byId("banner-text").textContent = `The past: ${clock(at)}`;
    if (!walkMs) byId("banner-detail").textContent = "Looking…";
    remember({ at: new Date(at).toISOString() });
    try {
      const answer = await get("api/past", { at: new Date(at).toISOString(), window: WINDOW_S });
      if (turn !== this.#asked) return false;
      this.#draw(answer, walkMs);
      return true;
    } catch (refusal) {
      if (turn !== this.#asked) return false;
      byId("banner-detail").textContent = refusal.message;
      this.#stop();
      return false;
    }
  }

  #draw(answer, walkMs) {
    const { clients = [], events = [], scheme, complete = true } = answer;
    const now = performance.now();
    this.crowd.readNamed(clients, now, walkMs);
    this.dress();
    for (const event of events) {
      if (walkMs && this.#seen.has(event.id)) continue; // spreads once while it plays
      this.#seen.add(event.id);
      this.#spread.add(event, now);
    }
    const parts = [counted(clients.length, "client"), `${counted(events.length, "event")} in a minute`, scheme, complete ? null : "and more than is shown"];
    byId("banner-detail").textContent = parts.filter(Boolean).join(" · ");
    this.dispatchEvent(new CustomEvent("drawn", { detail: answer }));
  }

  /** What is recorded says neither who was what, which seldom changes, nor which scheme each one had: it gets that of most. */
  dress() {
    this.crowd.scheme.fill(1);
    this.crowd.names.forEach((name, index) => {
      const known = this.#present.indexOf(name);
      this.crowd.role[index] = known < 0 ? 0 : this.#present.role[known];
    });
    this.crowd.version += 1;
  }

  #play() {
    byId("play").setAttribute("aria-pressed", "true");
    byId("play").setAttribute("aria-label", "Stop the replay");
    this.#go((this.#replay = {}), this.at ?? Math.max(this.#extent[0], this.#extent[1] - 300_000));
  }

  /** One step after the other: a broker that takes longer to answer makes the replay slower, and nothing else. */
  async #go(replay, start) {
    let pace = 0;
    for (let at = start; replay === this.#replay; at += STEP_S * 1000) {
      if (at >= this.#extent[1]) {
        this.leave();
        return;
      }
      const begun = performance.now();
      if (!(await this.show(at, pace))) return;
      await pause(Math.max(0, STEP_MS - (performance.now() - begun)));
      pace = performance.now() - begun;
      await inFront();
    }
  }

  #stop() {
    this.#replay = null;
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
    this.slider.value = this.slider.max;
    this.#label();
    remember({ at: null });
    this.dispatchEvent(new Event("left"));
    announce("The map shows the present.");
  }
}

function pause(milliseconds) {
  return new Promise((done) => { setTimeout(done, milliseconds); });
}

/** When the page is not hidden (any more). */
function inFront() {
  return new Promise((done) => {
    const look = () => document.hidden || (document.removeEventListener("visibilitychange", look), done());
    document.addEventListener("visibilitychange", look);
    look();
  });
}
