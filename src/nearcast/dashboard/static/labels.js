// Names on the map, above the people: each beside the others rather than over them, and legible on whatever lies below.

const SIZE = 11;
const HIGH = 15; // with some space
const CHARACTER = 5.6; // of that size, on average: enough to tell whether two are in each other's way

export class Labels {
  #context;
  #taken = []; // boxes

  constructor(canvas) {
    this.canvas = canvas;
    this.#context = canvas.getContext("2d");
  }

  begin(view, ratio) {
    this.canvas.width = Math.round(view.width * ratio);
    this.canvas.height = Math.round(view.height * ratio);
    this.#context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.#taken = [];
  }

  /** Nothing to be read costs nothing. */
  end() {
    this.canvas.hidden = this.#taken.length === 0;
  }

  /** At the first of these places ([x, y] of its middle) where nothing is written yet; whatever `must` be read is at the first one otherwise. */
  write(text, places, { font, colour, halo, strong = false, must = false }) {
    if (!text) return;
    const wide = text.length * CHARACTER + 6;
    const boxes = places.map(([x, y]) => ({ x, y, left: x - wide / 2, right: x + wide / 2, top: y - HIGH / 2, bottom: y + HIGH / 2 }));
    const box = boxes.find((one) => !this.#taken.some((other) => meet(one, other))) ?? (must ? boxes[0] : null);
    if (box === null) return;
    this.#taken.push(box);
    const context = this.#context;
    context.font = `${strong ? "600 " : ""}${SIZE}px ${font}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    context.lineWidth = 3.5;
    context.strokeStyle = halo;
    context.strokeText(text, box.x, box.y);
    context.fillStyle = colour;
    context.fillText(text, box.x, box.y);
  }
}

function meet(one, other) {
  return one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
}
