// The live map of a nearcast broker: puts the parts together.

import { asked, remember } from "./address.js";
import { get } from "./api.js";
import { Crowd } from "./crowd.js";
import { announce, byId, show } from "./dom.js";
import { areaText, Eyes } from "./eyes.js";
import { clockOfText, number } from "./formats.js";
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
import { Timelines } from "./timelines.js";

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
  map.goTo(event.lat, event.lon, Math.max(map.view.zoom, 15));
  map.spread.add(event, performance.now());
});
const eyes = new Eyes(map, ({ client, event }) => {
  remember({ client, event });
  root.dataset.eyes = client === null ? "closed" : "open";
  live.watch(client);
});
const past = new Past(map, present, layers, (inThePast) => {
  show(byId("banner"), inThePast);
  setState(inThePast ? "past" : connected ? "live" : "lost");
});
let connected = false;

function setState(state) {
  root.dataset.state = state;
  const words = { live: "Live", past: "Past", lost: "Reconnecting…", loading: "Connecting…" };
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
  on("hello", (hello) => {
    present.reset(hello);
    map.ground.cells.clear();
    map.ground.change();
    watchTheCrowd(hello.schemes, hello.roles);
  });
  on("names", (names) => {
    present.rename(names);
    if (names.schemes || names.roles) watchTheCrowd(names.schemes, names.roles);
  });
  on("positions", (buffer) => {
    present.read(buffer, performance.now(), smooth);
    show(byId("empty"), present.count === 0 && past.at === null);
  });
  on("tick", (tick) => {
    timelines.add(tick);
    overview.tick(tick, map.ground.colourNumber);
    byId("scheme-now").textContent = tick.scheme || "–";
    byId("clients-now").textContent = number(tick.clients);
    show(byId("empty"), tick.clients === 0 && past.at === null);
    byId("trouble").textContent = tick.problem ?? "";
    show(byId("trouble"), Boolean(tick.problem));
  });
  on("event", (event) => {
    overview.event(event);
    if (past.at === null && !document.hidden) map.spread.add(event, performance.now());
  });
  on("transition", (transition) => {
    timelines.mark(transition);
    announce(`Transition from ${transition.from || "none"} to ${transition.to}.`);
    flash(`${transition.from || "none"} → ${transition.to}${transition.region ? `, ${transition.region}` : ""}`);
    if (!byId("view-plans").hidden) plans.load();
  });
  on("cells", ({ scheme, features }) => {
    if (features.features.length) map.ground.cells.set(scheme, features.features);
    else map.ground.cells.delete(scheme);
    map.ground.change();
  });
  on("client", (answer) => eyes.update(answer));
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
});
const chooseView = tabs({ clients: clientsTable, subscriptions: subscriptionsTable, plans });
plans.regionsChanged = (regions) => {
  if (JSON.stringify(regions) === JSON.stringify(map.ground.regions)) return;
  map.ground.regions = regions;
  map.ground.change();
};

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
  past.closed = true;
  clientsTable.close();
  subscriptionsTable.close();
  plans.close();
  askForLogin(await whoami(), () => location.reload());
}

async function enter(me) {
  setState("loading");
  show(byId("logout"), Boolean(me.user));
  byId("who").textContent = me.user ?? "";
  plans.permit(me);
  const world = await get("api/world");
  byId("world-name").textContent = world.name ?? "";
  byId("attribution").textContent = world.attribution ?? "";
  show(byId("attribution"), Boolean(world.attribution));
  if (asked("lat")) map.goTo(Number(asked("lat")), Number(asked("lon")), Number(asked("zoom") ?? 15));
  map.setWorld(world);
  layers.kinds = (world.schemes ?? []).map(({ kind }) => kind);
  plans.setWorld(world);
  plans.permit(me);
  layers.start();
  live.start();
  chooseView(VIEWS.includes(asked("view")) ? asked("view") : VIEWS[0]);
  overview.nothing("No events yet.");
  const [client, event, at] = ["client", "event", "at"].map(asked);
  past.measure().then(() => at && past.show(Date.parse(at)));
  if (client) eyes.open(client, event);
}

dress();
listen();
whoami().then(
  (me) => (me.may_see ? enter(me) : askForLogin(me, (now) => enter(now))),
  (refusal) => { byId("lost").textContent = refusal.message; show(byId("lost"), true); },
);
