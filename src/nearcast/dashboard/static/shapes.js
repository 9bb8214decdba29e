// Lines and areas on a canvas: streets, cells, reaches, areas of interest. GeoJSON has longitude first.

import { xOf, yOf } from "./mercator.js";

/** Streets, projected once: flat arrays x, y, x, y, ..., with their bounds to skip what is out of sight. */
export function projectStreets(streets) {
  return streets.map((flat) => {
    const line = new Float64Array(flat.length);
    let [left, right, top, bottom] = [Infinity, -Infinity, Infinity, -Infinity];
    for (let at = 0; at < flat.length; at += 2) {
      const x = xOf(flat[at + 1]);
      const y = yOf(flat[at]);
      line[at] = x;
      line[at + 1] = y;
      left = Math.min(left, x);
      right = Math.max(right, x);
      top = Math.min(top, y);
      bottom = Math.max(bottom, y);
    }
    return { line, left, right, top, bottom };
  });
}

export function drawStreets(context, view, streets, colour, width) {
  const [left, top] = [view.x - view.width / 2 / view.scale, view.y - view.height / 2 / view.scale];
  const [right, bottom] = [view.x + view.width / 2 / view.scale, view.y + view.height / 2 / view.scale];
  context.beginPath();
  for (const street of streets) {
    if (street.right < left || street.left > right || street.bottom < top || street.top > bottom) continue;
    const { line } = street;
    context.moveTo(view.screenX(line[0]), view.screenY(line[1]));
    for (let at = 2; at < line.length; at += 2) context.lineTo(view.screenX(line[at]), view.screenY(line[at + 1]));
  }
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.lineJoin = context.lineCap = "round";
  context.stroke();
}

function traceRing(context, view, ring) {
  ring.forEach(([lon, lat], at) => {
    const [x, y] = [view.screenX(xOf(lon)), view.screenY(yOf(lat))];
    if (at) context.lineTo(x, y);
    else context.moveTo(x, y);
  });
}

/** Every ring and line of a GeoJSON geometry, feature or collection, into the current path. */
export function trace(context, view, shape) {
  if (!shape) return;
  switch (shape.type) {
    case "FeatureCollection": shape.features.forEach((feature) => trace(context, view, feature)); break;
    case "Feature": trace(context, view, shape.geometry); break;
    case "GeometryCollection": shape.geometries.forEach((part) => trace(context, view, part)); break;
    case "MultiPolygon": shape.coordinates.flat().forEach((ring) => traceRing(context, view, ring)); break;
    case "Polygon": shape.coordinates.forEach((ring) => traceRing(context, view, ring)); break;
    case "MultiLineString": shape.coordinates.forEach((line) => traceRing(context, view, line)); break;
    case "LineString": traceRing(context, view, shape.coordinates); break;
    default: // points have nothing to trace
  }
}

/** Where a shape is on the screen; null if it has no corners. */
export function boxOf(view, shape) {
  const box = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
  const corners = {
    moveTo: (x, y) => {
      box.left = Math.min(box.left, x);
      box.right = Math.max(box.right, x);
      box.top = Math.min(box.top, y);
      box.bottom = Math.max(box.bottom, y);
    },
    lineTo: (x, y) => corners.moveTo(x, y),
  };
  trace(corners, view, shape);
  return box.right >= box.left ? box : null;
}

export function drawShape(context, view, shape, { fill, stroke, width = 1.5, dash = [] }) {
  context.beginPath();
  trace(context, view, shape);
  if (fill) {
    context.fillStyle = fill;
    context.fill("evenodd");
  }
  if (stroke) {
    context.setLineDash(dash);
    context.strokeStyle = stroke;
    context.lineWidth = width;
    context.stroke();
    context.setLineDash([]);
  }
}
