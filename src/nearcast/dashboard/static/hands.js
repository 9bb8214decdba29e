// Moving the map: dragging, wheel, two fingers, arrows, + and -, 0 to fit; and pointing at a client.

import { byId } from "./dom.js";

const KEY_STEP = 80;
const A_CLICK = 5; // pixels: less is no dragging

export function steer(box, map) {
  const { view } = map;
  const pointers = new Map();
  let travelled = 0;
  let apart = 0;

  const at = (event) => {
    const frame = box.getBoundingClientRect();
    return [event.clientX - frame.left, event.clientY - frame.top];
  };
  const spreadOf = () => {
    const [first, second] = [...pointers.values()];
    return Math.hypot(first[0] - second[0], first[1] - second[1]);
  };

  box.addEventListener("pointerdown", (event) => {
    if (event.target.closest("button, a, input, select, details")) return;
    box.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, at(event));
    if (pointers.size === 1) travelled = 0;
    if (pointers.size === 2) apart = spreadOf();
    hideTip();
  });

  box.addEventListener("pointermove", (event) => {
    const now = at(event);
    const before = pointers.get(event.pointerId);
    if (!before) return point(event, now);
    pointers.set(event.pointerId, now);
    const [dx, dy] = [now[0] - before[0], now[1] - before[1]];
    travelled += Math.hypot(dx, dy);
    view.pan(dx / pointers.size, dy / pointers.size);
    if (pointers.size === 2) {
      const wide = spreadOf();
      const [first, second] = [...pointers.values()];
      if (apart) view.zoomAt(wide / apart, (first[0] + second[0]) / 2, (first[1] + second[1]) / 2);
      apart = wide;
    }
    map.touch();
  });

  const release = (event) => {
    if (!pointers.delete(event.pointerId)) return;
    if (event.type === "pointerup" && travelled < A_CLICK) {
      const client = map.clientAt(...at(event));
      if (client !== null) map.dispatchEvent(new CustomEvent("chosen", { detail: client }));
    }
  };
  box.addEventListener("pointerup", release);
  box.addEventListener("pointercancel", release);
  box.addEventListener("pointerleave", () => hideTip());

  box.addEventListener("wheel", (event) => {
    event.preventDefault();
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 30 : 1;
    view.zoomAt(2 ** (-event.deltaY * lines / 400), ...at(event));
    map.touch();
  }, { passive: false });

  box.addEventListener("dblclick", (event) => {
    if (event.target.closest("button, details")) return;
    view.zoomAt(2, ...at(event));
    map.touch();
  });

  const keys = {
    ArrowLeft: () => view.pan(KEY_STEP, 0), ArrowRight: () => view.pan(-KEY_STEP, 0),
    ArrowUp: () => view.pan(0, KEY_STEP), ArrowDown: () => view.pan(0, -KEY_STEP),
    "+": () => view.zoomAt(1.5), "=": () => view.zoomAt(1.5), "-": () => view.zoomAt(1 / 1.5), 0: () => map.fit(),
  };
  box.addEventListener("keydown", (event) => {
    const act = event.target === box && !event.ctrlKey && !event.metaKey && !event.altKey ? keys[event.key] : null;
    if (!act) return;
    event.preventDefault();
    act();
    map.touch();
  });

  byId("zoom-in").addEventListener("click", () => { view.zoomAt(1.6); map.touch(); });
  byId("zoom-out").addEventListener("click", () => { view.zoomAt(1 / 1.6); map.touch(); });
  byId("zoom-fit").addEventListener("click", () => { map.fit(); map.touch(); });

  const tip = byId("tip");
  function hideTip() {
    tip.hidden = true;
    box.classList.remove("pointing");
  }
  function point(event, [x, y]) {
    const client = event.target.tagName === "CANVAS" || event.target === box ? map.clientAt(x, y) : null;
    if (client === null) return hideTip();
    tip.textContent = client;
    tip.style.left = `${Math.min(x + 14, view.width - 160)}px`;
    tip.style.top = `${y + 14}px`;
    tip.hidden = false;
    box.classList.add("pointing");
    return undefined;
  }
}
