"""The runs of THYME's evaluation as functions of their parameters (6.3 to 6.5)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import Final

from nearcast.errors import InvalidInput
from nearcast.experiment.experiment import Experiment
from nearcast.experiment.runs import Computed
from nearcast.experiment.thyme.crowd import STADE_DE_FRANCE, Crowd, Timeline
from nearcast.experiment.thyme.logs import read_posts
from nearcast.experiment.thyme.posts import GROWTH, HOURS, match_posts
from nearcast.experiment.thyme.radio import PROFILE
from nearcast.experiment.thyme.venue import CELL, area, places, replaceable
from nearcast.experiment.thyme.workload import SECONDS, operations
from nearcast.transition.specification import MechanismSpec, Scalar

PL_SG: Final = "PL/SG"
DCS: Final = "DCS"
MECHANISMS: Final = (PL_SG, DCS)
ON: Final = 120.0
OFF: Final = 60.0
CHANGES: Final = 0.75
"""Chance that a node whose time is over changes to the other state (6.4.2)."""

LEAVE: Final = (200.0, 300.0)
"""Seconds of the simulation between which publishers leave (6.4.1)."""

PUBLISHERS: Final = 0.5
"""Share of the nodes where each either publishes or subscribes; the paper does not name it."""

MOBILE: Final = 0.6

QUICK_SHARE: Final = 0.1
"""Of the match, and of the time, in quick runs."""


def evaluated(
    seed: int,
    *,
    mechanism: str,
    nodes: int,
    share: float = 1.0,
    leaving: float = 0.0,
    divided: int = 0,
    failing: float = 0.0,
    speed: float = 0.0,
    populated: int = 1,
    loss: float = 0.0,
    broadcast_loss: float | None = None,
    growth: float = GROWTH,
    broadcast_rate: int | None = None,
    posts: str = "",
    content: str = "",
    **parameters: Scalar,
) -> dict[str, float]:
    """One run: ``leaving`` for ever, ``failing`` now and then, or walking; ``share`` of the operations' time is simulated.

    ``populated``: whoever fails, leaves or walks away is not the last one of its cell (6.1); else it is anybody, and cells hand over.
    ``loss``: of so many frames the radio says that they have arrived, and they have not; ``broadcast_loss``: of broadcasts so many.  ``growth``: of the tags (``posts``).
    ``broadcast_rate``: bits per second, if not those of unicasts.  ``posts``: a log of real ones (``logs``) instead of those drawn at
    random; ``content`` says what is in it, so that another log is another run.
    """
    del content
    random = Random(f"{seed} {nodes} {divided}")
    publishers = random.sample(range(nodes), round(PUBLISHERS * nodes)) if divided else None
    subscribers = None if publishers is None else sorted(set(range(nodes)) - set(publishers))
    # The same operations and places for each mechanism and each share of failures (6.2).
    posted = read_posts(Path(posts), nodes, HOURS) if posts else match_posts(nodes, random, growth)
    every = operations(posted, nodes, random, publishers=publishers, subscribers=subscribers)
    times = Timeline(operations=share * SECONDS)
    squeezed = [each._replace(at=share * each.at) for each in every if share == 1.0 or random.random() < share]
    spec = MechanismSpec.of(
        mechanism, **(_cells(nodes, populated=bool(populated)) if mechanism == DCS else {}), **parameters
    )
    where = places(nodes, random)
    crowd = Crowd(
        seed, spec, where, squeezed, times, loss, broadcast_loss, replace(PROFILE, broadcast_rate=broadcast_rate)
    )
    chosen = random.sample(range(nodes), nodes)
    going = list(publishers or chosen)
    if populated:
        going = replaceable(going, where)
    if leaving:
        for node in going[: round(leaving * nodes)]:
            early, late = (times.first + share * (at - times.first) if share < 1 else at for at in LEAVE)
            crowd.at(random.uniform(early, late), partial(crowd.fail, node))
    if failing:
        for node in going[: round(failing * nodes)]:
            _now_and_then(crowd, node, random, share)
    if speed:
        crowd.move(chosen[: round(MOBILE * nodes)], speed, populated=bool(populated))
    return crowd.run()


def _cells(nodes: int, *, populated: bool) -> dict[str, Scalar]:
    """The venue in cells; where cells stay populated, nobody hands anything over, as in the paper (6.1)."""
    here, there = STADE_DE_FRANCE.to_point(0.0, 0.0), STADE_DE_FRANCE.to_point(*area(nodes))
    corners = {"south": here.lat, "west": here.lon, "north": there.lat, "east": there.lon}
    return {**corners, "side": CELL, "hand_over": not populated}


def _now_and_then(crowd: Crowd, node: int, random: Random, share: float) -> None:
    time, on = crowd.times.first + share * ON * random.random(), True
    while time < crowd.times.first + crowd.times.operations:
        if random.random() < CHANGES:
            on = not on
            crowd.at(time, partial(crowd.restart if on else crowd.fail, node))
        time += share * (ON if on else OFF)


def run_of(name: str, quick: bool, nodes: int, mechanism: str, **arguments: float | str) -> Computed:
    """In quick runs a crowd of 36 at most, for a tenth of the match."""
    size = min(nodes, 36) if quick else nodes
    given: dict[str, float | str] = {"mechanism": mechanism, "nodes": size, "share": QUICK_SHARE if quick else 1.0}
    return Computed(name, evaluated, (*given.items(), *arguments.items()), seconds=float(size * size))


def with_posts(experiment: Experiment, path: Path) -> Experiment:
    """The same with the posts of a log: those of its most active users, as many as there are nodes."""
    if not any(run.compute is evaluated for run in experiment.computed(True)):
        raise InvalidInput(f"{experiment.name} publishes no posts; THYME's experiments do, such as thyme-th1")
    try:
        content = blake2b(path.read_bytes(), digest_size=16).hexdigest()
    except OSError as error:
        raise InvalidInput(f"the posts in {path} cannot be read: {error}") from None
    given = (("posts", str(path.resolve())), ("content", content))

    def computed(quick: bool) -> tuple[Computed, ...]:
        return tuple(replace(run, arguments=(*run.arguments, *given)) for run in experiment.computed(quick))

    return replace(experiment, computed=computed)
