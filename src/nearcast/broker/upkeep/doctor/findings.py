"""What was looked at, and what was found."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

Severity = Literal["ok", "note", "warning", "problem"]
_ORDER: Final[tuple[Severity, ...]] = ("ok", "note", "warning", "problem")


class Finding(msgspec.Struct, frozen=True):
    area: str
    severity: Severity
    """``note``: good to know; ``warning``: will become a problem; ``problem``: something is broken, or a start would fail."""

    what: str
    advice: str = ""
    """What to do about it."""


def ok(area: str, what: str) -> Finding:
    return Finding(area, "ok", what)


def note(area: str, what: str, advice: str = "") -> Finding:
    return Finding(area, "note", what, advice)


def warning(area: str, what: str, advice: str) -> Finding:
    return Finding(area, "warning", what, advice)


def problem(area: str, what: str, advice: str) -> Finding:
    return Finding(area, "problem", what, advice)


def worst(findings: list[Finding]) -> Severity:
    return max((each.severity for each in findings), key=_ORDER.index, default="ok")
