// Events as they spread: a ring grows from the place to the reach, lines run to the receivers, and both fade.

import { xOf, yOf } from "./mercator.js";
import { variable, withAlpha } from "./palette.js";
import { drawShape } from "./shapes.js";

const RING_MS = 900;
const GONE_MS = 2600;
const MOST_AT_ONCE = 60;
const MOST_LINES = 120;
const FEW = 15; // events at once that are drawn as strongly as one alone: many would hide the people

export class Spread {
  #events = [];
  still = matchMedia("(prefers-reduced-motion: reduce)").matches;

  add(event, now) {
    if (event.lat === null || event.lat === undefined) return;
    this.#events.push({ ...event, shown: now });
    if (this.#events.length > MOST_AT_ONCE) this.#events.shift();
  }

  clear() {
    this.#events = [];
  }

  /** How many are still to be seen. */
  active(now) {
    this.#events = this.#events.filter(({ shown }) => now - shown < GONE_MS);
    return this.#events.length;
  }

  draw(context, view, crowd, now) {
    const colour = variable("--event");
    for (const event of this.#events) {
      const age = Math.max(0, now - event.shown); // a frame has the time at which it began, which may be earlier
      const faded = (1 - Math.min(age / GONE_MS, 1)) * Math.min(1, Math.sqrt(FEW / this.#events.length));
      const grown = this.still ? 1 : ease(Math.min(age / RING_MS, 1));
      const x = view.screenX(xOf(event.lon));
      const y = view.screenY(yOf(event.lat));
      if (event.reach) {
        const look = { fill: withAlpha(colour, 0.07 * faded), stroke: withAlpha(colour, 0.5 * faded), dash: [4, 4] };
        drawShape(context, view, event.reach, look);
      }
      this.#lines(context, view, crowd, now, event, x, y, grown, withAlpha(colour, 0.55 * faded * Math.min(1, Math.sqrt(12 / event.receivers.length))));
      context.beginPath();
      context.arc(x, y, 4 + 30 * grown, 0, 2 * Math.PI);
      context.strokeStyle = withAlpha(colour, 0.9 * (1 - grown) + 0.1 * faded);
      context.lineWidth = 2.5 - 1.5 * grown;
      context.stroke();
      context.beginPath();
      context.arc(x, y, 4, 0, 2 * Math.PI);
      context.fillStyle = withAlpha(colour, faded);
      context.fill();
    }
  }

  #lines(context, view, crowd, now, event, x, y, grown, colour) {
    context.beginPath();
    for (const receiver of event.receivers.slice(0, MOST_LINES)) {
      const index = crowd.indexOf(receiver);
      if (index < 0 || !crowd.here[index]) continue;
      const toX = view.screenX(crowd.x(index, now));
      const toY = view.screenY(crowd.y(index, now));
      context.moveTo(x, y);
      context.lineTo(x + (toX - x) * grown, y + (toY - y) * grown);
      if (grown === 1) {
        context.moveTo(toX + 5, toY);
        context.arc(toX, toY, 5, 0, 2 * Math.PI);
      }
    }
    context.strokeStyle = colour;
    context.lineWidth = 1.2;
    context.stroke();
  }
}

function ease(share) {
  return 1 - (1 - share) ** 3;
}
