// How long frames take, measured where they are drawn: shown in the legend, and read by the tests.

const KEPT = 600;

class Frames {
  #intervals = [];
  #costs = [];
  #last = 0;
  drawn = 0;

  record(now, cost) {
    if (this.#last) keep(this.#intervals, now - this.#last);
    this.#last = now;
    keep(this.#costs, cost);
    this.drawn += 1;
  }

  /** Somebody looked away, or nothing moved: the time until now was not the time of a frame. */
  interrupt() {
    this.#last = 0;
  }

  clear() {
    this.#intervals = [];
    this.#costs = [];
    this.#last = 0;
    this.drawn = 0;
  }

  summary() {
    return {
      frames: this.#intervals.length,
      interval: { median: quantile(this.#intervals, 0.5), p95: quantile(this.#intervals, 0.95) },
      cost: { median: quantile(this.#costs, 0.5), p95: quantile(this.#costs, 0.95) },
    };
  }
}

function keep(values, value) {
  values.push(value);
  if (values.length > KEPT) values.shift();
}

function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted.length ? sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] : null;
}

export const frames = new Frames();
