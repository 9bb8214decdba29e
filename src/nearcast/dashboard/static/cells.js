// Cells and channels of the schemes that run, and the regions of plans, as the live feed tells of them: where each lies once, how many
// are in it whenever that changes.

const REGIONS = ""; // instead of a scheme

/** By scheme; of each, features by their labels, and whether those are drawn that nobody is in. */
export class Cells extends Map {
  regions = null; // null: the feed has not told of any; each with `name`, `scheme`, `lat`, `lon` and `radius`

  clear() {
    super.clear();
    this.regions = null;
  }

  told({ scheme, features: { features }, more = false, empty = true }) {
    if (scheme === REGIONS) {
      this.regions = features.map(({ properties }) => ({ ...properties, name: properties.region }));
      return;
    }
    const known = more ? this.get(scheme)?.features : null;
    const all = new Map([...(known ?? []), ...features.map((feature, at) => [feature.properties?.label ?? String(at), feature])]);
    if (all.size) this.set(scheme, { features: all, empty });
    else this.delete(scheme);
  }

  counted({ scheme, counts }) {
    const known = this.get(scheme)?.features;
    for (const [label, count] of Object.entries(counts)) {
      const feature = known?.get(label);
      if (feature) known.set(label, { ...feature, properties: { ...feature.properties, count } });
    }
  }

  /** What is to be drawn of a scheme. */
  shown(scheme) {
    const { features, empty } = this.get(scheme);
    return [...features.values()].filter(({ properties }) => empty || properties?.count);
  }
}
