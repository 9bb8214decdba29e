// What lies under the people and changes rarely: heat, cells or channels, streets, named places. Drawn only when it or the
// view has changed; while somebody drags the map, the last picture is moved along and made anew when there is time.

import { Cells } from "./cells.js";
import { xOf, yOf } from "./mercator.js";
import { Labels } from "./labels.js";
import { colourOf, heatColour, variable, withAlpha } from "./palette.js";
import { boxOf, drawShape, drawStreets, projectStreets } from "./shapes.js";

const QUICK_MS = 10;
const REST_MS = 90;
const LARGE_ENOUGH_FOR_A_LABEL = 64;

export class Ground {
  layers = { streets: true, cells: true, areas: true };
  present = true; // cells, heat and regions are of now: over the people of another time they would lie
  heat = null;
  cells = new Cells();
  colourNumber = () => 0; // of a scheme
  regions = [];
  #streets = [];
  #places = [];
  #context;
  #drawn = null;
  #cost = 0;
  #changed = true;

  constructor(canvas, names) {
    this.canvas = canvas;
    this.labels = new Labels(names);
    this.#context = canvas.getContext("2d");
  }

  setWorld({ streets = [], points = [] }) {
    this.#streets = projectStreets(streets);
    this.#places = points;
    this.change();
  }

  change() {
    this.#changed = true;
  }

  draw(view, ratio, now, lastMoved) {
    const fresh = this.#drawn && !this.#changed && this.#drawn.version === view.version;
    if (fresh) return;
    const resized = !this.#drawn || this.#drawn.width !== view.width || this.#drawn.height !== view.height;
    if (!resized && !this.#changed && this.#cost > QUICK_MS && now - lastMoved < REST_MS) {
      this.#follow(view);
      return;
    }
    const begin = performance.now();
    this.#paint(view, ratio);
    this.#cost = performance.now() - begin;
    this.#changed = false;
    this.#drawn = {
      version: view.version, x: view.x, y: view.y, scale: view.scale, width: view.width, height: view.height,
    };
    this.#transform("");
  }

  #follow(view) {
    const { x, y, scale } = this.#drawn;
    const grown = view.scale / scale;
    const left = view.screenX(x) - (view.width / 2) * grown;
    const top = view.screenY(y) - (view.height / 2) * grown;
    this.#transform(`matrix(${grown}, 0, 0, ${grown}, ${left}, ${top})`);
  }

  #transform(matrix) {
    this.canvas.style.transform = this.labels.canvas.style.transform = matrix;
  }

  #paint(view, ratio) {
    const context = this.#context;
    this.canvas.width = Math.round(view.width * ratio);
    this.canvas.height = Math.round(view.height * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.labels.begin(view, ratio);
    if (this.layers.streets) {
      const width = Math.max(0.6, Math.min(5, (view.zoom - 11) * 0.6));
      drawStreets(context, view, this.#streets, variable("--street"), width);
    }
    if (this.heat && this.present) this.#paintHeat(view); // over the streets, which are as dark as few people
    if (this.layers.areas) this.#paintPlaces(view); // their names first: there are few, and they mean more than those of cells
    if (this.layers.cells && this.present) for (const scheme of this.cells.keys()) this.#paintCells(view, this.cells.shown(scheme), colourOf(this.colourNumber(scheme)));
    this.labels.end();
  }

  #paintHeat(view) {
    const { cells, kind } = this.heat;
    const most = kind === "density" ? Math.max(1, ...cells.map(({ value }) => value)) : 1;
    for (const { south, west, north, east, value } of cells) {
      const left = view.screenX(xOf(west));
      const top = view.screenY(yOf(north));
      this.#context.fillStyle = withAlpha(heatColour(kind, value / most), 0.72);
      // Half a pixel more, so that no seams show between neighbours.
      this.#context.fillRect(left, top, view.screenX(xOf(east)) - left + 0.5, view.screenY(yOf(south)) - top + 0.5);
    }
  }

  #paintCells(view, features, colour) {
    const most = Math.max(1, ...features.map(({ properties }) => properties?.count ?? 0));
    for (const feature of features) {
      const box = boxOf(view, feature);
      if (!box || box.right < 0 || box.bottom < 0 || box.left > view.width || box.top > view.height) continue;
      const { label = "", count = 0 } = feature.properties ?? {};
      const fill = withAlpha(colour, count ? 0.04 + 0.14 * Math.sqrt(count / most) : 0.01);
      drawShape(this.#context, view, feature, { fill, stroke: withAlpha(colour, 0.55), width: 1 });
      if (box.right - box.left >= LARGE_ENOUGH_FOR_A_LABEL && box.bottom - box.top >= 30) {
        const middle = (box.left + box.right) / 2;
        this.#write(count ? `${label} · ${count}` : label, [[middle, box.top + 12], [middle, box.bottom - 12]]);
      }
    }
  }

  #paintPlaces(view) {
    const context = this.#context;
    const accent = variable("--accent");
    const circle = ({ lat, lon, radius, name }, dash, strong) => {
      const [x, y] = [view.screenX(xOf(lon)), view.screenY(yOf(lat))];
      const metre = view.scale / (40_075_017 * Math.cos((lat * Math.PI) / 180));
      context.beginPath();
      const wide = Math.max((radius ?? 0) * metre, 3);
      context.arc(x, y, wide, 0, 2 * Math.PI);
      context.fillStyle = withAlpha(accent, 0.06);
      context.fill();
      context.setLineDash(dash);
      context.strokeStyle = withAlpha(accent, 0.6);
      context.lineWidth = 1.2;
      context.stroke();
      context.setLineDash([]);
      const places = [[x, y - wide - 10], [x, y + wide + 10], [x, y - wide + 12], [x, y + wide - 12], [x, y]];
      if (view.zoom > 12.5) this.#write(name, places, { strong, must: true });
    };
    for (const region of this.present ? this.regions : []) circle({ ...region, name: `${region.name}: ${region.scheme}` }, [6, 4], true);
    for (const place of this.#places) circle(place, [2, 3], false);
  }

  #write(text, places, look = {}) {
    this.labels.write(text, places, { font: variable("--font"), colour: variable("--map-label"), halo: variable("--map"), ...look });
  }
}
