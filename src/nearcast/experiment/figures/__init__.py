"""Figures as the documents have them; matplotlib (`nearcast[figures]`) is loaded when one is drawn."""
