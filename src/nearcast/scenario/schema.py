"""A scenario: everything that a run depends on, but for its seed.

An empty file is a valid one: BYPASS.KOM's AR game, with 297 people in a city centre.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from nearcast.dissemination.gateways.settings import GatewaySettings
from nearcast.dissemination.hybrid import MODES
from nearcast.dissemination.transport.registry import Bluetooth as BluetoothTransport
from nearcast.scenario.adhoc_section import AdHocSection
from nearcast.scenario.coexistence_section import CoexistenceSection
from nearcast.scenario.gateways_section import AT_POINTS, GatewaysSection
from nearcast.scenario.kinds import entry
from nearcast.scenario.loads import WORKLOADS, Publications, Workload
from nearcast.scenario.movements import MOBILITY, Mobility
from nearcast.scenario.planning_section import PLANNING, AdaptivePlanning, Planning, RuleEntry
from nearcast.scenario.population_section import POPULATIONS, Everybody, Population
from nearcast.scenario.problems import Contradiction
from nearcast.scenario.quantities import DURATION, SIZE
from nearcast.scenario.scheme_sections import SCHEMES, Scheme
from nearcast.scenario.schemes import Privacy, TransitionEntry, Transitions
from nearcast.scenario.sections import Bluetooth, Cellular, Clients, Delivery, Radio, Run
from nearcast.scenario.tables import Section, Table, Tables
from nearcast.scenario.worlds import WORLDS, World
from nearcast.scenario.writing import digest, to_toml

NETWORKS: Final[Mapping[str, frozenset[str]]] = {
    word: frozenset({"cellular"} if mode.cloud else ()) | frozenset({"radio"} if mode.ad_hoc else ())
    for word, mode in MODES.items()
}
"""What each mechanism of delivery needs."""

CHANNELS: Final = frozenset({"GRID", "EGRID", "RGRID", "ATTRACT"})
"""Schemes in which clients say that they have left their channel, and not where in it they are."""


def _silent(scheme: Scheme) -> bool:
    """Whether its clients do not report positions."""
    return scheme.word in CHANNELS and not dict(scheme.spec().parameters).get("enable_updates")


@dataclass(frozen=True, kw_only=True, slots=True)
class Scenario(Section):
    """The sections of a scenario file."""

    run: Run = entry(Table(Run), {}, "the run as a whole")
    world: World = entry(WORLDS, {}, "the ground on which people move")
    clients: Clients = entry(Table(Clients), {}, "those who carry a phone")
    mobility: Mobility = entry(MOBILITY, {}, "how they move")
    population: Population = entry(POPULATIONS, {}, "when they come and go")
    cellular: Cellular = entry(Table(Cellular), {}, "the cellular network")
    radio: Radio = entry(Table(Radio), {}, "the radio between those who are near each other")
    bluetooth: Bluetooth = entry(Table(Bluetooth), {}, "the other radio, if they use it")
    delivery: Delivery = entry(Table(Delivery), {}, "how events get to those whom they concern")
    adhoc: AdHocSection = entry(Table(AdHocSection), {}, "how events spread from host to host, where they do")
    gateways: GatewaysSection = entry(
        Table(GatewaysSection), {}, "who passes events of the broker on to those near, where somebody does"
    )
    coexistence: CoexistenceSection = entry(
        Table(CoexistenceSection), {}, "other mechanisms at attraction points than elsewhere"
    )
    scheme: Scheme = entry(SCHEMES, {}, "the filter scheme with which the run starts")
    transition: tuple[TransitionEntry, ...] = entry(
        Tables(Table(TransitionEntry)), [], "when clients and broker change to another one"
    )
    rule: tuple[RuleEntry, ...] = entry(
        Tables(Table(RuleEntry)), [], "at which values of what the broker knows they do, beside set times"
    )
    planning: Planning = entry(PLANNING, {}, "who decides when, instead of times and rules")
    transitions: Transitions = entry(Table(Transitions), {}, "how they do")
    privacy: Privacy = entry(Table(Privacy), {}, "clients that do not say where they are")
    workload: tuple[Workload, ...] = entry(Tables(WORKLOADS), [{}], "what is published, and who wants to hear of it")

    def to_toml(self, *, explained: bool = False) -> str:
        """The scenario with all its defaults, as a file that says the same; ``explained`` adds what each key means."""
        return to_toml(self, explained=explained)

    def digest(self) -> str:
        """SHA-256 of what the scenario says, whatever the form in which it does, and of the files it names."""
        return digest(self)

    @property
    def networks(self) -> frozenset[str]:
        """What it takes to deliver events, anywhere."""
        inside = self.coexistence.inside
        return NETWORKS[self.delivery.mechanism] | (frozenset() if inside is None else NETWORKS[inside])

    def gateway_settings(self) -> GatewaySettings:
        # Where transports change, the shortest range: rather some gateways too many than receivers whom none reaches.
        ranges = {BluetoothTransport.interface: self.bluetooth.profile().reception_range}
        settings = self.gateways.settings(min(ranges.get(link, self.radio.range) for link in self.adhoc.used))
        return settings if self.coexistence.inside is None else replace(settings, schemes=AT_POINTS)

    def contradictions(self) -> Iterator[Contradiction]:
        yield from self._ground()
        yield from self._networks()
        yield from self._times()
        yield from self._plans()
        yield from self._spreading()
        yield from self._gateways()
        if self.population.most() > self.clients.number:
            yield Contradiction(
                ("population.points", "clients.number"),
                f"asks for {self.population.most()} clients, but there are {self.clients.number}",
            )
        topics = [load.topic for load in self.workload if isinstance(load, Publications)]
        for topic in sorted({topic for topic in topics if topics.count(topic) > 1}):
            yield Contradiction(("workload",), f"two workloads publish under the topic '{topic}'; give each its own")

    def _ground(self) -> Iterator[Contradiction]:
        world, mobility = self.world, self.mobility
        if mobility.needs_streets and not world.has_streets:
            yield Contradiction(
                ("mobility.model", "world.kind"),
                f"'{mobility.word}' needs streets, and a '{world.word}' world has none;"
                " choose model 'waypoint', or another kind of world",
            )
        has_points = world.brings_points or bool(world.attraction_points)
        schemes = [("scheme.kind", self.scheme), ("privacy.scheme.kind", self.privacy.scheme)]
        schemes += [(f"transition.{number}.scheme", entry.scheme) for number, entry in enumerate(self.transition, 1)]
        for number, rule in enumerate(self.rule, 1):
            schemes += [(f"rule.{number}.{key}", scheme) for key, scheme in rule.schemes().items()]
        if isinstance(self.planning, AdaptivePlanning):
            named = enumerate(self.planning.candidates, 1)
            schemes += [(f"planning.candidates.{number}", scheme) for number, scheme in named]
        for key, scheme in schemes:
            if scheme.needs_points and not has_points:
                yield Contradiction(
                    (key, "world.kind", "world.attraction_points"),
                    f"'{scheme.word}' needs attraction points, and a '{world.word}' world brings none;"
                    " add some as [[world.attraction_points]]",
                )
        by_place = {"transitions.at_points": self.transitions.at_points}
        by_place["coexistence.inside"] = self.coexistence.inside is not None
        for key in [key for key, used in by_place.items() if used and not has_points]:
            yield Contradiction(
                (key, "world.kind", "world.attraction_points"),
                f"needs attraction points, and a '{world.word}' world brings none;"
                " add some as [[world.attraction_points]]",
            )
        for number, load in enumerate(self.workload, 1):
            if load.needs_points and not has_points:
                yield Contradiction(
                    (f"workload.{number}.kind", "world.kind", "world.attraction_points"),
                    f"'{load.word}' needs attraction points, and a '{world.word}' world brings none;"
                    " add some as [[world.attraction_points]]",
                )

    def _networks(self) -> Iterator[Contradiction]:
        mechanism = self.delivery.mechanism
        for network, section in (("cellular", self.cellular), ("radio", self.radio)):
            if network in self.networks and not section.enabled:
                asks = ("delivery.mechanism", mechanism)
                if network not in NETWORKS[mechanism]:
                    asks = ("coexistence.inside", str(self.coexistence.inside))
                yield Contradiction(
                    (asks[0], f"{network}.enabled"),
                    f"'{asks[1]}' needs {network}, which is switched off; set {network}.enabled = true",
                )
        longest = self.radio.longest_message if "radio" in self.networks else math.inf
        for number, load in enumerate(self.workload, 1):
            if isinstance(load, Publications) and load.payload > longest:
                yield Contradiction(
                    (f"workload.{number}.payload", "delivery.mechanism", "radio.standard"),
                    f"{SIZE.text(load.payload)} cannot be broadcast: a message by radio has at most {longest} B",
                )

    def _plans(self) -> Iterator[Contradiction]:
        if isinstance(self.planning, AdaptivePlanning) and (self.rule or self.transition):
            other = "rule" if self.rule else "transition"
            yield Contradiction(
                ("planning.kind", other), f"'adaptive' decides itself; leave out [[{other}]], or set the kind to 'none'"
            )
        deciding = {
            "transition": bool(self.transition),
            "rule": bool(self.rule),
            "planning.kind": isinstance(self.planning, AdaptivePlanning),
        }
        by_place = {
            "transitions.at_points": self.transitions.at_points,
            "coexistence.inside": self.coexistence.inside is not None,
        }
        # Both would undo what the other one does, at every report of a client.
        for place in [key for key, used in by_place.items() if used]:
            for key in [key for key, used in deciding.items() if used]:
                yield Contradiction(
                    (place, key), f"clients change one by one, and by '{key}' all together; leave one out"
                )
        if all(by_place.values()):
            yield Contradiction(
                ("coexistence.inside", "transitions.at_points"),
                "changes the scheme of clients at attraction points itself; leave 'transitions.at_points' out",
            )
        mechanism = self.delivery.mechanism
        if self.coexistence.inside is not None and mechanism != "cloud":
            yield Contradiction(
                ("coexistence.inside", "delivery.mechanism"),
                f"outside of attraction points events go by way of the cloud, not by '{mechanism}'; set it to 'cloud'",
            )
        if self.coexistence.coordination == "self-healing" and not self.adhoc.self_healing:
            yield Contradiction(
                ("coexistence.coordination", "adhoc.self_healing"),
                "'self-healing' is switched off; set adhoc.self_healing = true",
            )
        if self.coexistence.inside is not None and _silent(self.scheme):
            yield Contradiction(
                ("coexistence.inside", "scheme.kind"),
                f"who comes to a point is known by the positions that it reports, and with '{self.scheme.word}' clients"
                " report none; choose 'RADIAL'",
            )
        if "cellular" not in NETWORKS[mechanism]:
            deciding |= {"transitions.at_points": self.transitions.at_points, "privacy.share": self.privacy.share > 0}
            for key in [key for key, used in deciding.items() if used]:
                yield Contradiction(
                    (key, "delivery.mechanism"),
                    f"means nothing without a broker, and '{mechanism}' has none; leave it out",
                )

    def _spreading(self) -> Iterator[Contradiction]:
        mechanism = self.delivery.mechanism
        for number, change in enumerate(self.adhoc.transition, 1):
            key = f"adhoc.transition.{number}"
            if self.coexistence.inside is not None:
                yield Contradiction(
                    (key, "coexistence.inside"),
                    "would be for everybody, and outside of attraction points nobody is to run any; leave one out",
                )
            elif mechanism in ("cloud", "broadcast", "both"):
                yield Contradiction(
                    (key, "delivery.mechanism"),
                    f"'{mechanism}' has no ad hoc mechanism to change; choose 'adhoc', 'offload', 'augment' or 'gateway'",
                )
            else:
                yield from self._beginning(key, change.initiators)
        for number, other in enumerate(self.adhoc.transport_transition, 1):
            key = f"adhoc.transport_transition.{number}"
            if "radio" not in self.networks:
                yield Contradiction(
                    (key, "delivery.mechanism"),
                    f"'{mechanism}' uses no local transport; choose another one, such as 'augment'",
                )
            else:
                yield from self._beginning(key, other.initiators)

    def _beginning(self, key: str, initiators: int | None) -> Iterator[Contradiction]:
        """Of a transition among hosts."""
        mechanism = self.delivery.mechanism
        if initiators is None and "cellular" not in NETWORKS[mechanism]:
            yield Contradiction(
                (f"{key}.initiators", "delivery.mechanism"),
                f"'{mechanism}' has no broker that tells everybody; say from how many clients it spreads",
            )
        elif initiators is not None and initiators > self.clients.number:
            yield Contradiction(
                (f"{key}.initiators", "clients.number"),
                f"asks for {initiators} clients, but there are {self.clients.number}",
            )

    def _gateways(self) -> Iterator[Contradiction]:
        mechanism, how = self.delivery.mechanism, self.gateways
        # Of the event with which a member begins to collect; those that follow may be in time.
        answered = 2 * self.cellular.latency.least + how.window
        if (
            "gateway" in (mechanism, self.coexistence.inside)
            and how.acknowledged
            and how.window < how.deadline <= answered
        ):
            yield Contradiction(
                ("gateways.deadline", "gateways.window", "cellular.latency"),
                f"{DURATION.text(how.deadline)} are over before acknowledgements come, which are collected for"
                f" {DURATION.text(how.window)} and travel there and back for"
                f" {DURATION.text(2 * self.cellular.latency.least)} at least; set a later deadline, or acknowledged = false",
            )
        if MODES[mechanism].gateways:
            schemes = [self.scheme, *(entry.scheme for entry in self.transition)]
            schemes += [scheme for rule in self.rule for scheme in rule.schemes().values()]
            schemes += self.planning.candidates if isinstance(self.planning, AdaptivePlanning) else ()
            words = {scheme.word for scheme in schemes}
            if self.gateways.at_points and not (self.transitions.at_points or words & AT_POINTS):
                yield Contradiction(
                    ("gateways.at_points", "transitions.at_points"),
                    "nobody is ever in the scheme ATTRACT; set transitions.at_points = true",
                )
            served = [each for each in schemes if each.word in AT_POINTS or not self.gateways.at_points]
            if served and all(map(_silent, served)) and not self.transitions.at_points:
                yield Contradiction(
                    ("delivery.mechanism", "scheme.kind"),
                    f"gateways are chosen by where clients are, and with '{served[0].word}' they do not say it; choose 'RADIAL', or"
                    " 'ATTRACT' with enable_updates",
                )
        elif self.gateways.transition and self.coexistence.inside is not None:
            yield Contradiction(
                ("gateways.transition", "coexistence.inside"),
                "would be for everybody, and outside of attraction points there are no gateways; leave one out",
            )
        else:
            useless = {"gateways.transition": bool(self.gateways.transition)}
            useless["gateways.at_points"] = self.gateways.at_points and self.coexistence.inside != "gateway"
            for key in [key for key, given in useless.items() if given]:
                yield Contradiction((key, "delivery.mechanism"), f"'{mechanism}' has no gateways; choose 'gateway'")

    def _times(self) -> Iterator[Contradiction]:
        end = self.run.duration
        starts = [
            (f"workload.{number}.start", load.start)
            for number, load in enumerate(self.workload, 1)
            if isinstance(load, Publications)
        ]
        starts += [("cellular.outages", start) for start, _ in self.cellular.outages]
        starts += [(f"transition.{number}.at", entry.at) for number, entry in enumerate(self.transition, 1)]
        spreading = enumerate(self.adhoc.transition, 1)
        starts += [(f"adhoc.transition.{number}.at", entry.at) for number, entry in spreading]
        passing = enumerate(self.gateways.transition, 1)
        starts += [(f"gateways.transition.{number}.at", entry.at) for number, entry in passing]
        transports = enumerate(self.adhoc.transport_transition, 1)
        starts += [(f"adhoc.transport_transition.{number}.at", entry.at) for number, entry in transports]
        if isinstance(self.population, Everybody):
            starts += [("population.join_within", self.population.join_within + self.population.after)]
        for key, time in starts:
            if time >= end:
                yield Contradiction(
                    (key, "run.duration"),
                    f"{DURATION.text(time)} is not before the end of the run, {DURATION.text(end)}",
                )
