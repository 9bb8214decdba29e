"""Mechanisms as people write them: ``EGRID(factor=10, cover=circle)``, as records and status show them."""

from __future__ import annotations

import re
from typing import Any, Final

from nearcast.transition.registry import Registry
from nearcast.transition.specification import MechanismSpec, Scalar

_FORM: Final = re.compile(r"\s*(?P<name>[A-Za-z][A-Za-z-]*)\s*(?:\((?P<parameters>[^()]*)\))?\s*")
_WORDS: Final[dict[str, Scalar]] = {"true": True, "false": False}


def mechanism_in(text: str, registered: Registry[Any]) -> MechanismSpec:
    """The mechanism that a text names; the registry's error if there is none, or none with such parameters."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise registered.error(f"{registered.word}: {text!r} is not written NAME or NAME(parameter=value, ...)")
    parts = [each for each in (found["parameters"] or "").split(",") if each.strip()]
    spec = MechanismSpec(found["name"].upper(), tuple(_parameter(each, registered) for each in parts))
    registered.parameters_of(spec)  # refuses what there is not
    return spec


def _parameter(text: str, registered: Registry[Any]) -> tuple[str, Scalar]:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not (name and equals and value):
        raise registered.error(f"{registered.word}: a parameter is written name=value, not {text.strip()!r}")
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
