// What is asked for again and again is asked for only while somebody can see it.

/** Calls `act` every so often while `element` is on the screen and the page in front; as soon as it is, if it has grown old meanwhile. */
export class Fresh {
  #running = false;
  #seen = false;
  #busy = false;
  #due = 0;
  #timer = 0;
  #observer;

  constructor(element, milliseconds, act) {
    Object.assign(this, { element, milliseconds, act });
    // Other tabs, a closed panel and what was scrolled away are the same to it.
    this.#observer = new IntersectionObserver((entries) => {
      this.#seen = entries.at(-1).isIntersecting;
      this.#look();
    });
    document.addEventListener("visibilitychange", () => this.#look());
  }

  start() {
    if (this.#running) return;
    this.#running = true;
    this.#observer.observe(this.element);
  }

  stop() {
    this.#running = this.#seen = false;
    this.#observer.disconnect();
    clearTimeout(this.#timer);
  }

  /** What there was does not count any more. */
  now() {
    this.#due = 0;
    this.#look();
  }

  async #look() {
    clearTimeout(this.#timer);
    if (!this.#running || !this.#seen || document.hidden || this.#busy) return;
    const wait = this.#due - performance.now();
    if (wait > 0) {
      this.#timer = setTimeout(() => this.#look(), wait);
      return;
    }
    this.#busy = true; // an answer that takes longer than the interval is not overtaken
    this.#due = Infinity;
    try {
      await this.act();
    } finally {
      this.#busy = false;
      this.#due = Math.min(this.#due, performance.now() + this.milliseconds);
      this.#look();
    }
  }
}
