// Why an event is, or is not, delivered to a client: the definition of delivery, term by term.

import { get } from "./api.js";
import { h, icon } from "./dom.js";

/** A term and the terms it is made of. What made the answer is emphasised: under a "no" the terms that do not hold. */
function term({ ok, what, text, children = [] }, decisive = true) {
  const line = [
    h("span", { class: `verdict ${ok ? "yes" : "no"}` }, icon(ok ? "yes" : "no"), h("span", { class: "unseen" }, ok ? "yes: " : "no: ")),
    h("span", { class: "what" }, what),
    text ? h("span", { class: "text" }, readable(text)) : null,
  ];
  const look = `term ${ok ? "holds" : "fails"}${decisive ? " decisive" : ""}`;
  if (!children.length) return h("li", { class: look }, h("div", { class: "line" }, line));
  const parts = children.map((child) => term(child, decisive && child.ok === ok));
  return h("li", { class: look }, h("details", { open: true }, h("summary", { class: "line" }, line), h("ul", {}, parts)));
}

/** Subscriptions without a name have one that ends in a number of the broker's own. */
function readable(text) {
  return text.replaceAll(/\\x00\d*/g, "");
}

export function tree(root) {
  return h("ul", { class: "tree" }, term(root));
}

export async function explain(container, event, client) {
  container.hidden = false;
  container.setAttribute("aria-busy", "true");
  try {
    const { delivered, tree: root, note } = await get("api/explain", { event, client });
    container.replaceChildren(...[
      h("h3", { tabindex: -1 }, delivered ? "Why it was sent" : "Why it was withheld"),
      h("p", { class: "muted" }, "event ", h("code", {}, event), ", client ", h("code", {}, client)),
      note ? h("p", { class: "small" }, note) : null,
      tree(root),
      h("p", { class: "muted small" }, "Green terms hold, red ones do not; bold ones made the answer."),
    ].filter(Boolean));
    container.querySelector("h3").focus({ preventScroll: true });
    container.scrollIntoView({ block: "nearest" });
  } catch (refusal) {
    container.replaceChildren(h("p", { class: "problem", role: "alert" }, refusal.message));
  }
  container.removeAttribute("aria-busy");
}
