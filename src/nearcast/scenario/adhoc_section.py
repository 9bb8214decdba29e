"""``[adhoc]``: how events spread from host to host, and when that changes (BYPASS.KOM 4.3, 6.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from nearcast.dissemination.adhoc.registry import MECHANISMS as REGISTERED
from nearcast.dissemination.transport.registry import TRANSPORTS as REGISTERED_TRANSPORTS
from nearcast.scenario.declared_sections import Declared, DeclaredSections
from nearcast.scenario.kinds import Count, Flag, Optional, Quantity, Range, entry
from nearcast.scenario.problems import Contradiction
from nearcast.scenario.quantities import DURATION
from nearcast.scenario.tables import Section, Table, Tables, Varieties
from nearcast.transition.registry import Registry


@dataclass(frozen=True, kw_only=True, slots=True)
class Spreading(Declared):
    """What all mechanisms share."""

    registered: ClassVar[Registry[Any]] = REGISTERED


@dataclass(frozen=True, kw_only=True, slots=True)
class Transport(Declared):
    """What all transports share."""

    registered: ClassVar[Registry[Any]] = REGISTERED_TRANSPORTS


SPREADING: Final = Varieties("kind", DeclaredSections(Spreading), "GOSSIP")
TRANSPORTS: Final = Varieties("kind", DeclaredSections(Transport), "WIFI")
_AT: Final = Quantity(DURATION, Range(least=0.0))
_INITIATORS: Final = Optional(Count(Range(least=1)))
_FROM_THEM: Final = (
    "so many clients, drawn at random, are told, and it spreads from them; if not given, the broker tells everybody"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class AdHocTransition(Section):
    """``[[adhoc.transition]]``: at that time, hosts change to that mechanism."""

    at: float = entry(_AT, "1 min", "when, after the start of the run")
    mechanism: Spreading = entry(SPREADING, {}, "to which mechanism")
    initiators: int | None = entry(_INITIATORS, None, _FROM_THEM)


@dataclass(frozen=True, kw_only=True, slots=True)
class TransportTransition(Section):
    """``[[adhoc.transport_transition]]``: at that time, hosts change to that transport."""

    at: float = entry(_AT, "1 min", "when, after the start of the run")
    transport: Transport = entry(TRANSPORTS, {}, "to which transport")
    initiators: int | None = entry(_INITIATORS, None, _FROM_THEM)


@dataclass(frozen=True, kw_only=True, slots=True)
class AdHocSection(Section):
    """How events spread from host to host."""

    mechanism: Spreading = entry(SPREADING, {}, "the mechanism with which the run starts")
    geofence: bool = entry(
        Flag(), True, "whether what happened where its publisher was is sent on only by hosts that want it themselves"
    )
    self_healing: bool = entry(
        Flag(), True, "whether hosts change to the mechanism of others whom they hear, if that is by a newer plan"
    )
    foreign: bool = entry(
        Flag(), True, "whether events are taken from hosts that run another mechanism; in the documents they are not"
    )
    transition: tuple[AdHocTransition, ...] = entry(
        Tables(Table(AdHocTransition)), [], "when hosts change to another mechanism"
    )
    transport: Transport = entry(TRANSPORTS, {}, "the radio over which they spread when the run starts")
    transport_transition: tuple[TransportTransition, ...] = entry(
        Tables(Table(TransportTransition)), [], "when hosts change to another transport"
    )

    @property
    def interfaces(self) -> tuple[str, ...]:
        """The local links that hosts need: Wi-Fi, and what else is named."""
        return tuple(dict.fromkeys(["wifi", *self.used]))

    @property
    def used(self) -> tuple[str, ...]:
        """The local links over which events spread, sooner or later."""
        named = [self.transport, *(each.transport for each in self.transport_transition)]
        return tuple(REGISTERED_TRANSPORTS[each.word].parameters.interface for each in named)

    def contradictions(self) -> Iterator[Contradiction]:
        named = [("mechanism", self.mechanism)]
        named += [(f"transition.{number}.mechanism", each.mechanism) for number, each in enumerate(self.transition, 1)]
        for key, mechanism in named:
            if mechanism.word == "UNICAST":
                yield Contradiction(
                    (key,), "'UNICAST' sends to hosts that somebody names, and nobody does here; choose 'BROADCAST'"
                )
        begun = [(f"transition.{number}", each.initiators) for number, each in enumerate(self.transition, 1)]
        changes = enumerate(self.transport_transition, 1)
        begun += [(f"transport_transition.{number}", each.initiators) for number, each in changes]
        for key, initiators in begun:
            if initiators is not None and not self.self_healing:
                yield Contradiction(
                    (f"{key}.initiators", "self_healing"),
                    "it spreads from them by self-healing, which is switched off; set self_healing = true",
                )
        for key, entries in (("transition", self.transition), ("transport_transition", self.transport_transition)):
            yield from _at_once(key, [each.at for each in entries])


def _at_once(key: str, times: Sequence[float]) -> Iterator[Contradiction]:
    """Hosts hear of plans in any order, so that of two at one time some would keep the one and some the other."""
    for number, at in enumerate(times, 1):
        first = times.index(at) + 1
        if first < number:
            yield Contradiction(
                (f"{key}.{number}.at", f"{key}.{first}.at"),
                f"{DURATION.text(at)} is also when {key}[{first}] begins, which of both would hold is left to chance;"
                " give them different times, or leave one out",
            )
