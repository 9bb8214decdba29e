// Timelines of the last minutes: load, traffic, delay, cost of matching; dashed marks are transitions.

import { h, svg } from "./dom.js";
import { bytes, clock, counted, number, span } from "./formats.js";

const KEPT_MS = 5 * 60_000;
const GAP_MS = 5000; // longer than a busy broker lets one wait: nobody was looking, and nothing is known of that time
const WIDTH = 300;
const HEIGHT = 64;

const CHARTS = [
  { id: "load", title: "Load", axis: "a second", unit: "/s", format: number,
    series: [["deliveries_per_s", "sent"], ["publishes_per_s", "published"], ["position_updates_per_s", "moved"]] },
  { id: "traffic", title: "Traffic", axis: "a second", unit: "/s", format: bytes, series: [["bytes_out_per_s", "out"], ["bytes_in_per_s", "in"]] },
  { id: "delay", title: "Delay", axis: "of a copy", unit: "", format: (ms) => span(ms && ms * 1000), series: [["delay_ms_p99", "p99"], ["delay_ms_p50", "median"]] },
  { id: "match", title: "Match cost", axis: "of an event", unit: "", format: span, series: [["match_us", "mean"]] },
];

export class Timelines {
  #ticks = [];
  #marks = [];
  #charts;

  constructor(container) {
    this.#charts = CHARTS.map((chart) => this.#build(chart));
    container.append(...this.#charts.map(({ figure }) => figure));
  }

  #build(chart) {
    const lines = chart.series.map((_, at) => svg("path", { class: `line series-${at}` }));
    const marks = svg("g", { class: "marks" });
    const cursor = svg("line", { class: "cursor", y1: 0, y2: HEIGHT, visibility: "hidden" });
    const area = svg("path", { class: "area series-0" });
    const drawing = svg(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": `${chart.title}: nothing yet` },
      area, marks, [...lines].reverse(), cursor,
    );
    const values = chart.series.map(([, name], at) => h("span", { class: `value series-${at}` }, h("i", { class: "dot" }), `${name} –`));
    const top = h("span", { class: "top" }, "");
    const figure = h(
      "figure", { class: "timeline", id: `timeline-${chart.id}` },
      h("figcaption", {}, h("span", {}, h("strong", {}, chart.title), h("span", { class: "muted" }, ` ${chart.axis}`)), h("span", { class: "values" }, values)),
      h("div", { class: "plot" }, drawing, top),
    );
    const built = { ...chart, figure, drawing, area, lines, marks, cursor, values, top, pointed: null };
    drawing.addEventListener("pointermove", (event) => {
      const frame = drawing.getBoundingClientRect();
      this.#point((event.clientX - frame.left) / frame.width);
    });
    drawing.addEventListener("pointerleave", () => this.#point(null));
    return built;
  }

  add(tick) {
    this.#ticks.push(sampleOf(tick));
    this.#forget();
    this.#draw();
  }

  mark(transition) {
    this.#marks.push(markOf(transition));
    this.#draw();
  }

  /** What happened while the page was not there, as far as the broker still knows it; what it has it does not take twice. */
  fill(ticks, transitions) {
    this.#ticks = together(this.#ticks, ticks.map(sampleOf));
    this.#marks = together(this.#marks, transitions.map(markOf));
    this.#forget();
    this.#draw();
  }

  #forget() {
    const oldest = (this.#ticks.at(-1)?.at ?? Date.now()) - KEPT_MS;
    while (this.#ticks.length && this.#ticks[0].at < oldest) this.#ticks.shift();
    this.#marks = this.#marks.filter(({ at }) => at >= oldest);
  }

  #span() {
    const end = this.#ticks.at(-1).at;
    return [Math.min(this.#ticks[0].at, end - 60_000), end];
  }

  #draw() {
    if (!this.#ticks.length) return;
    const [start, end] = this.#span();
    const x = (at) => ((at - start) / (end - start)) * WIDTH;
    const watched = stretchesOf(this.#ticks);
    for (const chart of this.#charts) {
      const most = Math.max(0, ...chart.series.flatMap(([key]) => this.#ticks.map((tick) => tick[key] ?? 0)));
      const ceiling = most > 0 ? nice(most) : 1;
      const y = (value) => HEIGHT - 2 - (value / ceiling) * (HEIGHT - 6);
      chart.series.forEach(([key], at) => {
        const stretches = watched
          .map((ticks) => ticks.filter((tick) => Number.isFinite(tick[key])).map((tick) => [x(tick.at), y(tick[key])]))
          .filter((points) => points.length);
        chart.lines[at].setAttribute("d", stretches.map(pathOf).join(""));
        if (at === 0) chart.area.setAttribute("d", stretches.map((points) => `${pathOf(points)}L${points.at(-1)[0]} ${HEIGHT}L${points[0][0]} ${HEIGHT}Z`).join(""));
      });
      chart.marks.replaceChildren(
        ...this.#marks.filter(({ at }) => at >= start).map(({ at, text, partial }) =>
          svg("line", { class: partial ? "partial" : null, x1: x(at), x2: x(at), y1: 0, y2: HEIGHT }, svg("title", {}, `${clock(at)} ${text}`))),
      );
      chart.top.textContent = most > 0 ? `${chart.format(ceiling)}${chart.unit}` : "";
      this.#write(chart, this.#ticks.at(-1));
    }
  }

  #write(chart, tick) {
    const texts = chart.series.map(([key, name]) => `${name} ${chart.format(tick[key])}`);
    texts.forEach((text, at) => chart.values[at].lastChild.replaceWith(text));
    chart.drawing.setAttribute("aria-label", `${chart.title} (${chart.axis}): ${texts.join(", ")}`);
  }

  #point(share) {
    if (!this.#ticks.length) return;
    const [start, end] = this.#span();
    const wanted = start + share * (end - start);
    const nearest = (best, tick) => (Math.abs(tick.at - wanted) < Math.abs(best.at - wanted) ? tick : best);
    const tick = share === null ? this.#ticks.at(-1) : this.#ticks.reduce(nearest);
    for (const chart of this.#charts) {
      chart.cursor.setAttribute("visibility", share === null ? "hidden" : "visible");
      chart.cursor.setAttribute("x1", (share ?? 0) * WIDTH);
      chart.cursor.setAttribute("x2", (share ?? 0) * WIDTH);
      this.#write(chart, tick);
    }
  }
}

function sampleOf(tick) {
  return { at: tick.at_us / 1000, ...tick.load };
}

function markOf(transition) {
  return { at: transition.at_us / 1000, text: transitionText(transition), partial: isPartial(transition) };
}

/** No line across a time of which nothing is known: what lies before and after it stands for itself. */
function stretchesOf(ticks) {
  const stretches = [];
  ticks.forEach((tick, at) => {
    if (at && tick.at - ticks[at - 1].at <= GAP_MS) stretches.at(-1).push(tick);
    else stretches.push([tick]);
  });
  return stretches;
}

/** A point alone is a line, too: of no length, but with round ends. */
function pathOf(points) {
  return [...points, ...points.slice(-1)].map(([x, y], step) => `${step ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
}

/** Both, in the order of time; of two of the same time the first. */
function together(known, more) {
  const times = new Set(known.map(({ at, text }) => `${at} ${text}`));
  return [...known, ...more.filter(({ at, text }) => !times.has(`${at} ${text}`))].sort((a, b) => a.at - b.at);
}

/** Whether it moved only some of all: those in a region, or some by name. */
export function isPartial({ region, clients }) {
  return Boolean(region || clients);
}

export function transitionText({ from, to, region, clients, by }) {
  const whom = clients ? counted(clients, "client") : null;
  return [isPartial({ region, clients }) ? `→ ${to}` : `${from || "none"} → ${to}`, region, whom, by && `by ${by}`].filter(Boolean).join(", ");
}

/** The next of 1, 2, 5, 10, 20, ...: an axis should end at a number that can be read. */
function nice(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].find((step) => step * power >= value) * power;
}
