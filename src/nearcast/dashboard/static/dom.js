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

/** Say something to whoever listens to the page instead of looking at it; what is said again is not repeated. */
export function announce(sentence) {
  const region = byId("announcements");
  if (region.textContent !== sentence) region.textContent = sentence;
}

/** An icon from icons.svg; decoration only, so it has no name of its own. */
export function icon(name) {
  return svg("svg", { class: "icon", "aria-hidden": "true" }, svg("use", { href: `icons.svg#${name}` }));
}
