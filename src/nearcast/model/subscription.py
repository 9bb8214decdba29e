"""Subscriptions: what somebody wants to hear of, where, and from which time."""

from __future__ import annotations

from dataclasses import dataclass

from nearcast.errors import InvalidSubscription
from nearcast.model.area import Area
from nearcast.model.cql2 import parse
from nearcast.model.normal_form import disjunctive_normal_form
from nearcast.model.predicate import Predicate
from nearcast.model.time import EVER, TimeFrame
from nearcast.model.topic import checked_topic_filter

HIGHEST_QOS = 2


@dataclass(frozen=True, slots=True)
class Subscription:
    """An interest of one client.

    ``topic`` is an MQTT topic filter, ``where`` a content predicate over the event's attributes and tags (a CQL2 text
    is parsed), ``area`` an area of interest, relative to the client or absolute, that is tested against the event's
    place.  ``frame`` tests the time of publication.  ``id`` names it among the client's own; subscribing again under
    the same id replaces it.
    """

    topic: str
    where: Predicate | None
    area: Area | None
    frame: TimeFrame
    id: str
    qos: int
    no_local: bool

    # By hand, because it takes more (a CQL2 text) than what the attribute holds afterwards (a predicate).
    def __init__(
        self,
        topic: str = "#",
        where: Predicate | str | None = None,
        area: Area | None = None,
        frame: TimeFrame = EVER,
        id: str = "",  # noqa: A002 - the word for it
        qos: int = 0,
        no_local: bool = False,
    ) -> None:
        if isinstance(where, str):
            where = parse(where)
        elif where is not None and not isinstance(where, Predicate):
            raise InvalidSubscription(f"`where` must be a filter, as CQL2 text or parsed, not {where!r}")
        if area is not None and not isinstance(area, Area):
            raise InvalidSubscription(f"`area` must be an area such as Circle(500), not {area!r}")
        if not isinstance(frame, TimeFrame):
            raise InvalidSubscription(f"`frame` must be a TimeFrame, not {frame!r}; TimeFrame.parse reads texts")
        if where is not None:
            disjunctive_normal_form(where)  # refuses a formula that explodes
        if qos not in range(HIGHEST_QOS + 1):
            raise InvalidSubscription(f"quality of service must be 0, 1 or 2, not {qos!r}")
        set_field = object.__setattr__
        set_field(self, "topic", checked_topic_filter(topic))
        set_field(self, "where", where)
        set_field(self, "area", area)
        set_field(self, "frame", frame)
        set_field(self, "id", id)
        set_field(self, "qos", qos)
        set_field(self, "no_local", no_local)
