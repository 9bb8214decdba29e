// Colours: of the theme from the style sheet, of schemes and roles from a row that colour-blind people can tell apart.

// Number 0 is for those who have none, and for nobody else: grey means nothing in particular.
const NONE = { dark: "#a0aec0", light: "#64748b" };
const ROW = {
  dark: ["#4fd1c5", "#f6ad55", "#a78bfa", "#63b3ed", "#f687b3", "#d6e04f", "#fc8181", "#68d391", "#e06cff", "#e3c3a0", "#7c8cff", "#d97742"],
  light: ["#0d8a80", "#c05a00", "#6b46c1", "#1f6fc4", "#b83280", "#687400", "#c53030", "#2f7d32", "#a21caf", "#7a4f2b", "#3730a3", "#d6336c"],
};
const HEAT = {
  // Few to many, and bad to good: on the light map few must be as dark as the rest, to be seen at all.
  dark: {
    density: ["#2b6cb0", "#2c9faf", "#48bb78", "#ecc94b", "#ed8936", "#e53e3e"],
    share: ["#e5484d", "#ed8936", "#ecc94b", "#a3b83a", "#48bb78", "#2fb5a4"],
  },
  light: {
    density: ["#3b82c4", "#0e8fa3", "#2f9e5b", "#d9a400", "#dd6b20", "#c81e1e"],
    share: ["#c81e1e", "#dd6b20", "#d9a400", "#8a9a20", "#2f9e5b", "#0d8a80"],
  },
};

function theme() {
  return document.documentElement.dataset.theme === "dark" ? "dark" : "light";
}

export function colourOf(number) {
  const colours = ROW[theme()];
  return number ? colours[(number - 1) % colours.length] : NONE[theme()];
}

const known = new Map(); // asking for a computed style in every frame would cost more than drawing it

/** A number for each name: the same kind of scheme has the same colour in every broker, unless it is taken. */
export function numbersOf(names, kinds) {
  const taken = new Set();
  return names.map((name) => {
    if (!name) return 0;
    let number = 1 + Math.max(0, kinds.indexOf(name.replace(/\(.*/, "")));
    while (taken.has(number) && taken.size < ROW.dark.length) number = 1 + (number % ROW.dark.length);
    taken.add(number);
    return number;
  });
}

export function variable(name) {
  if (!known.has(name)) {
    known.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  }
  return known.get(name);
}

export function forgetTheme() {
  known.clear();
}

export function channels(hex) {
  return [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));
}

export function withAlpha(hex, alpha) {
  return `rgba(${channels(hex).join(", ")}, ${alpha})`;
}

/** The steps of a heat map, and which of them stands for a share between 0 and 1. */
export function heatSteps(kind) {
  return HEAT[theme()][kind === "density" ? "density" : "share"];
}

export function heatColour(kind, share) {
  const steps = heatSteps(kind);
  return steps[Math.max(0, Math.min(steps.length - 1, Math.floor(share * steps.length)))];
}
