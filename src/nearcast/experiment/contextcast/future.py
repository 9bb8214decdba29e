"""E16 and E18: what it saves, and what it costs, that a message for the future waits (Contextcast 6.4.2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any, Final

import numpy as np

from nearcast.experiment.checks import Check, Outcome, Part, at_least, at_most, near
from nearcast.experiment.contextcast.history import Asked, Setup, asked, find_ways, hops, setup
from nearcast.experiment.contextcast.waiting import HOP, Overlay
from nearcast.experiment.experiment import Drawing, Experiment
from nearcast.experiment.figures.lines import lines
from nearcast.experiment.runs import Computed
from nearcast.experiment.values import Value
from nearcast.model.time import MICROSECONDS
from nearcast.runtime.ports import Address

ABSENT: Final = (0.0, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
"""p_f: how probable it is that nobody in an access network is for a message."""

EDGE: Final = 0.15
ROUTERS: Final = 10_000
CHAIN: Final = 100
MESSAGES: Final = {True: 20, False: 100}
WAITING: Final = {True: 150, False: 300}
"""Routers of which all components run."""

TRIALS: Final = {True: 12, False: 40}
NODES: Final = 12
FIRST_AND_LATER: Final = 2
SEEDS: Final = 5


def load(seed: int, *, absent: float, messages: int, routers: int) -> dict[str, float]:
    """Where a message goes, by how many of the access networks in its target have somebody for it."""
    town, random = setup(seed, routers), Random(f"future {seed} {absent}")
    addressed, reached, links, chained = [], [], [], []
    for _ in range(messages):
        sent = asked(town, random, EDGE)
        nodes = sorted(sent.found)
        if not nodes:
            continue
        present = [node for node in nodes if random.random() >= absent]
        visited = reached_by(town, sent.source, present)
        everywhere = reached_by(town, sent.source, nodes)
        addressed.append(len(present) / len(nodes))
        reached.append(len(visited & set(nodes)) / len(nodes))
        links.append(1.0 - (len(visited) - 1) / (len(everywhere) - 1) if len(everywhere) > 1 else 0.0)
        # From one end of a chain, all of it in range.
        last = max((place for place in range(1, CHAIN) if random.random() >= absent), default=0)
        chained.append(1.0 - last / (CHAIN - 1))
    return {
        "addressed": float(np.mean(addressed)),
        "reached": float(np.mean(reached)),
        "saved": float(np.mean(links)),
        "saved on a chain": float(np.mean(chained)),
    }


def reached_by(town: Setup, source: Address, nodes: Iterable[Address]) -> set[Address]:
    """Routers at which a message waits, that was sent from there and is for somebody at these nodes: all on the ways to them."""
    message = Asked(source, {node: [] for node in nodes})
    find_ways(town.spanning, message)
    return {source}.union(*message.ways.values())


def delay(seed: int, *, routers: int, trials: int) -> dict[str, float]:
    """How long who comes has to wait for a message that waits elsewhere: in round trips between him and its sender."""
    overlay = Overlay(seed, routers, NODES, FIRST_AND_LATER)
    random = Random(f"waits {seed}")
    first: list[float] = []
    handed: list[float] = []
    handed_later: list[float] = []
    sent_for_later = 0
    for trial in range(trials):
        source = random.choice(overlay.setup.names)
        message = overlay.publish(trial, source)
        overlay.run(2)
        for node in random.sample(sorted(overlay.devices), 4):
            away = hops(overlay.setup.spanning, source, node)
            for number, device in enumerate(overlay.devices[node]):
                overlay.arrived.pop(node, None)
                device.meet(trial)
                overlay.run(20 + 8 * HOP * away)
                begun, arrived = overlay.registered[node], overlay.arrived.get(node)
                # At the source, and where it waits already on its way to others, nobody waits for it.
                if number == 0:
                    waited = 0 if arrived is None else arrived - begun
                    first += [waited / (2 * away * HOP * MICROSECONDS)] if away else []
                    handed.append((device.got[message] - begun) / MICROSECONDS)
                else:
                    sent_for_later += arrived is not None
                    handed_later.append((device.got[message] - begun) / MICROSECONDS)
    return {
        "longest": max(first),
        "mean": float(np.mean(first)),
        "sent for later ones": float(sent_for_later),
        "until handed over": float(np.mean(handed)),
        "until handed over, later ones": float(np.mean(handed_later)),
    }


def _load_runs(quick: bool) -> tuple[Computed, ...]:
    arguments = ("messages", MESSAGES[quick]), ("routers", ROUTERS)
    return tuple(Computed(_name(absent), load, (("absent", absent), *arguments), seconds=3) for absent in ABSENT)


def _delay_runs(quick: bool) -> tuple[Computed, ...]:
    return (Computed(_DELAY, delay, (("routers", WAITING[quick]), ("trials", TRIALS[quick])), seconds=60),)


def _name(absent: float) -> str:
    return f"absent-{absent:g}"


_DELAY: Final = "delay"
_ALL: Final = tuple(map(_name, ABSENT))


def _of(run: str, name: str) -> Value:
    return lambda outcome: outcome[run].numbers[name]


def _off(outcome: Outcome) -> float:
    """By how much the share of access networks that are meant differs from 1 - p_f, at most."""
    return max(abs(outcome[_name(absent)].numbers["addressed"] - (1 - absent)) for absent in ABSENT)


def _drawn(outcomes: Sequence[Outcome]) -> Any:
    names = {"reached": "access networks reached", "saved": "links saved", "saved on a chain": "links saved on a chain"}
    series = {
        shown: [
            (absent, float(np.mean([outcome[_name(absent)].numbers[name] for outcome in outcomes])))
            for absent in ABSENT
        ]
        for name, shown in names.items()
    }
    return lines(series, x="share of access networks without anybody", y="share", title="Messages that wait")


CE16: Final = Experiment(
    name="contextcast-e16",
    document="Contextcast 6.4.2",
    title="Where messages for the future go",
    runs=lambda _quick: (),
    computed=_load_runs,
    checks=(
        Check(
            "CE16.1",
            "a message reaches the share 1 - p_f of the access networks in its target",
            "text",
            (
                Part("largest difference of those that are meant", at_most(0.03), _off),
                Part("reached at p_f = 0.5", near(0.5, 0.1), _of(_name(0.5), "reached")),
                Part("reached at p_f = 0.9", near(0.1, 0.1), _of(_name(0.9), "reached")),
            ),
            note="those on the way to others are reached as well, although nobody there is meant",
        ),
        Check(
            "CE16.2",
            "what that saves depends on the topology, and can be nothing on a chain",
            "text",
            (
                Part("links saved at p_f = 0.75", at_least(0.3), _of(_name(0.75), "saved")),
                Part("on a chain", at_most(0.05), _of(_name(0.75), "saved on a chain")),
            ),
        ),
        Check(
            "CE16.3",
            "a message that is for nobody stays where it was sent",
            "text",
            (Part("links saved at p_f = 1", at_least(1.0), _of(_name(1.0), "saved")),),
        ),
    ),
    drawings=(Drawing("waiting", "Access networks reached and links saved", _ALL, _drawn),),
    seeds=SEEDS,
)

CE18: Final = Experiment(
    name="contextcast-e18",
    document="Contextcast 6.4.2",
    title="How late messages for the future come",
    runs=lambda _quick: (),
    computed=_delay_runs,
    checks=(
        Check(
            "CE18.1",
            "no later than a round trip between sender and receiver",
            "text",
            (Part("longest until it is at the node", at_most(1.0), _of(_DELAY, "longest"), " round trips"),),
            note="of the way to the access network; whom it is for, his trusted node says, which is not on that way",
        ),
        Check(
            "CE18.2",
            "and that only for the first receiver in an access network",
            "text",
            (Part("copies sent for later ones", at_most(0.0), _of(_DELAY, "sent for later ones")),),
        ),
    ),
    drawings=(),
    seeds=SEEDS,
)
