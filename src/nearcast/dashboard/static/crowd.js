// Where everybody is: snapshots come in, and between two of them people walk. Columns, because there may be many thousands.

import { xOf, yOf } from "./mercator.js";

const HEADER_BYTES = 16;
const ROW_BYTES = 16;
const FULL = 1;
const LONGEST_WALK_MS = 5000; // between reports that lie further apart people jump
const FURTHEST_WALK = 1e-4; // of the world's width, some 3 km: whoever is that far away has not walked

export class Crowd {
  names = [];
  count = 0; // of those who are there
  size = 0; // of the columns in use
  period = 250;
  origin = { lat: 0, lon: 0 };
  movingUntil = 0;
  version = 0;
  #indexes = new Map();
  #capacity = 0;

  constructor() {
    this.#grow(1024);
  }

  #grow(capacity) {
    const larger = (old, Type) => {
      const column = new Type(capacity);
      if (old) column.set(old);
      return column;
    };
    this.fromX = larger(this.fromX, Float64Array);
    this.fromY = larger(this.fromY, Float64Array);
    this.toX = larger(this.toX, Float64Array);
    this.toY = larger(this.toY, Float64Array);
    this.start = larger(this.start, Float64Array);
    this.walk = larger(this.walk, Float32Array); // milliseconds; 0: stands
    this.scheme = larger(this.scheme, Uint8Array);
    this.role = larger(this.role, Uint8Array);
    this.here = larger(this.here, Uint8Array);
    this.#capacity = capacity;
  }

  /** Start anew: indexes mean something else after a reconnection. */
  reset({ names = {}, period_ms: period = 250, origin = { lat: 0, lon: 0 } }) {
    this.names = [];
    this.#indexes.clear();
    this.here.fill(0);
    this.start.fill(0);
    this.count = this.size = 0;
    this.period = period;
    this.origin = origin;
    this.rename({ add: names });
  }

  rename({ add = {}, gone = [] }) {
    for (const index of gone) {
      this.#lose(index);
      this.#indexes.delete(this.names[index]);
      delete this.names[index];
    }
    for (const [index, name] of Object.entries(add)) {
      this.names[Number(index)] = name;
      this.#indexes.set(name, Number(index));
    }
    this.version += 1;
  }

  /** Its position is not known any more. */
  #lose(index) {
    if (index >= this.size) return;
    if (this.here[index]) this.count -= 1;
    this.here[index] = this.start[index] = 0;
    this.version += 1;
  }

  indexOf(name) {
    return this.#indexes.get(name) ?? -1;
  }

  /** Of those who are known: indexes are given to others later, names are not. */
  namesOf(indexes) {
    return indexes.map((index) => this.names[index]).filter((name) => name !== undefined);
  }

  /** A binary snapshot; the format is in docs/dashboard.md. */
  read(buffer, now, smooth = true) {
    const data = new DataView(buffer);
    if (data.getUint8(0) !== 1) throw new Error("the broker speaks a newer format of positions: reload the page");
    const full = data.getUint8(1) & FULL;
    const rows = data.getUint32(4, true);
    if (full) {
      this.here.fill(0);
      this.count = 0;
    }
    for (let row = 0, at = HEADER_BYTES; row < rows; row += 1, at += ROW_BYTES) {
      const lon = this.origin.lon + data.getFloat32(at + 4, true);
      const lat = this.origin.lat + data.getFloat32(at + 8, true);
      const index = data.getUint32(at, true);
      if (Number.isNaN(lat)) this.#lose(index);
      else this.move(index, lat, lon, now, smooth);
      this.scheme[index] = data.getUint8(at + 12);
      this.role[index] = data.getUint8(at + 13);
    }
    return Number(data.getBigInt64(8, true)) / 1000;
  }

  /** A snapshot by name, as the past comes. */
  readNamed(clients, now, walkMs) {
    this.here.fill(0);
    this.count = 0;
    for (const { client, lat, lon } of clients) {
      let index = this.indexOf(client);
      if (index < 0) {
        index = this.names.length;
        this.names.push(client);
        this.#indexes.set(client, index);
      }
      this.move(index, lat, lon, now, walkMs > 0, walkMs);
    }
    this.version += 1;
  }

  move(index, lat, lon, now, smooth = true, walkMs = null) {
    if (index >= this.#capacity) this.#grow(2 ** Math.ceil(Math.log2(index + 1)));
    if (index >= this.size) this.size = index + 1;
    const x = xOf(lon);
    const y = yOf(lat);
    const known = this.start[index] > 0;
    if (!this.here[index]) {
      this.here[index] = 1;
      this.count += 1;
    }
    const far = Math.abs(x - this.toX[index]) + Math.abs(y - this.toY[index]);
    if (!known || !smooth || far > FURTHEST_WALK) {
      this.fromX[index] = x;
      this.fromY[index] = y;
      this.walk[index] = 0;
    } else if (far > 0) {
      // Walk as long as it took to be heard of again: the next report then finds it just arrived.
      const waited = walkMs ?? Math.min(Math.max(now - this.start[index], this.period), LONGEST_WALK_MS);
      this.fromX[index] = this.x(index, now);
      this.fromY[index] = this.y(index, now);
      this.walk[index] = waited;
      this.movingUntil = Math.max(this.movingUntil, now + waited);
    } else {
      return; // stands, or is still on its way there
    }
    this.start[index] = now;
    this.toX[index] = x;
    this.toY[index] = y;
    this.version += 1;
  }

  x(index, now) {
    return this.fromX[index] + (this.toX[index] - this.fromX[index]) * this.progress(index, now);
  }

  y(index, now) {
    return this.fromY[index] + (this.toY[index] - this.fromY[index]) * this.progress(index, now);
  }

  progress(index, now) {
    const walk = this.walk[index];
    return walk > 0 ? Math.min((now - this.start[index]) / walk, 1) : 1;
  }

  /** The corner points of where everybody is, as fractions of the world; null if nobody is anywhere. */
  extent() {
    const box = { left: Infinity, right: -Infinity, top: Infinity, bottom: -Infinity };
    for (let index = 0; index < this.size; index += 1) {
      if (!this.here[index]) continue;
      box.left = Math.min(box.left, this.toX[index]);
      box.right = Math.max(box.right, this.toX[index]);
      box.top = Math.min(box.top, this.toY[index]);
      box.bottom = Math.max(box.bottom, this.toY[index]);
    }
    return this.count ? box : null;
  }
}
