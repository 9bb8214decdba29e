"""What happens to those who are to get an event from gateways, and that they get it all the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from hypothesis import strategies as st
from tests.dissemination.gateways.town import GatewayTown, Options

from nearcast.runtime.simulation.cellular_profile import BYPASS, Outage

Happening = Literal["fails", "leaves", "moves", "loses coverage"]


@dataclass(frozen=True)
class Trouble:
    """What happens to a host, in seconds after the first event."""

    node: int
    what: Happening
    at: float
    back_after: float | None

    @property
    def outage(self) -> Outage:
        start = SETTLED + self.at
        return Outage(start, start + (self.back_after or 100.0), frozenset({f"c{self.node}"}))


SETTLED = 2.0
"""Seconds after which the first event is published."""

people = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=4, max_size=12)
troubles = st.lists(
    st.builds(
        Trouble,
        node=st.integers(1, 11),
        what=st.sampled_from(get_args(Happening)),
        at=st.sampled_from([0.0, 0.05, 0.15, 0.2, 0.21, 0.3, 0.5, 0.9, 1.25, 2.0]),
        back_after=st.none() | st.sampled_from([0.02, 0.3, 1.0, 3.0]),
    ),
    max_size=5,
)


def bring_about(town: GatewayTown, trouble: Trouble) -> None:
    host, motion = town.hosts[trouble.node], town.world.motion
    match trouble.what:
        case "fails" | "leaves":
            town.at(trouble.at, host.fail if trouble.what == "fails" else host.leave)
            if trouble.back_after is not None:
                town.at(trouble.at + trouble.back_after, host.join)
        case "moves":
            x, y = motion.at(host.node)
            town.at(trouble.at, lambda: motion.put(host.node, x + 1_000.0, y))
            if trouble.back_after is not None:
                town.at(trouble.at + trouble.back_after, lambda: motion.put(host.node, x, y))


def nobody_is_missed(
    options: Options, places: Sequence[tuple[int, int]], happening: Sequence[Trouble], events: int
) -> None:
    """Publish some events, while that happens: everybody who had coverage all the time gets each of them, and nobody twice."""
    happening = [trouble for trouble in happening if trouble.node < len(places)]
    outages = tuple(trouble.outage for trouble in happening if trouble.what == "loses coverage")
    options = replace(options, profile=replace(BYPASS, outages=outages))
    town = GatewayTown([(12.0 * x, 12.0 * y) for x, y in places], options)
    town.join_all()
    for trouble in happening:
        bring_about(town, trouble)
    names = [f"e{number}" for number in range(events)]
    for name in names:
        town.publish(0, name)
        town.after(0.4)
    town.after(4.0)
    away = {f"c{trouble.node}" for trouble in happening if trouble.what != "moves"}
    for name in names:
        assert town.got(name).keys() >= {host.name for host in town.hosts[1:]} - away
        for lives in town.lives.values():
            assert all(life.got.count(name) <= 1 for life in lives)
    assert town.statistics().waiting == 0
