// Colours: of the theme from the style sheet, of schemes and roles from a row that colour-blind people can tell apart.

// The first is for those who have none.
const ROW_DARK = ["#a0aec0", "#4fd1c5", "#f6ad55", "#a78bfa", "#63b3ed", "#f687b3", "#d6e04f", "#fc8181"];
const ROW_LIGHT = ["#64748b", "#0d8a80", "#c05a00", "#6b46c1", "#1f6fc4", "#b83280", "#687400", "#c53030"];
const HEAT = {
  // Few to many, and bad to good; both end in something that is seen on either theme.
  density: ["#2b6cb0", "#2c9faf", "#48bb78", "#ecc94b", "#ed8936", "#e53e3e"],
  share: ["#c53030", "#dd6b20", "#d69e2e", "#9aa83a", "#38a169", "#2f9e8f"],
};

export function isDark() {
  return document.documentElement.dataset.theme === "dark";
}

export function row() {
  return isDark() ? ROW_DARK : ROW_LIGHT;
}

export function colourOf(number) {
  const colours = row();
  return colours[number % colours.length];
}

const known = new Map(); // asking for a computed style in every frame would cost more than drawing it

/** A number for each name: the same kind of scheme has the same colour in every broker, unless it is taken. */
export function numbersOf(names, kinds) {
  const taken = new Set();
  return names.map((name) => {
    if (!name) return 0;
    let number = 1 + Math.max(0, kinds.indexOf(name.replace(/\(.*/, "")));
    while (taken.has(number) && taken.size < ROW_DARK.length - 1) number = 1 + (number % (ROW_DARK.length - 1));
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
  return kind === "density" ? HEAT.density : HEAT.share;
}

export function heatColour(kind, share) {
  const steps = heatSteps(kind);
  return steps[Math.max(0, Math.min(steps.length - 1, Math.floor(share * steps.length)))];
}
