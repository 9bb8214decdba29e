// Numbers and times as people read them.

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const ONE = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const TWO = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });

export function number(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e6) return `${ONE.format(value / 1e6)} M`;
  if (size >= 1e4) return `${ONE.format(value / 1e3)} k`;
  if (size >= 100 || Number.isInteger(value)) return WHOLE.format(value);
  return size >= 10 ? ONE.format(value) : TWO.format(value);
}

/** "1 client", "2 clients". */
export function counted(value, what) {
  return `${number(value)} ${what}${value === 1 ? "" : "s"}`;
}

export function bytes(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value >= 1e6) return `${ONE.format(value / 1e6)} MB`;
  return value >= 1e3 ? `${ONE.format(value / 1e3)} kB` : `${WHOLE.format(value)} B`;
}

/** Of microseconds, in the unit that suits them: "160 µs", "16.6 ms", "2.5 s". */
export function span(microseconds) {
  if (!Number.isFinite(microseconds)) return "–";
  if (microseconds < 1e3) return `${number(microseconds)} µs`;
  return microseconds < 1e6 ? `${number(microseconds / 1e3)} ms` : `${number(microseconds / 1e6)} s`;
}

const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY_AND_CLOCK = new Intl.DateTimeFormat("en-GB", {
  day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit",
});

/** The time of day, in the reader's time zone; with the day if that is not today. */
export function clock(milliseconds) {
  if (!Number.isFinite(milliseconds)) return "–";
  const then = new Date(milliseconds);
  return (then.toDateString() === new Date().toDateString() ? CLOCK : DAY_AND_CLOCK).format(then);
}

export function clockOfText(text) {
  return text ? clock(Date.parse(text)) : "–";
}

const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;

/** Every time in a text as the reader's clock shows it. */
export function withClocks(text) {
  return text.replaceAll(TIME, clockOfText);
}

const WRITTEN = {
  path: (path) => path,
  below: (path) => `below ${path}`,
  point: ([lon, lat]) => `${degrees(lat)}, ${degrees(lon)}`,
  instant: (time) => clock(Date.parse(time)),
  tags: (tags) => tags.join(", "),
  one_of: (values) => values.join(" or "),
  range: ([low, high]) => `${low} to ${high}`,
};
const OBJECT = /\{"(\w+)":\s*("[^"]*"|\[[^\]{}]*\])\}/g;

/** Values come as JSON: what an object stands for reads better without its braces, wherever it stands. */
export function plain(text) {
  return String(text).replaceAll(OBJECT, (whole, kind, value) => {
    try {
      return WRITTEN[kind]?.(JSON.parse(value)) ?? whole;
    } catch {
      return whole;
    }
  });
}

export function duration(milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

export function degrees(value) {
  return Number.isFinite(value) ? value.toFixed(5) : "–";
}
