"""Filter schemes as people write them: ``EGRID(factor=10, cover=circle)``, as records and status show them."""

from __future__ import annotations

import re
from typing import Final

from nearcast.errors import InvalidScheme
from nearcast.filtering.registry import scheme_of
from nearcast.transition.specification import MechanismSpec, Scalar

_FORM: Final = re.compile(r"\s*(?P<name>[A-Za-z]+)\s*(?:\((?P<parameters>[^()]*)\))?\s*")
_WORDS: Final[dict[str, Scalar]] = {"true": True, "false": False}


def scheme_in(text: str) -> MechanismSpec:
    """The scheme that a text names; ``InvalidScheme`` if there is none, or none with such parameters."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise InvalidScheme(f"a filter scheme is written NAME or NAME(parameter=value, ...), not {text!r}")
    parameters = [_parameter(each) for each in (found["parameters"] or "").split(",") if each.strip()]
    spec = MechanismSpec(found["name"].upper(), tuple(parameters))
    scheme_of(spec)  # refuses what there is not
    return spec


def _parameter(text: str) -> tuple[str, Scalar]:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not (name and equals and value):
        raise InvalidScheme(f"a parameter of a filter scheme is written name=value, not {text.strip()!r}")
    return name, _value(value)


def _value(text: str) -> Scalar:
    word = _WORDS.get(text.lower())
    if word is not None:
        return word
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
