// The tabs of the panel, as the WAI-ARIA practices have them: arrows move between them, only one is in the tab order.

import { remember } from "./address.js";
import { byId, show } from "./dom.js";

export const VIEWS = ["load", "clients", "subscriptions", "plans"];

/** parts: what is to be told to open and close, by view. */
export function tabs(parts) {
  let open = null;
  const choose = (view) => {
    if (view === open) return;
    parts[open]?.close();
    open = view;
    for (const name of VIEWS) {
      byId(`tab-${name}`).setAttribute("aria-selected", name === view ? "true" : "false");
      byId(`tab-${name}`).tabIndex = name === view ? 0 : -1;
      show(byId(`view-${name}`), name === view);
    }
    parts[view]?.open();
    remember({ view: view === VIEWS[0] ? null : view });
  };
  for (const name of VIEWS) {
    const tab = byId(`tab-${name}`);
    tab.addEventListener("click", () => choose(name));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const next = VIEWS[(VIEWS.indexOf(name) + step + VIEWS.length) % VIEWS.length];
      byId(`tab-${next}`).focus();
      choose(next);
    });
  }
  return choose;
}
