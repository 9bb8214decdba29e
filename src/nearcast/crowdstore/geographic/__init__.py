"""Geographic routing between the cells of a grid, whose members act as one (THYME 5.8)."""
