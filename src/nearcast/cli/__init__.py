"""The command ``nearcast``."""

from nearcast.cli.app import main

__all__ = ["main"]
