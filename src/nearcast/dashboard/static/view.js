// What part of the world the map shows. Scale is pixels for the whole world; zoom its logarithm, as map makers count it.

import { latOf, lonOf, xOf, yOf } from "./mercator.js";

const TILE = 256;
const LEAST_ZOOM = 2;
const MOST_ZOOM = 21;

export class View {
  x = 0.5;
  y = 0.5;
  scale = TILE * 8;
  width = 1;
  height = 1;
  version = 0;

  get zoom() {
    return Math.log2(this.scale / TILE);
  }

  resize(width, height) {
    if (width === this.width && height === this.height) return;
    this.width = width;
    this.height = height;
    this.version += 1;
  }

  screenX(x) {
    return (x - this.x) * this.scale + this.width / 2;
  }

  screenY(y) {
    return (y - this.y) * this.scale + this.height / 2;
  }

  place(screenX, screenY) {
    return {
      lat: latOf(this.y + (screenY - this.height / 2) / this.scale),
      lon: lonOf(this.x + (screenX - this.width / 2) / this.scale),
    };
  }

  pan(dx, dy) {
    this.x = clamp(this.x - dx / this.scale, 0, 1);
    this.y = clamp(this.y - dy / this.scale, 0, 1);
    this.version += 1;
  }

  /** What is under this pixel stays there. */
  zoomAt(factor, screenX = this.width / 2, screenY = this.height / 2) {
    const scale = clamp(this.scale * factor, TILE * 2 ** LEAST_ZOOM, TILE * 2 ** MOST_ZOOM);
    const keep = 1 / this.scale - 1 / scale;
    this.x += (screenX - this.width / 2) * keep;
    this.y += (screenY - this.height / 2) * keep;
    this.scale = scale;
    this.version += 1;
  }

  center(lat, lon, zoom = this.zoom) {
    this.x = xOf(lon);
    this.y = yOf(lat);
    this.scale = TILE * 2 ** clamp(zoom, LEAST_ZOOM, MOST_ZOOM);
    this.version += 1;
  }

  fit({ south, west, north, east }, padding = 32) {
    const [left, right, top, bottom] = [xOf(west), xOf(east), yOf(north), yOf(south)];
    this.x = (left + right) / 2;
    this.y = (top + bottom) / 2;
    const across = Math.max(this.width - 2 * padding, 40) / Math.max(right - left, 1e-9);
    const down = Math.max(this.height - 2 * padding, 40) / Math.max(bottom - top, 1e-9);
    this.scale = clamp(Math.min(across, down), TILE * 2 ** LEAST_ZOOM, TILE * 2 ** (MOST_ZOOM - 3));
    this.version += 1;
  }
}

function clamp(value, least, most) {
  return Math.max(least, Math.min(most, value));
}
