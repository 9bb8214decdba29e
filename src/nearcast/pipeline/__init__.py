"""Spark: the archive, large-scale matching and questions about the past, from a laptop to a cluster unchanged."""
