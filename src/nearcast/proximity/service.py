"""What an application sees: announce, subscribe, raise (STEAM 4.1), over the air or through an uplink."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from nearcast.errors import InvalidInput, InvalidSubscription, UnknownName
from nearcast.guesses import guess
from nearcast.model.area import Area
from nearcast.model.content_filter import ContentFilter
from nearcast.model.cql2 import parse
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.normal_form import disjunctive_normal_form
from nearcast.model.predicate import Predicate
from nearcast.model.topic import checked_topic
from nearcast.proximity.announcement import announcement_of
from nearcast.proximity.event_type import EventType
from nearcast.proximity.mechanism import PROXY, Dissemination
from nearcast.proximity.messages import event_of
from nearcast.proximity.nucleus import (
    DELIVERED,
    DUPLICATE,
    FILTERED,
    FOREIGN,
    LATE,
    OUTSIDE,
    OVERTAKEN,
    RECOVERED,
    Handler,
    Interest,
    Local,
    Nucleus,
)
from nearcast.proximity.over_the_air import AirStatistics, OverTheAir
from nearcast.proximity.settings import AIR, UPLINK, ProximitySettings
from nearcast.proximity.through_uplink import ThroughUplink
from nearcast.proximity.uplink import Uplink
from nearcast.runtime.host import Component, Host
from nearcast.runtime.ports import Cancellable
from nearcast.transition.engine import HostEngine, TransitionEngine
from nearcast.transition.proxy import Proxy
from nearcast.transition.specification import MechanismSpec

Content = ContentFilter | Predicate | str
"""STEAM's terms, all of them or any of them; or CQL2, of which they are a case."""

FORGET_EVERY: Final = 60.0
"""Seconds."""


@dataclass(frozen=True, slots=True)
class ProximityStatistics:
    announced: int
    subscriptions: int
    mechanisms: tuple[str, ...]
    """The one in use, and those that still go on beside it."""

    raised: int
    delivered: int
    duplicates: int
    late: int
    """Came after their deadline, or when they no longer existed."""

    outside: int
    filtered: int
    overtaken: int
    """Came so late that a later one of an ordered stream was delivered before."""

    recovered: int
    foreign: int
    cached: int
    air: AirStatistics | None


class ProximityService(Component):
    """After ``HostEngine`` among the components of its host; and after its uplink, if that is one."""

    def __init__(self, settings: ProximitySettings | None = None, uplink: Uplink | None = None) -> None:
        self._settings: Final = settings or ProximitySettings()
        self._uplink: Final = uplink
        self._fading: dict[MechanismSpec, tuple[Dissemination, Cancellable]] = {}
        self._raised = 0
        self._host: Host
        self._nucleus: Nucleus
        self._engine: TransitionEngine
        self._proxy: Proxy[Dissemination]

    def start(self, host: Host) -> None:
        self._host = host
        self._nucleus = Nucleus(host, self._settings)
        self._engine = host.component(HostEngine).engine
        self._proxy = self._engine.create_proxy(PROXY, Dissemination, self._make, self._settings.mechanism)
        host.timers.every(FORGET_EVERY, self._nucleus.forget)

    def stop(self) -> None:
        for local in (*self._nucleus.locals.values(), *self._nucleus.wanted.values()):
            for mechanism in self._running():
                mechanism.withdrawn(local)
        for mechanism in self._running():
            mechanism.close()

    # Producers

    def announce(self, event_type: EventType, area: Area, anchor: Point | None = None) -> None:
        """Events of that type matter inside that area: around the anchor, or, if it has none, around this device.

        It holds wherever this device goes, until it is unannounced.  Announcing a type again replaces its proximity.
        """
        announcement = announcement_of(event_type, area, anchor, self._nucleus.position())
        before = self._nucleus.locals.get(event_type.subject)
        # Numbers go on, also if this device starts anew: so none comes twice.
        latest = max(before.latest if before else 0, self._host.now() // 1_000)
        local = Local(announcement, self._settings.identify(announcement.description), latest)
        self._nucleus.locals[event_type.subject] = local
        for mechanism in self._running():
            mechanism.announced(local)

    def unannounce(self, event_type: EventType) -> None:
        local = self._announced(event_type.subject)
        for mechanism in self._running():
            mechanism.withdrawn(local)
        del self._nucleus.locals[event_type.subject]
        self._nucleus.cache.forget(event_type.subject)

    def raise_event(self, subject: str, parameters: Mapping[str, object] | None = None) -> Event:
        """Raise an event of a type that this device has announced; it reaches whoever is in its proximity now."""
        local = self._announced(subject)
        event_type, number = local.announcement.event_type, local.latest + 1
        event = event_of(
            event_type, local.announcement, self._host.name, number, self._host.now(), self._nucleus.position(),
            parameters or {},
        )  # fmt: skip
        local.latest = number
        self._raised += 1
        attributes = event_type.attributes
        self._nucleus.cache.keep(number, event, attributes.persistence)
        for mechanism in self._running():
            mechanism.carry(event, number, local)
        if subject in self._nucleus.interests:
            self._host.timers.after(0.0, lambda: self._arrived_here(event, number, local))
        return event

    # Consumers

    def subscribe(
        self, subject: str, handler: Handler, content_filter: Content | None = None, *, area: Area | None = None
    ) -> None:
        """Have the handler called with every event of that subject whose proximity this device is in, wherever it goes.

        With an ``area``, around this device or somewhere, also for events that are raised inside it (STEAM 3.2: a proximity
        that the consumer defines).
        """
        interest = Interest(checked_topic(subject), handler, _predicate(content_filter), area)
        if self._find(interest) is not None:
            raise InvalidSubscription(f"this handler has subscribed to {subject!r} with that filter already")
        if area is not None:
            announcement = announcement_of(EventType.of(subject), area, None, self._nucleus.position(), wanted=True)
            local = Local(announcement, self._settings.identify(announcement.description), 0)
            self._nucleus.wanted[interest] = local
        self._nucleus.add(interest)
        for mechanism in self._running():
            mechanism.interested(interest)
            if area is not None:
                mechanism.announced(self._nucleus.wanted[interest])

    def unsubscribe(
        self, subject: str, handler: Handler, content_filter: Content | None = None, *, area: Area | None = None
    ) -> None:
        interest = self._find(Interest(subject, handler, _predicate(content_filter), area))
        if interest is None:
            raise UnknownName(f"this handler has no subscription to {subject!r} with that filter")
        self._nucleus.remove(interest)
        wanted = self._nucleus.wanted.pop(interest, None)
        for mechanism in self._running():
            mechanism.uninterested(interest)
            if wanted is not None:
                mechanism.withdrawn(wanted)

    # Mechanisms

    @property
    def mechanism(self) -> MechanismSpec:
        return self._proxy.spec

    def use(self, mechanism: MechanismSpec) -> bool:
        """Go over the air (``AIR``) or through the uplink (``UPLINK``) from now on; false if that is so already.

        Both run side by side for a while, and so nothing is lost; what comes both ways is delivered once.
        """
        return self._engine.execute(PROXY, mechanism)

    def statistics(self) -> ProximityStatistics:
        nucleus, counts = self._nucleus, self._nucleus.counts
        air = next((it.statistics() for it in self._running() if isinstance(it, OverTheAir)), None)
        return ProximityStatistics(
            announced=len(nucleus.locals),
            subscriptions=sum(map(len, nucleus.interests.values())),
            mechanisms=tuple(map(str, (self._proxy.spec, *self._fading))),
            raised=self._raised,
            delivered=counts[DELIVERED],
            duplicates=counts[DUPLICATE],
            late=counts[LATE],
            outside=counts[OUTSIDE],
            filtered=counts[FILTERED],
            overtaken=counts[OVERTAKEN],
            recovered=counts[RECOVERED],
            foreign=counts[FOREIGN] + (air.foreign if air else 0),
            cached=len(nucleus.cache),
            air=air,
        )

    def _running(self) -> tuple[Dissemination, ...]:
        return (self._proxy.active, *(mechanism for mechanism, _ in self._fading.values()))

    def _make(self, spec: MechanismSpec) -> Dissemination:
        if spec in self._fading:  # back before it was over
            mechanism, timer = self._fading.pop(spec)
            timer.cancel()
            return mechanism
        if spec == AIR:
            made: Dissemination = OverTheAir(self._nucleus, self._engine.silence)
        elif spec == UPLINK and self._uplink is not None:
            made = ThroughUplink(self._nucleus, self._engine.silence, self._uplink)
        elif spec == UPLINK:
            raise InvalidInput(f"device {self._host.name!r} has no uplink; hand one to its ProximityService")
        else:
            raise InvalidInput(f"events go by {AIR} or {UPLINK}, not by {spec}")
        made.retire = lambda mechanism: self._fade(spec, mechanism)
        return made

    def _fade(self, spec: MechanismSpec, mechanism: Dissemination) -> None:
        """It goes on until the one that replaces it is known everywhere."""
        timer = self._host.timers.after(self._settings.overlap, lambda: self._over(spec))
        self._fading[spec] = mechanism, timer

    def _over(self, spec: MechanismSpec) -> None:
        mechanism, _ = self._fading.pop(spec)
        mechanism.close()

    # Parts

    def _announced(self, subject: str) -> Local:
        try:
            return self._nucleus.locals[subject]
        except KeyError:
            hint = guess(subject, list(self._nucleus.locals))
            raise UnknownName(f"{subject!r} is not announced on {self._host.name!r}{hint}; announce it first") from None

    def _arrived_here(self, event: Event, number: int, local: Local) -> None:
        self._nucleus.arrived(event, number, local.announcement.event_type.attributes)

    def _find(self, interest: Interest) -> Interest | None:
        return next((each for each in self._nucleus.interests.get(interest.subject, ()) if each == interest), None)


def _predicate(content: Content | None) -> Predicate | None:
    if content is None:
        return None
    predicate = parse(content) if isinstance(content, str) else content
    if isinstance(predicate, ContentFilter):
        predicate = predicate.to_predicate()
    if not isinstance(predicate, Predicate):
        raise InvalidSubscription(f"a content filter is a ContentFilter, CQL2 text or a predicate, not {predicate!r}")
    disjunctive_normal_form(predicate)  # refuses a formula that explodes
    return predicate
