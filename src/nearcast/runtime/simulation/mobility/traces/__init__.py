"""Recorded traces and their replay: CSV, GPX, OGC Moving Features JSON."""
