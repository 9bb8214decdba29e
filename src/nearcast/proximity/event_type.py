"""Event types: what producers and consumers agree on (STEAM 3.2).

``EventType = {subject, content, attribute list}``: the content is names and types of parameters, the attributes are what
does not concern the application's logic.  Types of one subject are alike everywhere; what is not is thrown away.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec

from nearcast.errors import InvalidEvent
from nearcast.model.event import RESERVED_PROPERTIES
from nearcast.model.history import POSITION
from nearcast.model.topic import checked_topic
from nearcast.model.values import Value, attribute_type, checked_value, is_coarse, is_number, type_of

HIGHEST_PRIORITY: Final = 7
RESERVED: Final = RESERVED_PROPERTIES | {POSITION}
"""Names that filters know already; ``position`` is where the consumer is."""


class Order(StrEnum):
    NONE = "none"
    PRODUCER = "producer"
    """Events of one producer come in the order in which it raised them (first in, first out)."""


class Attributes(msgspec.Struct, frozen=True, array_like=True):
    """The attribute list: what an event promises beside its content.  Times are seconds."""

    location: bool = True
    """Events say where their producer was when it raised them."""

    validity: float | None = None
    """So long an event exists; ``None``: for ever."""

    priority: int = 0
    """The highest, 7, is sent first."""

    deadline: float | None = None
    """Who gets an event later than that does not get it at all."""

    order: Order = Order.NONE
    persistence: float = 0.0
    """So long the producer keeps events for consumers that were cut off and ask again (STEAM 4.3)."""

    def __post_init__(self) -> None:
        for name in ("validity", "deadline"):
            seconds = getattr(self, name)
            if seconds is not None and not (is_number(seconds) and 0 < seconds < math.inf):
                raise InvalidEvent(f"{name} is a positive number of seconds, not {seconds!r}")
        if not (is_number(self.persistence) and 0 <= self.persistence < math.inf):
            raise InvalidEvent(f"persistence is a number of seconds, 0 or more, not {self.persistence!r}")
        if isinstance(self.priority, bool) or self.priority not in range(HIGHEST_PRIORITY + 1):
            raise InvalidEvent(f"a priority lies between 0 and {HIGHEST_PRIORITY}, not {self.priority!r}")
        if self.order not in tuple(Order):
            raise InvalidEvent(f"order is one of {', '.join(Order)}, not {self.order!r}")


class EventType(msgspec.Struct, frozen=True, array_like=True):
    """Make one with ``EventType.of``; it travels in beacons as it is."""

    subject: str
    content: tuple[tuple[str, str], ...] = ()
    """Parameters in the order of their names, and their types: those of the model (``integer``, ``string``, ...)."""

    attributes: Attributes = Attributes()

    def __post_init__(self) -> None:
        checked_topic(self.subject)
        names = [name for name, _ in self.content]
        if names != sorted(set(names)):
            raise InvalidEvent(f"the parameters of {self.subject!r} must have different names, in order: {names}")
        for name, kind in self.content:
            if not name or name in RESERVED:
                raise InvalidEvent(f"{name!r} cannot be the name of a parameter of {self.subject!r}; choose another")
            attribute_type(kind)

    @classmethod
    def of(cls, subject: str, content: Mapping[str, str] | None = None, /, **attributes: Any) -> EventType:
        """``EventType.of("traffic/light", {"approach": "string"}, deadline=0.5)``."""
        return cls(subject, tuple(sorted((content or {}).items())), Attributes(**attributes))

    def checked(self, parameters: Mapping[str, object]) -> dict[str, Value]:
        """The parameters of an event of this type, or ``InvalidEvent`` that says what is wrong with them."""
        expected = dict(self.content)
        if parameters.keys() != expected.keys():
            wanted, got = ", ".join(expected) or "none", ", ".join(sorted(parameters)) or "none"
            raise InvalidEvent(f"events of {self.subject!r} have the parameters {wanted}; these are {got}")
        return {name: self._checked(name, kind, parameters[name]) for name, kind in expected.items()}

    def _checked(self, name: str, kind: str, value: object) -> Value:
        if kind == "float" and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        value = checked_value(name, value)
        if is_coarse(value) or type_of(value).name != kind:
            raise InvalidEvent(f"parameter {name!r} of {self.subject!r} is of type {kind}, not {value!r}")
        return value
