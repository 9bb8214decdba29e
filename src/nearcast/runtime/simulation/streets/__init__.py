"""Streets to walk along: drawn by a generator or read from OpenStreetMap, with shortest ways and attraction points."""
