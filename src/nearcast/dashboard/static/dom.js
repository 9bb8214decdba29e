// Building the page. Ids, topics and payloads come from strangers: text only ever becomes a text node, never markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** An element: `h("button", {type: "button", click: act}, "Act")`. A function is a listener, a string a text node. */
export function h(tag, properties, ...children) {
  return fill(document.createElement(tag), properties, children);
}

export function svg(tag, properties, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

export function byId(id) {
  return document.getElementById(id);
}

export function show(element, visible) {
  element.hidden = !visible;
}

/** New content that leaves the focus where it was: what had it is found again by its `data-key`; if it has gone, `otherwise` has it. */
export function replace(parent, children, otherwise = null) {
  const focused = document.activeElement;
  const held = parent.contains(focused) && parent !== focused;
  parent.replaceChildren(...children);
  if (held) (keyed(parent, focused.dataset.key) ?? otherwise)?.focus({ preventScroll: true });
}

/** The element with this `data-key`, whatever strangers have put into it. */
export function keyed(parent, key) {
  return key === undefined ? undefined : [...parent.querySelectorAll("[data-key]")].find(({ dataset }) => dataset.key === key);
}

/** Say something to whoever listens to the page instead of looking at it; what is said again is not repeated. */
export function announce(sentence) {
  const region = byId("announcements");
  if (region.textContent !== sentence) region.textContent = sentence;
}

/** An icon from icons.svg; decoration only, so it has no name of its own. */
export function icon(name) {
  return svg("svg", { class: "icon", "aria-hidden": "true" }, svg("use", { href: `icons.svg#${name}` }));
}
