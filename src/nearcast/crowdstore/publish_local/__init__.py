"""Publish locally, subscribe globally (THYME-PL/SG, 4): publications stay where they are made, everybody has every subscription."""
