// Plans: which scheme runs where, a transition by hand, the rules, and what has happened so far.

import { get, post, put } from "./api.js";
import { announce, byId, h, show } from "./dom.js";
import { Fresh } from "./fresh.js";
import { clockOfText, number } from "./formats.js";
import { PagedTable, pageOf } from "./tables.js";

const FRESH_MS = 5000;
const CONFLICT = 409;

/** Names of clients between spaces or commas; one that has any itself stands in quotation marks. */
export function namesIn(text) {
  return [...text.matchAll(/"([^"]+)"|[^\s,"]+/g)].map(([whole, quoted]) => quoted ?? whole);
}

export class Plans {
  #fresh = new Fresh(byId("view-plans"), FRESH_MS, () => this.load());
  #version = undefined; // of the rules, as they were read
  #read = null; // their text
  #rulesLoaded = false;
  #kinds = [];
  #history = [];
  #table;

  constructor() {
    byId("transition-form").addEventListener("submit", (event) => this.#command(event));
    byId("scheme-kind").addEventListener("change", () => this.#chooseKind());
    byId("rules-form").addEventListener("submit", (event) => this.#saveRules(event));
    byId("rules-reload").addEventListener("click", () => this.#loadRules());
    this.#table = new PagedTable(byId("history"), {
      source: async (query) => pageOf(this.#history, query), name: "plans", empty: "No transition yet.",
      columns: [
        { key: "at", title: "When", cell: ({ at }) => clockOfText(at) },
        { key: "what", title: "What", long: true },
        { key: "by", title: "By", long: true },
        { key: "clients", title: "Clients", numeric: true, cell: ({ clients }) => (Number.isFinite(clients) ? number(clients) : "all") },
      ],
    });
  }

  /** Who may only look is told so, beside what cannot be used. */
  permit(me) {
    show(byId("no-command"), !me.may_command);
    for (const form of [byId("transition-form"), byId("rules-form")]) {
      for (const control of form.elements) control.disabled = !me.may_command;
    }
  }

  setWorld({ schemes = [] }) {
    this.#kinds = schemes;
    byId("scheme-kind").replaceChildren(...schemes.map(({ kind }) => h("option", { value: kind }, kind)));
    this.#chooseKind();
  }

  open() {
    if (!this.#rulesLoaded) this.#loadRules();
    this.#fresh.start();
  }

  /** They may be others now; what somebody is writing stays, and is compared when it is applied. */
  forgetRules() {
    this.#rulesLoaded = byId("rules-text").value !== (this.#read ?? "");
    if (!this.#rulesLoaded && !byId("view-plans").hidden) this.#loadRules();
  }

  close() {
    this.#fresh.stop();
  }

  #chooseKind() {
    const kind = this.#kinds.find((candidate) => candidate.kind === byId("scheme-kind").value);
    byId("scheme-about").textContent = kind?.about ?? "";
    const fields = (kind?.parameters ?? []).map((parameter) => {
      const { name, type, default: usual, unit, meaning } = parameter;
      const choices = type === "bool" ? ["true", "false"] : (parameter.choices ?? []);
      const id = `parameter-${name}`;
      const hint = meaning ? h("small", { id: `${id}-hint`, class: "muted" }, meaning) : null;
      const described = { id, name, "data-type": type, "aria-describedby": hint && `${id}-hint` };
      const input = choices.length
        ? h("select", described, choices.map((choice) => h("option", { value: choice, selected: choice === String(usual) }, choice)))
        : h("input", { ...described, placeholder: String(usual ?? ""), autocomplete: "off" });
      return h("div", { class: "parameter" }, h("label", { for: id }, unit ? `${name} (${unit})` : name), input, hint);
    });
    byId("scheme-parameters").replaceChildren(...fields);
    show(byId("scheme-details"), fields.length > 0);
  }

  /** As in EGRID(factor=10): only what differs from the usual is written. */
  #scheme() {
    const kind = this.#kinds.find((candidate) => candidate.kind === byId("scheme-kind").value);
    const given = [...byId("scheme-parameters").querySelectorAll("input, select")].filter(({ name, value }) => {
      const usual = kind.parameters.find((parameter) => parameter.name === name)?.default;
      return value.trim() !== "" && value.trim() !== String(usual);
    });
    const texts = given.map(({ name, value }) => `${name}=${value.trim()}`);
    return texts.length ? `${kind.kind}(${texts.join(", ")})` : kind.kind;
  }

  async #command(event) {
    event.preventDefault();
    const clients = namesIn(byId("transition-clients").value);
    const scheme = this.#scheme();
    const answer = byId("transition-answer");
    byId("transition-send").disabled = true;
    answer.className = "note";
    answer.textContent = `Moving ${clients.length ? clients.join(", ") : "everybody"} to ${scheme}…`;
    try {
      await post("api/transitions", clients.length ? { scheme, clients } : { scheme });
      answer.className = "success";
      answer.textContent = `${clients.length ? clients.join(", ") : "Everybody"} moved to ${scheme}.`;
      await this.load();
    } catch (refusal) {
      answer.className = "problem";
      answer.textContent = refusal.message;
    }
    byId("transition-send").disabled = false;
    announce(answer.textContent);
  }

  async load() {
    try {
      this.#show(await get("api/plans"));
    } catch (refusal) {
      byId("current-groups").textContent = refusal.message;
    }
  }

  #show({ scheme, groups = {}, regions = [], history = [], waiting = 0 }) {
    byId("current-scheme").textContent = scheme;
    const counted = Object.entries(groups).map(([name, count]) => `${name || "no scheme"}: ${number(count)}`);
    byId("current-groups").textContent = [...counted, waiting ? `${number(waiting)} have yet to follow` : null].filter(Boolean).join(" · ");
    byId("regions").replaceChildren(...regions.map(({ name, scheme: own, radius }) =>
      h("li", {}, h("span", { class: "topic" }, name), h("span", { class: "muted small" }, `${own}, within ${number(radius)} m`))));
    show(byId("regions-title"), regions.length > 0);
    this.#history = history;
    this.#table.load();
    this.regionsChanged?.(regions);
  }

  /** Those that hold now, into the field: what was written there is given up. */
  async #loadRules() {
    const answer = byId("rules-answer");
    answer.textContent = "";
    try {
      this.#take(await get("api/rules"));
      byId("rules-theirs").hidden = true;
    } catch (refusal) {
      answer.className = "problem";
      answer.textContent = refusal.message;
    }
  }

  #take({ text, version }) {
    byId("rules-text").value = this.#read = text ?? byId("rules-text").value;
    this.#version = version;
    this.#rulesLoaded = true;
  }

  async #saveRules(event) {
    event.preventDefault();
    const answer = byId("rules-answer");
    const text = byId("rules-text").value;
    try {
      this.#take(await put("api/rules", this.#version === undefined ? { text } : { text, version: this.#version }));
      byId("rules-theirs").hidden = true;
      answer.className = "success";
      answer.textContent = "The rules hold from now on.";
    } catch (refusal) {
      answer.className = "problem";
      answer.textContent = `Nothing was changed. ${refusal.message}`;
      if (refusal.status === CONFLICT) await this.#compare(answer);
    }
    announce(answer.textContent);
  }

  /** Somebody else was faster: theirs are shown beside one's own, and applying those once more is meant. */
  async #compare(answer) {
    try {
      const { text, version } = await get("api/rules");
      this.#version = version;
      byId("rules-theirs-text").textContent = text || "(none)";
      byId("rules-theirs").hidden = false;
      answer.textContent = `${answer.textContent.replace(/\.$/, "")}. “Apply” puts yours in place of theirs, “Undo my changes” takes theirs.`;
    } catch (refusal) {
      answer.textContent += ` ${refusal.message}`;
    }
  }
}
