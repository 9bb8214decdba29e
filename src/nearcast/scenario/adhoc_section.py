"""``[adhoc]``: how events spread from host to host, and when that changes (BYPASS.KOM 4.3, 6.3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from nearcast.dissemination.adhoc.registry import MECHANISMS as REGISTERED
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


SPREADING: Final = Varieties("kind", DeclaredSections(Spreading), "GOSSIP")


@dataclass(frozen=True, kw_only=True, slots=True)
class AdHocTransition(Section):
    """``[[adhoc.transition]]``: at that time, hosts change to that mechanism."""

    at: float = entry(Quantity(DURATION, Range(least=0.0)), "1 min", "when, after the start of the run")
    mechanism: Spreading = entry(SPREADING, {}, "to which mechanism")
    initiators: int | None = entry(
        Optional(Count(Range(least=1))),
        None,
        "so many clients, drawn at random, are told, and it spreads from them; if not given, the broker tells everybody",
    )


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

    def contradictions(self) -> Iterator[Contradiction]:
        named = [("mechanism", self.mechanism)]
        named += [(f"transition.{number}.mechanism", each.mechanism) for number, each in enumerate(self.transition, 1)]
        for key, mechanism in named:
            if mechanism.word == "UNICAST":
                yield Contradiction(
                    (key,), "'UNICAST' sends to hosts that somebody names, and nobody does here; choose 'BROADCAST'"
                )
        for number, each in enumerate(self.transition, 1):
            if each.initiators is not None and not self.self_healing:
                yield Contradiction(
                    (f"transition.{number}.initiators", "self_healing"),
                    "it spreads from them by self-healing, which is switched off; set self_healing = true",
                )
