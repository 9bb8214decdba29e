// Finding a client: type a part of its name, choose with arrows or pointer.

import { byId, h, show } from "./dom.js";

const MOST = 8;

/** How well a name fits: whoever is called as it was typed comes before those whose names only begin so, or have it somewhere. */
function fit(name, typed, wanted) {
  const small = name.toLowerCase();
  if (name === typed) return 0;
  if (small === wanted) return 1;
  if (small.startsWith(wanted)) return 2;
  return small.includes(wanted) ? 3 : null;
}

export function bestOf(names, typed) {
  const wanted = typed.toLowerCase();
  const found = [[], [], [], []];
  for (const name of names) {
    const group = name === undefined ? null : fit(name, typed, wanted);
    if (group !== null && found[group].length < MOST) found[group].push(name);
  }
  return found.flat().slice(0, MOST);
}

export function searchBox(names, choose) {
  const input = byId("find");
  const list = byId("found");
  let at = -1;

  const options = () => [...list.children];
  const mark = (next) => {
    at = next;
    options().forEach((option, index) => option.setAttribute("aria-selected", index === at ? "true" : "false"));
    if (at >= 0) input.setAttribute("aria-activedescendant", options()[at].id);
    else input.removeAttribute("aria-activedescendant");
  };
  const close = () => {
    show(list, false);
    input.setAttribute("aria-expanded", "false");
    mark(-1);
  };
  const take = (name) => {
    input.value = "";
    close();
    choose(name);
  };
  const look = () => {
    const typed = input.value.trim();
    if (!typed) return close();
    const found = bestOf(names(), typed);
    list.replaceChildren(...(found.length
      ? found.map((name, index) => h("li", { role: "option", id: `found-${index}`, "aria-selected": "false",
          pointerdown: (event) => { event.preventDefault(); take(name); } }, name))
      : [h("li", { role: "option", "aria-disabled": "true", class: "note" }, "No client on the map has this name. Enter looks for it anyway.")]));
    mark(-1);
    show(list, true);
    input.setAttribute("aria-expanded", "true");
    return undefined;
  };

  input.addEventListener("input", look);
  input.addEventListener("focus", look);
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    const choices = options().filter((option) => option.getAttribute("aria-disabled") !== "true");
    if (event.key === "ArrowDown" && choices.length) mark((at + 1) % choices.length);
    else if (event.key === "ArrowUp" && choices.length) mark(at <= 0 ? choices.length - 1 : at - 1);
    else if (event.key === "Escape") close();
    else if (event.key === "Enter" && input.value.trim()) take(choices[Math.max(at, 0)]?.textContent ?? input.value.trim());
    else return;
    event.preventDefault();
  });
}
