"""Filter schemes as people write them."""

from __future__ import annotations

from nearcast.filtering.registry import SCHEMES
from nearcast.transition.specification import MechanismSpec
from nearcast.transition.text import mechanism_in


def scheme_in(text: str) -> MechanismSpec:
    """The scheme that a text names; ``InvalidScheme`` if there is none, or none with such parameters."""
    return mechanism_in(text, SCHEMES)
