"""Benchmarks: nearcast and its peers side by side in one run, with the same answers."""
