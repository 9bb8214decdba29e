// Before anything is drawn: the theme of the address, else the one chosen last, else that of the system.
"use strict";
(() => {
  const asked = new URLSearchParams(location.search).get("theme");
  let chosen = null;
  try {
    chosen = localStorage.getItem("nearcast-theme");
  } catch {
    // storage may be forbidden
  }
  const theme = [asked, chosen].find((name) => name === "dark" || name === "light");
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  document.documentElement.dataset.theme = theme ?? system;
})();
