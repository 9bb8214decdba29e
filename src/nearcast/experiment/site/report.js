// Shows some rows of a page and hides the others: by words, by verdict, by document. What is chosen stands in the address,
// so that it can be linked to.
"use strict";

const form = document.querySelector("form.filter");

function rows() {
  return [...document.querySelectorAll("[data-filtered] tr[data-verdicts]")];
}

function shown(row, chosen) {
  const text = `${row.textContent} ${row.dataset.more ?? ""} ${row.dataset.document ?? ""}`.toLowerCase();
  return chosen.search.toLowerCase().split(/\s+/).every((word) => text.includes(word))
    && (!chosen.verdict || row.dataset.verdicts.split("|").includes(chosen.verdict))
    && (!chosen.document || row.dataset.document === chosen.document);
}

function apply() {
  const chosen = { search: "", verdict: "", document: "", ...Object.fromEntries(new FormData(form)) };
  let count = 0;
  for (const row of rows()) {
    row.hidden = !shown(row, chosen);
    count += row.hidden ? 0 : 1;
  }
  for (const group of document.querySelectorAll("[data-group]")) {
    group.hidden = group.querySelector("tr[data-verdicts]:not([hidden])") === null;
  }
  const status = form.querySelector("[data-count]");
  status.textContent = `${count} of ${rows().length} ${status.dataset.count}`;
}

function remember() {
  const words = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
  history.replaceState(null, "", words.size ? `#${words}` : location.pathname + location.search);
}

function recall() {
  const words = new URLSearchParams(location.hash.slice(1));
  for (const field of form.querySelectorAll("[name]")) {
    if (words.has(field.name)) {
      field.value = words.get(field.name);
    }
  }
  apply();
}

if (form) {
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => { apply(); remember(); });
  form.addEventListener("reset", () => setTimeout(() => { apply(); remember(); }));
  window.addEventListener("hashchange", recall);
  recall();
}
