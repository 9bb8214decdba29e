// Why an event is, or is not, delivered to a client: the definition of delivery, term by term.

import { get } from "./api.js";
import { h, icon } from "./dom.js";
import { plain, withClocks } from "./formats.js";

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

/** Subscriptions without a name have one that ends in a number of the broker's own; nobody reads microseconds, nor the braces of JSON. */
function readable(text) {
  return plain(withClocks(text.replaceAll(/\\x00\d*/g, "")));
}

export function tree(root) {
  return h("ul", { class: "tree" }, term(root));
}

export class Explanation {
  #asked = 0;

  constructor(container) {
    this.container = container;
  }

  hide() {
    this.#asked += 1;
    this.container.hidden = true;
    this.container.replaceChildren();
  }

  async show(event, client) {
    const turn = (this.#asked += 1);
    const { container } = this;
    container.hidden = false;
    container.setAttribute("aria-busy", "true");
    try {
      const answer = await get("api/explain", { event, client });
      if (turn !== this.#asked) return; // something else was asked for since
      this.#write(event, client, answer);
    } catch (refusal) {
      if (turn !== this.#asked) return;
      container.replaceChildren(h("p", { class: "problem", role: "alert" }, refusal.message));
    }
    container.removeAttribute("aria-busy");
  }

  #write(event, client, { delivered, tree: root, note }) {
    const title = h("h3", { tabindex: -1 }, delivered ? "Why it was sent" : "Why it was withheld");
    this.container.replaceChildren(...[
      title,
      h("p", { class: "muted" }, "event ", h("code", {}, event), ", client ", h("code", {}, client)),
      note ? h("p", { class: "small" }, note) : null,
      tree(root),
      h("p", { class: "muted small" }, "Green terms hold, red ones do not; bold ones made the answer."),
    ].filter(Boolean));
    title.focus({ preventScroll: true });
    this.container.scrollIntoView({ block: "nearest" });
  }
}
