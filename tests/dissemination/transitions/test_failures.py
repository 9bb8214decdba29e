"""Transitions that cannot be carried out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.dissemination.transitions.comparison import compared
from tests.dissemination.transitions.story import Story
from tests.dissemination.transitions.town import BROKER, Plan, Town, instant, run

from nearcast.dissemination.cloud_broker import CloudBroker
from nearcast.errors import TransitionFailed
from nearcast.filtering.broker_half import BrokerHalf
from nearcast.filtering.grid import GridBroker, GridClient
from nearcast.transition.coordinator import TransitionCoordinator
from nearcast.transition.engine import HostEngine
from nearcast.transition.plan import PlanMessage
from nearcast.transition.slot import Slot
from nearcast.transition.specification import MechanismSpec

RADIAL, GRID = MechanismSpec("RADIAL"), MechanismSpec("GRID")
STORY = Story(11, busy=(12.0, 13.0))


class Broken(Exception):
    pass


def broken(*_args: Any, **_more: Any) -> None:
    raise Broken


def part_way(adopt: Callable[..., None]) -> Callable[..., None]:
    """Works for the first four clients."""
    calls = iter(range(4))

    def adopting(self: BrokerHalf, *args: Any) -> None:
        if next(calls, None) is None:
            raise Broken
        adopt(self, *args)

    return adopting


@pytest.mark.parametrize("where", ["transfer", "start", "half-way"])
@pytest.mark.parametrize("some", [False, True])
def test_what_fails_at_the_broker_changes_nothing_and_nobody_hears_of_it(
    where: str, some: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed = run(STORY, RADIAL)
    town = Town(STORY, RADIAL)
    failures: list[str] = []

    def attempt(_: object) -> None:
        with monkeypatch.context() as patched:
            match where:
                case "transfer":
                    patched.setattr(Slot, "_transfer", broken)
                case "start":
                    patched.setattr(GridBroker, "start_mechanism", broken)
                case _:
                    patched.setattr(GridBroker, "adopt", part_way(GridBroker.adopt))
            with pytest.raises(TransitionFailed, match="goes on as before") as failure:
                town.broker.transition(GRID, town.broker.clients[2:9] if some else None)
            failures.append(str(failure.value))

    town.simulation.at(instant(12.0), attempt)
    switched = town.run()
    assert len(failures) == 1
    assert "GRID" in failures[0]
    assert switched.copies == undisturbed.copies
    assert set(switched.schemes.values()) == {RADIAL}
    assert not [message for _, _, message in switched.told if isinstance(message, PlanMessage)]
    host = town.world.hosts[BROKER].host
    assert host is not None
    assert host.component(HostEngine).engine.statistics().failed == 1
    assert host.component(TransitionCoordinator).clock == 0
    assert host.component(CloudBroker).statistics().overlaps == 0


def test_after_a_failure_the_next_attempt_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    def attempt(_: object) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(GridBroker, "start_mechanism", broken)
            with pytest.raises(TransitionFailed):
                town.broker.transition(GRID)

    town = Town(STORY, RADIAL, [Plan(13.0, GRID)])
    town.simulation.at(instant(12.0), attempt)
    switched = town.run()
    assert set(switched.schemes.values()) == {GRID}
    assert switched.copies == run(STORY, RADIAL, [Plan(13.0, GRID)]).copies


def test_a_client_that_cannot_follow_goes_on_in_the_old_scheme_and_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started = iter(range(4))

    def start(_self: GridClient) -> None:
        if next(started, None) is not None:
            raise Broken

    with monkeypatch.context() as patched:
        patched.setattr(GridClient, "start_mechanism", start)
        town = Town(STORY, RADIAL, [Plan(12.0, GRID)])
        switched = town.run()
    host = town.world.hosts[BROKER].host
    assert host is not None
    left_behind = [client for client, scheme in switched.schemes.items() if scheme == RADIAL]
    assert len(left_behind) == 4
    assert host.component(TransitionCoordinator).statistics().failed >= 4
    found = compared(STORY, RADIAL, [])
    radial = found.references[RADIAL].notified
    assert {pair for pair in switched.notified if pair[1] in left_behind} == {
        pair for pair in radial if pair[1] in left_behind
    }
