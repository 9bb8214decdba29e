// The projection: longitude and latitude to a square of side 1, as all web maps do (north is up, y grows to the south).

export const MOST_LATITUDE = 85.0511;
const EARTH_METRES = 40_075_016.686;

export function xOf(lon) {
  return lon / 360 + 0.5;
}

export function yOf(lat) {
  const sine = Math.sin((Math.max(-MOST_LATITUDE, Math.min(MOST_LATITUDE, lat)) * Math.PI) / 180);
  return 0.5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI);
}

export function lonOf(x) {
  return (x - 0.5) * 360;
}

export function latOf(y) {
  return (Math.atan(Math.sinh((0.5 - y) * 2 * Math.PI)) * 180) / Math.PI;
}

/** How much of the square a metre is, at this latitude. */
export function perMetre(lat) {
  return 1 / (EARTH_METRES * Math.cos((lat * Math.PI) / 180));
}
