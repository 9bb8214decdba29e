"""The experiments of the documents: what they state, what comes out here, and whether that is the same (docs/experiments.md)."""
