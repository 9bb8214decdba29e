// A table that asks for a page at a time, mostly the broker: searched, sorted, turned.

import { h, icon } from "./dom.js";
import { number } from "./formats.js";

const PAGE = 50;
const TYPING_MS = 200;
const FRESH_MS = 5000;

/** A page of rows that are here already; the broker does the same with its own. */
export function pageOf(rows, { search, sort, offset, limit }) {
  const wanted = search.toLowerCase();
  const found = rows.filter((row) => Object.values(row).some((value) => String(value ?? "").toLowerCase().includes(wanted)));
  const key = sort.replace(/^-/, "");
  const order = (a, b) => (a[key] ?? "") < (b[key] ?? "") ? -1 : (a[key] ?? "") > (b[key] ?? "") ? 1 : 0;
  if (sort) found.sort(sort === key ? order : (a, b) => order(b, a));
  return { total: found.length, rows: found.slice(offset, offset + limit) };
}

export class PagedTable {
  #state = { search: "", sort: "", offset: 0 };
  #timer = 0;
  #asked = 0;

  /** source: {search, sort, offset, limit} -> {total, rows}, later. columns: {key, title, numeric?, long?, cell?(row) -> text or element}. `empty`: what to say if there is nothing. */
  constructor(container, { source, name, columns, empty, chosen }) {
    Object.assign(this, { source, name, columns, empty, chosen, container });
    this.search = h("input", {
      type: "search", id: `${name}-search`, placeholder: `Search ${name}`, "aria-label": `Search ${name}`, autocomplete: "off",
      input: () => {
        clearTimeout(this.#timer);
        this.#timer = setTimeout(() => this.#turn({ search: this.search.value, offset: 0 }), TYPING_MS);
      },
    });
    this.headings = columns.map((column) =>
      h("th", { scope: "col", class: column.numeric ? "numeric" : null },
        h("button", { type: "button", click: () => this.#sortBy(column.key) }, column.title)));
    this.body = h("tbody", {});
    this.note = h("p", { class: "note", role: "status" });
    this.back = h("button", { type: "button", class: "quiet", click: () => this.#step(-PAGE) }, "Previous");
    this.next = h("button", { type: "button", class: "quiet", click: () => this.#step(PAGE) }, "Next");
    this.position = h("span", { class: "muted" });
    container.append(
      h("div", { class: "field" }, icon("search"), this.search),
      h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Table of ${name}` },
        h("table", {}, h("caption", { class: "unseen" }, name), h("thead", {}, h("tr", {}, this.headings)), this.body)),
      this.note,
      h("nav", { class: "pages", "aria-label": `Pages of ${name}` }, this.back, this.position, this.next),
    );
  }

  /** While it is looked at, it stays fresh. */
  open() {
    this.load();
    this.fresh ??= setInterval(() => this.load(), FRESH_MS);
  }

  close() {
    clearInterval(this.fresh);
    this.fresh = undefined;
  }

  #turn(change) {
    Object.assign(this.#state, change);
    this.load();
  }

  #step(by) {
    this.#turn({ offset: Math.max(0, this.#state.offset + by) });
  }

  #sortBy(key) {
    const { sort } = this.#state;
    this.#turn({ sort: sort === key ? `-${key}` : sort === `-${key}` ? "" : key, offset: 0 });
  }

  async load() {
    const turn = (this.#asked += 1);
    const { search, sort, offset } = this.#state;
    try {
      const page = await this.source({ search, sort, offset, limit: PAGE });
      if (turn === this.#asked) this.#show(page); // what was asked for later is not overwritten
    } catch (refusal) {
      if (turn === this.#asked) this.#say(refusal.message);
    }
  }

  #say(sentence) {
    this.body.replaceChildren();
    this.note.textContent = sentence;
    this.position.textContent = "";
    this.back.disabled = this.next.disabled = true;
  }

  #show({ total, rows }) {
    const { search, sort, offset } = this.#state;
    this.headings.forEach((heading, at) => {
      const { key } = this.columns[at];
      const order = sort === key ? "ascending" : sort === `-${key}` ? "descending" : "none";
      heading.setAttribute("aria-sort", order);
    });
    if (!rows.length) return this.#say(search ? `Nothing matches “${search}”.` : this.empty);
    this.note.textContent = "";
    this.body.replaceChildren(...rows.map((row) => this.#row(row)));
    this.position.textContent = `${number(offset + 1)} to ${number(offset + rows.length)} of ${number(total)}`;
    this.back.disabled = offset === 0;
    this.next.disabled = offset + rows.length >= total;
    return undefined;
  }

  #row(row) {
    return h("tr", {}, this.columns.map((column, at) => {
      const content = column.cell ? column.cell(row) : String(row[column.key] ?? "–");
      const shown = at === 0 && this.chosen
        ? h("button", { type: "button", class: "link", click: () => this.chosen(row) }, content)
        : content;
      return h(at === 0 ? "th" : "td", { scope: at === 0 ? "row" : null, class: column.numeric ? "numeric" : column.long ? "long" : null }, shown);
    }));
  }
}
