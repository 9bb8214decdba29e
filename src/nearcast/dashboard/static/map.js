// The map: three canvases (ground, people, what happens), a loop that draws what has changed, and hands to move it.

import { byId, h } from "./dom.js";
import { frames } from "./frames.js";
import { Ground } from "./ground.js";
import { steer } from "./hands.js";
import { latOf, lonOf, xOf, yOf } from "./mercator.js";
import { channels, colourOf, variable, withAlpha } from "./palette.js";
import { PointLayer } from "./points.js";
import { drawShape } from "./shapes.js";
import { Spread } from "./spread.js";
import { View } from "./view.js";

const NEAR_ENOUGH = 12; // pixels, to be meant by a pointer
const MOST_RATIO = 2;
const LONGEST_NAME = 32;

export class LiveMap extends EventTarget {
  view = new View();
  spread = new Spread();
  layers = { points: true, events: true, areas: true };
  colourBy = "scheme";
  numbers = [0]; // of the colours of schemes, or of roles
  selected = null; // the client through whose eyes we see
  shapes = []; // its areas and cells: {shape, look}
  #present;
  #crowd;
  #box = byId("map");
  #moved = 0;
  #seen = { view: -1, crowd: -1, top: "" };
  #held = false; // somebody has moved it by hand, or says what is to be seen
  #fitted = 0; // most clients that it was fitted for

  constructor(crowd) {
    super();
    this.#present = this.#crowd = crowd;
    const canvas = (name) => this.#box.insertBefore(h("canvas", { class: name, "aria-hidden": "true" }), byId("tip"));
    const ground = canvas("ground");
    this.people = new PointLayer(canvas("people"));
    this.ground = new Ground(ground, canvas("labels"));
    this.top = canvas("happening");
    new ResizeObserver(() => this.resize()).observe(this.#box);
    this.resize();
    steer(this.#box, this);
    requestAnimationFrame((now) => this.#frame(now));
  }

  get crowd() {
    return this.#crowd;
  }

  /** The present or the past: whoever is shown. */
  set crowd(crowd) {
    this.#crowd = crowd;
    this.spread.clear();
    this.ground.present = crowd === this.#present;
    this.repaint();
  }

  resize() {
    this.view.resize(this.#box.clientWidth, this.#box.clientHeight);
    this.repaint();
  }

  /** Everything anew: the theme has changed, or a layer. */
  repaint() {
    this.ground.change();
    this.#seen = { view: -1, crowd: -1, top: "" };
  }

  /** Somebody moves the map by hand. */
  touch() {
    this.#moved = performance.now();
    this.#held = true;
    this.dispatchEvent(new Event("moved"));
  }

  setWorld(world) {
    this.ground.setWorld(world);
    this.bounds = world.bounds ?? null;
    if (this.bounds && !this.#held && !this.#fitted) this.fit();
  }

  fit() {
    const extent = this.#crowd.extent();
    const bounds = this.bounds ?? (extent && {
      west: lonOf(extent.left), east: lonOf(extent.right), north: latOf(extent.top), south: latOf(extent.bottom),
    });
    if (!bounds) return;
    this.view.fit(bounds);
  }

  /** Whoever comes later may be somewhere else: then everybody is brought into sight, unless the map is held. */
  #fitNewcomers() {
    const { count } = this.#crowd;
    if (this.#held || count <= this.#fitted || (this.#fitted && this.#crowd !== this.#present)) return;
    const first = this.#fitted === 0;
    this.#fitted = count;
    if (!this.bounds && (first || !this.#inSight(this.#crowd.extent()))) this.fit();
  }

  #inSight({ left, right, top, bottom }) {
    const { view } = this;
    return view.screenX(left) >= 0 && view.screenX(right) <= view.width && view.screenY(top) >= 0 && view.screenY(bottom) <= view.height;
  }

  goTo(lat, lon, zoom) {
    this.view.center(lat, lon, zoom);
    this.touch();
  }

  /** Bring a client into sight, without a jump if it is there already. */
  follow(client) {
    const index = this.#crowd.indexOf(client);
    if (index < 0 || !this.#crowd.here[index]) return;
    const x = this.view.screenX(this.#crowd.toX[index]);
    const y = this.view.screenY(this.#crowd.toY[index]);
    const inside = x > 40 && y > 40 && x < this.view.width - 40 && y < this.view.height - 40;
    if (!inside) this.goTo(latOf(this.#crowd.toY[index]), lonOf(this.#crowd.toX[index]));
  }

  /** The client next to this pixel, or null. */
  clientAt(screenX, screenY) {
    const now = performance.now();
    let [best, nearest] = [null, NEAR_ENOUGH];
    for (let index = 0; index < this.#crowd.size; index += 1) {
      if (!this.#crowd.here[index]) continue;
      const x = this.view.screenX(this.#crowd.x(index, now)) - screenX;
      const y = this.view.screenY(this.#crowd.y(index, now)) - screenY;
      const distance = Math.hypot(x, y);
      if (distance < nearest) [best, nearest] = [this.#crowd.names[index] ?? null, distance];
    }
    return best;
  }

  #frame(now) {
    requestAnimationFrame((next) => this.#frame(next));
    if (document.hidden || !this.view.width) return frames.interrupt();
    this.#fitNewcomers();
    const begin = performance.now();
    const ratio = Math.min(devicePixelRatio || 1, MOST_RATIO);
    this.ground.draw(this.view, ratio, now, this.#moved);
    const drawn = this.#drawPeople(now, ratio);
    this.#drawTop(now, ratio);
    if (drawn) frames.record(now, performance.now() - begin);
    else frames.interrupt();
  }

  #drawPeople(now, ratio) {
    const crowd = this.#crowd;
    const moving = now < crowd.movingUntil + 50;
    const same = this.#seen.view === this.view.version && this.#seen.crowd === crowd.version;
    if (!moving && same) return false;
    this.#seen.view = this.view.version;
    this.#seen.crowd = crowd.version;
    const rim = channels(variable("--point-rim"));
    const colours = this.numbers.map((number) => [...channels(colourOf(number)), ...rim]);
    const numbers = this.colourBy === "role" ? crowd.role : crowd.scheme;
    const size = Math.max(1.8, Math.min(5, (this.view.zoom - 8) * 0.6)) - (crowd.count > 3000 ? 0.8 : 0);
    this.people.canvas.hidden = !this.layers.points;
    if (this.layers.points) this.people.draw(crowd, this.view, ratio, now, colours, numbers, Math.max(size, 1.6));
    if (crowd.count) document.documentElement.dataset.drawn = "true";
    return true;
  }

  #drawTop(now, ratio) {
    const events = this.layers.events && this.spread.active(now) > 0;
    const key = `${this.view.version}:${this.selected}:${this.shapes.length}`;
    if (!events && this.selected === null && key === this.#seen.top) return;
    this.#seen.top = events ? "" : key;
    this.top.hidden = !events && this.selected === null; // an empty canvas costs a browser without graphics processor, too
    if (this.top.hidden) return;
    const context = this.top.getContext("2d");
    const [width, height] = [Math.round(this.view.width * ratio), Math.round(this.view.height * ratio)];
    if (this.top.width !== width || this.top.height !== height) [this.top.width, this.top.height] = [width, height];
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.view.width, this.view.height);
    if (this.layers.areas) for (const { shape, look } of this.shapes) drawShape(context, this.view, shape, look);
    if (events) this.spread.draw(context, this.view, this.#crowd, now);
    this.#drawSelected(context, now);
  }

  #drawSelected(context, now) {
    const index = this.selected === null ? -1 : this.#crowd.indexOf(this.selected);
    if (index < 0 || !this.#crowd.here[index]) return;
    const [x, y] = [this.view.screenX(this.#crowd.x(index, now)), this.view.screenY(this.#crowd.y(index, now))];
    const colour = variable("--selected");
    context.beginPath();
    context.arc(x, y, 11, 0, 2 * Math.PI);
    context.fillStyle = withAlpha(colour, 0.18);
    context.fill();
    context.strokeStyle = colour;
    context.lineWidth = 2;
    context.stroke();
    context.beginPath();
    context.arc(x, y, 4, 0, 2 * Math.PI);
    const number = this.colourBy === "role" ? this.#crowd.role[index] : this.#crowd.scheme[index];
    context.fillStyle = colourOf(this.numbers[number] ?? 0);
    context.fill();
    context.font = `600 12px ${variable("--font")}`;
    context.lineJoin = "round";
    context.lineWidth = 3.5;
    context.strokeStyle = variable("--map");
    const name = this.selected.length > LONGEST_NAME ? `${this.selected.slice(0, LONGEST_NAME)}…` : this.selected; // the panel has all of it
    context.strokeText(name, x + 16, y + 4);
    context.fillStyle = colour;
    context.fillText(name, x + 16, y + 4);
  }

  /** Where a place of the world is on the screen, for tests and for tips. */
  pixel(lat, lon) {
    return [this.view.screenX(xOf(lon)), this.view.screenY(yOf(lat))];
  }
}
