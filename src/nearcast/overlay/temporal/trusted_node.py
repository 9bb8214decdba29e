"""A trusted node (6.3.2): issues virtual identities, and delivers to those who stand behind them.

It knows entities and nothing of their contexts; nodes know contexts and no entities.  What nodes found comes as spans of time.  Each
entity gets a message once, at most, however many of its contexts it is for and however many answers there are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from nearcast.model.event import Event
from nearcast.model.temporal import WIDENING, expiry
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.overlay.routing.wire import Routed, event_in
from nearcast.overlay.temporal.identities import Identities, Owner
from nearcast.overlay.temporal.messages import (
    TRUSTED_NODE,
    Delivered,
    Delivery,
    Deposit,
    Identity,
    Span,
    Unknown,
    Vid,
    WantIdentity,
    Whereabouts,
)
from nearcast.overlay.temporal.settings import TemporalSettings
from nearcast.overlay.temporal.temporal_router import TemporalRouter
from nearcast.overlay.temporal.uniting import Spans
from nearcast.runtime.host import Component, Host
from nearcast.runtime.messages import Codec, encoded
from nearcast.runtime.ports import Address, Cancellable

_CODEC: Final[Codec[Any]] = Codec(WantIdentity, Whereabouts, Delivered)


@dataclass(frozen=True, slots=True)
class TrustedNodeStatistics:
    identities: int
    messages: int
    """That it knows of now."""

    unknown: int
    """Spans of identities that it has not issued."""

    delivered: int
    """Confirmed by the device."""

    deposited: int
    waiting: int
    """Deliveries to entities of which it knows neither device nor mailbox."""

    malformed: int


@dataclass(slots=True)
class _Message:
    message: Routed
    event: Event
    forgotten: Instant
    spans: dict[str, Spans] = field(default_factory=dict)
    served: set[str] = field(default_factory=set)
    """Entities that have got it, or will."""

    timers: dict[str, tuple[Instant, Cancellable]] = field(default_factory=dict)
    """By entity: when it is judged again."""


@dataclass(slots=True)
class _Entity:
    node: Address | None = None
    device: Address = ""
    heard: Instant = 0
    mailbox: Address | None = None
    box: str = ""
    waiting: list[tuple[Instant, Delivery]] = field(default_factory=list)
    """Since when."""


class TrustedNode(Component):
    """Beside a ``TemporalRouter``, after which it starts."""

    def __init__(self, settings: TemporalSettings | None = None) -> None:
        self._settings: Final = settings or TemporalSettings()
        self._settling: Final = round(self._settings.settling * MICROSECONDS)
        self._messages: Final[dict[str, _Message]] = {}
        self._entities: Final[dict[str, _Entity]] = {}
        self._unconfirmed: Final[dict[tuple[str, str], Cancellable]] = {}
        """Deliveries, by entity and message, that the device has not confirmed."""

        self._unknown = self._delivered = self._deposited = self._malformed = 0
        self.identities: Identities
        self._host: Host
        self._temporal: TemporalRouter

    def start(self, host: Host) -> None:
        self._host, self._temporal = host, host.component(TemporalRouter)
        self.identities = Identities(host.name)
        self._temporal.xcast.resolve = self.resolved
        self._temporal.serve(TRUSTED_NODE, self._serve)
        host.timers.every(self._settings.remembered / 4, self._forget)

    def statistics(self) -> TrustedNodeStatistics:
        return TrustedNodeStatistics(
            identities=len(self.identities),
            messages=len(self._messages),
            unknown=self._unknown,
            delivered=self._delivered,
            deposited=self._deposited,
            waiting=sum(len(entity.waiting) for entity in self._entities.values()),
            malformed=self._malformed,
        )

    def issue(self, entity: str, aspect: str) -> Vid:
        self._entities.setdefault(entity, _Entity())
        return self.identities.issue(Owner(entity, aspect), self._host.now())

    # What nodes have found

    def resolved(self, message: Routed, spans: Iterable[Span], whole: bool) -> None:
        known = self._message(message)
        if known is None:
            return
        touched: dict[str, None] = {}
        for span in spans:
            owner = self.identities.owner(span.vid)
            if owner is None:
                self._unknown += 1
            elif owner.entity not in known.served:
                known.spans.setdefault(owner.entity, Spans()).add(owner.aspect, span)
                touched[owner.entity] = None
        assert known.event.when is not None
        for entity in touched:
            if whole or known.event.when.relation in WIDENING:
                self._judge(known, entity)
            else:
                self._judge_at(known, entity, self._host.now() + self._settling)

    def _message(self, message: Routed) -> _Message | None:
        known = self._messages.get(message.id)
        if known is None:
            event = event_in(message)
            if event.when is None:
                self._malformed += 1
                return None
            known = self._messages[message.id] = _Message(message, event, self._until(event))
        return known

    def _until(self, event: Event) -> Instant:
        """As long as anything can be found for it, and a while longer."""
        assert event.when is not None
        ends, now, settings = expiry(event.when), self._host.now(), self._settings
        longest = now + round(settings.longest_life * MICROSECONDS)
        ends = longest if ends is None else min(max(ends, now), longest)
        return ends + round(settings.remembered * MICROSECONDS)

    def _judge_at(self, known: _Message, entity: str, at: Instant) -> None:
        """Not before then; what is to be judged earlier stays so."""
        waiting = known.timers.get(entity)
        if waiting is not None:
            if waiting[0] <= at:
                return
            waiting[1].cancel()
        seconds = max(at - self._host.now(), 0) / MICROSECONDS
        known.timers[entity] = at, self._host.timers.after(seconds, lambda: self._due(known, entity))

    def _due(self, known: _Message, entity: str) -> None:
        known.timers.pop(entity, None)
        self._judge(known, entity)

    def _judge(self, known: _Message, entity: str) -> None:
        if entity in known.served:
            return
        verdict = known.spans[entity].judge(known.event, self._host.now(), self._settling)
        if verdict.aspects:
            known.served.add(entity)
            del known.spans[entity]
            waiting = known.timers.pop(entity, None)
            if waiting is not None:
                waiting[1].cancel()
            self._deliver(entity, Delivery(known.message, verdict.aspects))
        elif verdict.next is not None:
            self._judge_at(known, entity, verdict.next)

    def _forget(self) -> None:
        now = self._host.now()
        for name in [name for name, known in self._messages.items() if known.forgotten <= now]:
            for _, timer in self._messages.pop(name).timers.values():
                timer.cancel()
        # As a mailbox does: nobody need ever come back.
        since = now - round(self._settings.kept * MICROSECONDS)
        for entity in self._entities.values():
            entity.waiting = [each for each in entity.waiting if each[0] > since]

    # Delivery

    def _deliver(self, entity: str, delivery: Delivery, tries: int | None = None) -> None:
        """To the device where it was heard of last; if that does not confirm it, to the mailbox."""
        known = self._entities[entity]
        left = self._settings.tries if tries is None else tries
        if known.node is None or not left or known.heard + self._lease() <= self._host.now():
            self._deposit(known, delivery)
            return
        key = entity, delivery.message.id
        self._unconfirmed[key] = self._host.timers.after(
            self._settings.resend, lambda: self._again(entity, delivery, left - 1)
        )
        self._temporal.say(known.node, known.device, encoded(delivery))

    def _again(self, entity: str, delivery: Delivery, left: int) -> None:
        del self._unconfirmed[entity, delivery.message.id]
        self._deliver(entity, delivery, left)

    def _deposit(self, known: _Entity, delivery: Delivery) -> None:
        keep = self._host.now(), delivery
        if known.mailbox is None:
            known.waiting.append(keep)
            return
        self._deposited += 1
        deposit = Deposit(box=known.box, delivery=delivery)
        self._temporal.tell(known.mailbox, deposit, lambda: known.waiting.append(keep))

    def _lease(self) -> int:
        return round(self._settings.lease * MICROSECONDS)

    # What devices say

    def _serve(self, node: Address, device: Address, body: bytes) -> None:
        try:
            message = _CODEC.decoded(body)
        except msgspec.DecodeError:
            self._malformed += 1
            return
        match message:
            case WantIdentity():
                vid = self.issue(message.entity, message.aspect)
                self._temporal.say(node, device, encoded(Identity(message.aspect, vid)))
            case Whereabouts():
                self._found(message, node, device)
            case Delivered():
                timer = self._unconfirmed.pop((message.entity, message.message), None)
                if timer is not None:
                    timer.cancel()
                    self._delivered += 1

    def _found(self, message: Whereabouts, node: Address, device: Address) -> None:
        known = self._entities.setdefault(message.entity, _Entity())
        known.node, known.device, known.heard = node, device, self._host.now()
        known.mailbox, known.box = message.mailbox, message.box
        unknown = tuple(vid for vid in message.identities if self.identities.owner(vid) is None)
        if unknown:
            self._temporal.say(node, device, encoded(Unknown(unknown)))
        waiting, known.waiting = known.waiting, []
        for _, delivery in waiting:
            self._deliver(message.entity, delivery)
