"""What a client is told of why something was refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

BESIDE_A_REASON: Final = 24
"""Bytes of an answer, at most, apart from its reason and its list of codes."""


@dataclass(frozen=True, slots=True)
class Reasons:
    largest: int | None = None
    """Bytes of a packet that the client takes."""

    wanted: bool = True
    """It asked for reasons in answers (MQTT 5, 3.1.2.11.7)."""

    def answer(self, why: str | None, beside: int = 0) -> str | None:
        """For an answer with ``beside`` codes, if the client wants to be told reasons."""
        return self.fitting(why, beside) if self.wanted else None

    def fitting(self, why: str | None, beside: int = 0) -> str | None:
        """A reason, unless it would make the packet larger than the client takes (MQTT 5, 3.1.2.11.4)."""
        if why is None or self.largest is None:
            return why
        return why if len(why.encode()) + beside + BESIDE_A_REASON <= self.largest else None
