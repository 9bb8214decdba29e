"""Questions about the past, many at once: what happened here, and who was there."""
