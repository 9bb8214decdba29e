// The live map of a nearcast broker: puts the parts together.

import { asked, remember } from "./address.js";
import { get } from "./api.js";
import { Crowd } from "./crowd.js";
import { announce, byId, show } from "./dom.js";
import { areaText, Eyes } from "./eyes.js";
import { clockOfText, counted, number } from "./formats.js";
import { Layers } from "./layers.js";
import { Live } from "./live.js";
import { askForLogin, logOut, whoami } from "./login.js";
import { LiveMap } from "./map.js";
import { Overview } from "./overview.js";
import { forgetTheme } from "./palette.js";
import { Past } from "./past.js";
import { Plans } from "./plans.js";
import { searchBox } from "./search.js";
import { PagedTable } from "./tables.js";
import { tabs, VIEWS } from "./tabs.js";
import { isPartial, Timelines, transitionText } from "./timelines.js";

const root = document.documentElement;
const smooth = !matchMedia("(prefers-reduced-motion: reduce)").matches;

const present = new Crowd();
const live = new Live();
export const map = new LiveMap(present);
const layers = new Layers(map);
map.ground.colourNumber = (scheme) => layers.colourNumber(scheme);
const timelines = new Timelines(byId("timelines"));
const plans = new Plans();
const overview = new Overview((event) => {
  past.leave(); // it is one of now
  map.goTo(event.lat, event.lon, Math.max(map.view.zoom, 15));
  map.spread.add(event, performance.now());
});
const eyes = new Eyes(map, ({ client, event }) => {
  remember({ client, event });
  root.dataset.eyes = client === null ? "closed" : "open";
  live.watch(client);
});
const past = new Past(present, map.spread);
let connected = false;
let latest = null; // tick
let life = null; // of the broker: after a restart it is another one

/** What the head of the page says of the time that the map shows. */
function headline(scheme, clients) {
  byId("scheme-now").textContent = scheme || "–";
  byId("clients-now").textContent = number(clients);
}

past.addEventListener("entered", () => {
  map.crowd = past.crowd;
  layers.showPast({});
  headline(null, null);
  show(byId("banner"), true);
  show(byId("empty"), false);
  setState("past");
});
past.addEventListener("drawn", ({ detail: { scheme, clients } }) => {
  layers.showPast({ scheme });
  headline(scheme, clients.length);
  eyes.setPast(past.crowd);
});
past.addEventListener("left", () => {
  map.crowd = present;
  layers.showPast(null);
  if (latest) headline(latest.scheme, latest.clients);
  eyes.setPast(null);
  show(byId("banner"), false);
  setState(connected ? "live" : "lost");
});

function setState(state) {
  root.dataset.state = state;
  const words = { live: "Live", past: "Past", lost: "Reconnecting…", full: "Too many pages", loading: "Connecting…" };
  byId("state-text").textContent = words[state] ?? "";
}

function watchTheCrowd(schemes, roles) {
  layers.schemes = schemes ?? layers.schemes;
  layers.roles = roles ?? layers.roles;
  layers.legend();
}

function listen() {
  const on = (kind, act) => live.addEventListener(kind, ({ detail }) => act(detail));
  on("open", () => {
    connected = true;
    show(byId("lost"), false);
    show(byId("full"), false);
    if (past.at === null) setState("live");
  });
  on("lost", () => {
    if (connected) announce("The connection is lost. Trying again.");
    connected = false;
    show(byId("lost"), true);
    if (past.at === null) setState("lost");
    whoami().then((me) => me.may_see || leave(), () => {}); // the log-in may be over, rather than the line
  });
  on("refused", () => leave());
  on("full", (reason) => {
    connected = false;
    show(byId("lost"), false);
    byId("full-text").textContent = reason || "As many pages are open as the broker serves. Close one, then try again.";
    show(byId("full"), true);
    announce(byId("full-text").textContent);
    if (past.at === null) setState("full");
  });
  on("hello", (hello) => {
    present.reset(hello);
    map.ground.cells.clear();
    map.ground.change();
    watchTheCrowd(hello.schemes, hello.roles);
    if (past.at !== null) past.dress();
    timelines.fill(hello.ticks ?? [], hello.transitions ?? []);
    plans.load();
    if (life !== null && life !== hello.life) anew();
    life = hello.life ?? null;
  });
  on("names", (names) => {
    present.rename(names);
    if (names.schemes || names.roles) watchTheCrowd(names.schemes, names.roles);
    if (past.at !== null) past.dress();
  });
  on("positions", (buffer) => {
    present.read(buffer, performance.now(), smooth);
    show(byId("empty"), present.count === 0 && past.at === null);
  });
  on("tick", (tick) => {
    latest = tick;
    timelines.add(tick);
    overview.tick(tick, map.ground.colourNumber);
    if (past.at === null) headline(tick.scheme, tick.clients);
    show(byId("empty"), tick.clients === 0 && past.at === null);
    byId("trouble").textContent = tick.problem ?? "";
    show(byId("trouble"), Boolean(tick.problem));
  });
  on("event", (event) => {
    const shown = { ...event, receivers: present.namesOf(event.receivers) };
    overview.event(shown);
    if (past.at === null && !document.hidden) map.spread.add(shown, performance.now());
  });
  on("transition", (transition) => {
    timelines.mark(transition);
    const { from, to, region, clients } = transition;
    const whom = [clients ? counted(clients, "client") : null, region ? `in ${region}` : null].filter(Boolean).join(" ");
    announce(isPartial(transition) ? `Transition of ${whom || "some clients"} to ${to}.` : `Transition from ${from || "none"} to ${to}.`);
    flash(transitionText(transition));
    plans.load();
  });
  on("cells", (told) => {
    map.ground.cells.told(told);
    if (map.ground.cells.regions) setRegions(map.ground.cells.regions);
    map.ground.change();
  });
  on("counts", (counts) => {
    map.ground.cells.counted(counts);
    map.ground.change();
  });
  on("client", (answer) => eyes.update(answer));
  on("gone", (gone) => eyes.gone(gone));
}

/** A transition is shown over the map for a moment. */
function flash(text) {
  const note = byId("flash");
  note.textContent = text;
  show(note, true);
  note.getAnimations().forEach((animation) => { animation.cancel(); animation.play(); });
  clearTimeout(flash.timer);
  flash.timer = setTimeout(() => show(note, false), 6000);
}

const choose = (client) => eyes.open(client);
const clientsTable = new PagedTable(byId("view-clients"), {
  source: (query) => get("api/sessions", query), name: "clients", empty: "No client has a session yet. Connect one: nearcast sub \"#\" --at 49.8728,8.6512",
  chosen: ({ client }) => choose(client),
  columns: [
    { key: "client", title: "Client" },
    { key: "connected", title: "State", cell: ({ connected: is, since }) => (is ? "online" : `away, ${clockOfText(since)}`) },
    { key: "scheme", title: "Scheme", cell: ({ scheme }) => scheme || "–" },
    { key: "subscriptions", title: "Subs", numeric: true, cell: (row) => number(row.subscriptions) },
    { key: "queued", title: "Queued", numeric: true, cell: (row) => number(row.queued) },
    { key: "user", title: "User" },
  ],
});
const subscriptionsTable = new PagedTable(byId("view-subscriptions"), {
  source: (query) => get("api/subscriptions", query), name: "subscriptions", empty: "Nobody has subscribed to anything yet.",
  chosen: ({ client }) => choose(client),
  columns: [
    { key: "client", title: "Client" },
    { key: "filter", title: "Topics", long: true },
    { key: "where", title: "Where", long: true, cell: ({ where }) => where || "–" },
    { key: "area", title: "Area", cell: ({ area }) => areaText(area) },
    { key: "since", title: "Since", cell: ({ since }) => clockOfText(since) },
  ],
  identity: ({ client, id }) => `${client} ${id}`,
});
const chooseView = tabs({ clients: clientsTable, subscriptions: subscriptionsTable, plans });
plans.regionsChanged = (regions) => {
  if (!map.ground.cells.regions) setRegions(regions); // else the feed tells of them, and sooner
};

function setRegions(regions) {
  if (JSON.stringify(regions) === JSON.stringify(map.ground.regions)) return;
  map.ground.regions = regions;
  map.ground.change();
}

function setTheme(theme) {
  root.dataset.theme = theme;
  forgetTheme();
  map.repaint();
  layers.legend();
  const next = theme === "dark" ? "light" : "dark";
  byId("theme").setAttribute("aria-label", `Switch to the ${next} theme`);
}

function dress() {
  setTheme(root.dataset.theme);
  byId("theme").addEventListener("click", () => {
    const theme = root.dataset.theme === "dark" ? "light" : "dark";
    setTheme(theme);
    if (asked("theme")) remember({ theme });
    try {
      localStorage.setItem("nearcast-theme", theme);
    } catch {
      // storage may be forbidden: then it holds until the page is closed
    }
  });
}

let remembering = 0;
map.addEventListener("moved", () => {
  clearTimeout(remembering);
  remembering = setTimeout(() => {
    const { lat, lon } = map.view.place(map.view.width / 2, map.view.height / 2);
    remember({ lat: lat.toFixed(5), lon: lon.toFixed(5), zoom: map.view.zoom.toFixed(2) });
  }, 300);
});
map.addEventListener("chosen", ({ detail }) => choose(detail));
searchBox(() => map.crowd.names, choose);
byId("logout").addEventListener("click", () => logOut());
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.closest("input, textarea, select")) {
    event.preventDefault();
    byId("find").focus();
  } else if (event.key === "Escape" && eyes.client !== null && !event.target.closest("input, textarea")) {
    eyes.close();
  }
});
document.addEventListener("visibilitychange", () => live.pause(document.hidden));
window.addEventListener("logged-out", () => leave());

/** The log-in is over, or was never there. */
async function leave() {
  if (root.dataset.state === "login" || root.dataset.state === "forbidden") return;
  live.stop();
  past.close();
  layers.close();
  clientsTable.close();
  subscriptionsTable.close();
  plans.close();
  askForLogin(await whoami(), () => location.reload());
}

function setWorld(world) {
  byId("world-name").textContent = world.name ?? "";
  byId("attribution").textContent = world.attribution ?? "";
  show(byId("attribution"), Boolean(world.attribution));
  map.setWorld(world);
  layers.kinds = (world.schemes ?? []).map(({ kind }) => kind);
  plans.setWorld(world);
}

/** The broker was started again: its ground and its rules may be others. */
async function anew() {
  plans.forgetRules();
  try {
    const [me, world] = [await whoami(), await get("api/world")];
    setWorld(world);
    plans.permit(me);
  } catch {
    // it is gone again: the next connection begins anew, too
  }
}

async function enter(me) {
  setState("loading");
  show(byId("logout"), Boolean(me.user));
  byId("who").textContent = me.user ?? "";
  plans.permit(me);
  if (asked("lat")) map.goTo(Number(asked("lat")), Number(asked("lon")), Number(asked("zoom") ?? 15));
  setWorld(await get("api/world"));
  plans.permit(me);
  layers.start();
  live.start();
  chooseView(VIEWS.includes(asked("view")) ? asked("view") : VIEWS[0]);
  overview.nothing("Nothing was published since this page was opened.");
  const [client, event, at] = ["client", "event", "at"].map(asked);
  past.open();
  if (at) past.measure().then(() => beginAt(at));
  if (client) eyes.open(client, event);
}

/** The time of the address, which anybody may have written. */
function beginAt(text) {
  const at = Date.parse(text);
  if (Number.isFinite(at)) {
    past.show(at);
    return;
  }
  remember({ at: null });
  flash(`“${text}” is no time: this is the present`);
  announce(`“${text}” in the address is no time. The map shows the present.`);
}

byId("full-again").addEventListener("click", () => {
  show(byId("full"), false);
  setState("loading");
  byId("map").focus({ preventScroll: true }); // the button has gone
  live.start();
});
dress();
listen();
whoami().then(
  (me) => (me.may_see ? enter(me) : askForLogin(me, (now) => enter(now))),
  (refusal) => { byId("lost").textContent = refusal.message; show(byId("lost"), true); },
);
