// Drawing ten thousand points, in every browser: pixels are written into one image and shown at once. That takes about a
// millisecond or two with or without a graphics processor, where a call for each point would take tens of them.

const PHASES = 4; // positions within a pixel, in each direction: slow walkers glide instead of hopping

/**
 * Images of one point: for each colour, at each of the sixteen positions within a pixel. Of each, only the pixels that show
 * anything, as offsets from its middle in an image of this width.
 */
function stamps(colours, radius, edge, width) {
  const reach = Math.ceil(radius + edge) + 1;
  return colours.map((colour) => {
    const phases = [];
    for (let phase = 0; phase < PHASES * PHASES; phase += 1) {
      phases.push(stamp(colour, radius, edge, width, reach, (phase % PHASES) / PHASES, Math.floor(phase / PHASES) / PHASES));
    }
    return phases;
  });
}

function stamp([red, green, blue, rimRed, rimGreen, rimBlue], radius, edge, width, reach, shiftX, shiftY) {
  const offsets = [];
  const pixels = [];
  for (let y = -reach; y <= reach; y += 1) {
    for (let x = -reach; x <= reach; x += 1) {
      const distance = Math.hypot(x + 0.5 - shiftX, y + 0.5 - shiftY);
      const inner = Math.max(0, Math.min(1, radius + 0.5 - distance));
      const alpha = Math.round(Math.max(0, Math.min(1, radius + edge + 0.5 - distance)) * 255);
      if (!alpha) continue;
      const mix = (inside, rim) => Math.round(inside * inner + rim * (1 - inner));
      offsets.push(y * width + x);
      pixels.push(((alpha << 24) | (mix(blue, rimBlue) << 16) | (mix(green, rimGreen) << 8) | mix(red, rimRed)) >>> 0);
    }
  }
  return { offsets: Int32Array.from(offsets), pixels: Uint32Array.from(pixels) };
}

export class PointLayer {
  #context;
  #image = null;
  #pixels = null;
  #stamps = [];
  #reach = 0;
  #key = "";

  constructor(canvas) {
    this.canvas = canvas;
    // Kept in ordinary memory: the pixels are ours, a graphics processor would only have to be sent them.
    this.#context = canvas.getContext("2d", { willReadFrequently: true });
  }

  /** colours: [red, green, blue, red of the rim, green, blue], by the number that `numbers` has for each client. */
  draw(crowd, view, ratio, now, colours, numbers, radius) {
    const width = Math.round(view.width * ratio);
    const height = Math.round(view.height * ratio);
    if (!this.#image || this.#image.width !== width || this.#image.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
      this.#image = this.#context.createImageData(width, height);
      this.#pixels = new Uint32Array(this.#image.data.buffer);
    }
    const key = `${width}:${radius * ratio}:${colours.join()}`;
    if (key !== this.#key) {
      const edge = radius > 2.5 ? ratio : 0.4 * ratio;
      this.#stamps = stamps(colours, radius * ratio, edge, width);
      this.#reach = Math.ceil(radius * ratio + edge) + 1;
      this.#key = key;
    }
    this.#pixels.fill(0);
    const shown = this.#stampAll(crowd, view, ratio, now, numbers, width, height);
    this.#context.putImageData(this.#image, 0, 0);
    return shown;
  }

  #stampAll(crowd, view, ratio, now, numbers, width, height) {
    const pixels = this.#pixels;
    const all = this.#stamps;
    const reach = this.#reach;
    const { fromX, fromY, toX, toY, start, walk, here, size } = crowd;
    const scale = view.scale * ratio;
    const left = width / 2 - view.x * scale;
    const top = height / 2 - view.y * scale;
    let shown = 0;
    for (let index = 0; index < size; index += 1) {
      if (!here[index]) continue;
      let progress = 1;
      if (walk[index] > 0) {
        progress = (now - start[index]) / walk[index];
        if (progress > 1) progress = 1;
      }
      const x = (fromX[index] + (toX[index] - fromX[index]) * progress) * scale + left;
      const y = (fromY[index] + (toY[index] - fromY[index]) * progress) * scale + top;
      const column = Math.floor(x);
      const line = Math.floor(y);
      if (column < reach || line < reach || column + reach >= width || line + reach >= height) continue;
      const phase = (((y - line) * PHASES) | 0) * PHASES + (((x - column) * PHASES) | 0);
      const { offsets, pixels: own } = all[numbers[index] % all.length][phase];
      const middle = line * width + column;
      shown += 1;
      for (let at = 0; at < own.length; at += 1) {
        const pixel = own[at];
        const to = middle + offsets[at];
        // Where two points meet, the more solid pixel stays: as good as blending, at this size.
        if (pixel >= 0xff000000 || pixel >>> 24 > pixels[to] >>> 24) pixels[to] = pixel;
      }
    }
    return shown;
  }
}
