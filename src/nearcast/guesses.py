"""What was probably meant by a word that is not known: for error messages."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def near(word: str, known: Iterable[str], most: int = 1) -> list[str]:
    """The known words like this one, the nearest first; capitals do not count, and ``-`` is ``_``."""
    lower = {name.lower(): name for name in known}
    return [lower[found] for found in get_close_matches(word.lower().replace("-", "_"), lower, most)]


def guess(word: str, known: Iterable[str]) -> str:
    """``; did you mean 'radius'?``, or nothing if none is near."""
    return "".join(f"; did you mean '{found}'?" for found in near(word, known))
