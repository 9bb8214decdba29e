// A table that asks for a page at a time, mostly the broker: searched, sorted, turned.

import { h, icon, replace } from "./dom.js";
import { Fresh } from "./fresh.js";
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
  #shown = "";
  #fresh;

  /**
   * source: {search, sort, offset, limit} -> {total, rows}, later. columns: {key, title, numeric?, long?, cell?(row) -> text or element}.
   * `empty`: what to say if there is nothing. `chosen`: rows lead somewhere; `identity`: what tells one from all others.
   */
  constructor(container, { source, name, columns, empty, chosen, identity = ({ client }) => client }) {
    Object.assign(this, { source, name, columns, empty, chosen, identity, container });
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
    this.scroll = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Table of ${name}` },
      h("table", {}, h("caption", { class: "unseen" }, name), h("thead", {}, h("tr", {}, this.headings)), this.body));
    this.#fresh = new Fresh(container, FRESH_MS, () => this.load());
    container.append(
      h("div", { class: "field" }, icon("search"), this.search),
      this.scroll,
      this.note,
      h("nav", { class: "pages", "aria-label": `Pages of ${name}` }, this.back, this.position, this.next),
    );
  }

  /** While it is looked at, it stays fresh. */
  open() {
    this.#fresh.start();
  }

  close() {
    this.#fresh.stop();
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
      if (turn === this.#asked) this.note.textContent = refusal.message; // what is there may be looked at meanwhile
    }
  }

  #say(sentence) {
    replace(this.body, [], this.scroll);
    this.note.textContent = sentence;
    this.position.textContent = "";
    this.#turnable(false, false);
  }

  /** A button that cannot be used any more hands the focus on. */
  #turnable(back, next) {
    const focused = document.activeElement;
    this.back.disabled = !back;
    this.next.disabled = !next;
    if (focused === this.back && !back) (next ? this.next : this.scroll).focus({ preventScroll: true });
    if (focused === this.next && !next) (back ? this.back : this.scroll).focus({ preventScroll: true });
  }

  #show({ total, rows }) {
    const { search, sort, offset } = this.#state;
    const all = JSON.stringify([search, sort, offset, total, rows]);
    if (all === this.#shown && !this.note.textContent) return; // nothing is built anew under somebody's fingers
    this.#shown = all;
    this.headings.forEach((heading, at) => {
      const { key } = this.columns[at];
      const order = sort === key ? "ascending" : sort === `-${key}` ? "descending" : "none";
      heading.setAttribute("aria-sort", order);
    });
    if (rows.length) {
      this.note.textContent = "";
      replace(this.body, rows.map((row) => this.#row(row)), this.scroll);
      this.position.textContent = `${number(offset + 1)} to ${number(offset + rows.length)} of ${number(total)}`;
      this.#turnable(offset > 0, offset + rows.length < total);
    } else if (offset > 0 && total > 0) {
      this.#turn({ offset: 0 }); // there are fewer than there were
    } else {
      this.#say(search ? `Nothing matches “${search}”.` : this.empty);
    }
  }

  #row(row) {
    return h("tr", {}, this.columns.map((column, at) => {
      const content = column.cell ? column.cell(row) : String(row[column.key] ?? "–");
      const shown = at === 0 && this.chosen
        ? h("button", { type: "button", class: "link", "data-key": `${this.name}:${this.identity(row)}`, click: () => this.chosen(row) }, content)
        : content;
      return h(at === 0 ? "th" : "td", { scope: at === 0 ? "row" : null, class: column.numeric ? "numeric" : column.long ? "long" : null }, shown);
    }));
  }
}
