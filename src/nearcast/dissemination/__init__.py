"""How an event travels from its publisher to those whom it concerns."""
