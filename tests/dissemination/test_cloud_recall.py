"""Recall and precision of the schemes in whole simulated runs, people moving and messages taking their time."""

from __future__ import annotations

import pytest
from tests.dissemination.cloud_town import NEAR, CloudTown, Options, chatter

from nearcast.runtime.simulation.cellular_profile import BearerProfile, CellularProfile
from nearcast.runtime.simulation.distributions import Uniform
from nearcast.transition.specification import MechanismSpec

of = MechanismSpec.of
JITTER = BearerProfile(latency=Uniform(0.05, 0.2), bandwidth=None)
PROFILE = CellularProfile(uplink=JITTER, downlink=JITTER)
ROUND_TRIP = 0.4
SPEED = 10.0
INTERVAL = 5.0
MARGIN = SPEED * (INTERVAL + ROUND_TRIP)

Run = tuple[CloudTown, set[tuple[str, str]]]


def run(scheme: MechanismSpec, *, speed: float = SPEED, seconds: int = 90, interval: float = INTERVAL) -> Run:
    town = CloudTown(40, Options(scheme, profile=PROFILE, fix_every=interval))
    town.wander(speed)
    town.join_all(NEAR)
    town.after(2.0)
    return town, chatter(town, seconds, 125.0)


def recall_and_precision(town: CloudTown, concerned: set[tuple[str, str]]) -> tuple[float, float]:
    reached = town.reached()
    return len(reached & concerned) / len(concerned), len(reached & concerned) / len(reached)


@pytest.mark.parametrize("cover", ["box", "circle"])
@pytest.mark.parametrize("cells", ["square", "hexagon"])
def test_egrid_misses_nobody_if_the_margin_is_what_one_can_walk_meanwhile(cells: str, cover: str) -> None:
    town, concerned = run(of("EGRID", cells=cells, cover=cover, factor=10, margin=MARGIN))
    assert len(concerned) > 50
    assert concerned <= town.reached()


@pytest.mark.parametrize("seed", [5, 6, 7, 8])
def test_a_broker_that_forgets_positions_misses_nobody_either(seed: int) -> None:
    options = Options(of("RGRID", factor=20, margin=MARGIN), profile=PROFILE, fix_every=INTERVAL, seed=seed)
    town = CloudTown(40, options)
    town.wander(SPEED)
    town.join_all(NEAR)
    town.after(1.0)  # subscriptions and first requests, in whatever order they come
    assert chatter(town, 20, 125.0) <= town.reached()


def test_egrid_misses_somebody_without_a_margin() -> None:
    # Circles and fine cells: what a box or a large cell takes in beyond the circle serves as a margin, too.
    town, concerned = run(of("EGRID", cover="circle", factor=20))
    assert not concerned <= town.reached()
    town, concerned = run(of("EGRID", cover="circle", factor=20, margin=MARGIN))
    assert concerned <= town.reached()


def test_whoever_stands_still_is_never_missed_and_never_bothered_by_radial() -> None:
    town = CloudTown(40, Options(profile=PROFILE))
    for node in range(40):
        town.put(node, 31.0 * node - 600.0, 97.0 * (node % 7) - 300.0)
    town.join_all(NEAR)
    town.after(2.0)
    concerned = chatter(town, 40, 125.0)
    assert concerned
    assert town.reached() == concerned


def test_ste_that_does_not_look_ahead_is_radial_notification_by_notification() -> None:
    # Also the latencies are the same: they are drawn message by message, and both send the same ones.
    radial, _ = run(of("RADIAL"), seconds=40)
    ste, _ = run(of("STE", alpha=0.0), seconds=40)
    assert ste.rows["notifications"] == radial.rows["notifications"]
    assert ste.rows["reports"] == radial.rows["reports"]
    assert len(radial.rows["notifications"]) > 30


def test_the_farther_ste_looks_ahead_the_more_it_finds_and_the_less_of_that_is_wanted() -> None:
    figures = [recall_and_precision(*run(of("STE", alpha=alpha), seconds=60)) for alpha in (0.0, 0.05, 0.2, 1.0)]
    recalls, precisions = zip(*figures, strict=True)
    assert list(recalls) == sorted(recalls)
    assert list(precisions) == sorted(precisions, reverse=True)
    # 50 m of 125 m are walked between two fixes: who does not look ahead misses many of those in front.
    assert recalls[0] < 0.9
    # It looks ahead only: those who have passed by, and are still near, are where the fix says they are.
    assert recalls[-1] > recalls[0] + 0.05
    assert precisions[-1] < precisions[0] / 1.5


@pytest.mark.parametrize(
    ("scheme", "counted"),
    [
        (of("RADIAL"), 40),
        (of("STE", alpha=0.02), 40),
        (of("GRID"), 25),
        (of("EGRID"), 25),
        (of("EGRID", factor=10), 100),
    ],
    ids=str,
)
def test_match_operations_are_counted_as_the_documents_do_and_as_they_were_done(
    scheme: MechanismSpec, counted: int
) -> None:
    town, _ = run(scheme, seconds=20)
    statistics = town.cloud.statistics()
    assert statistics.events == 20
    assert statistics.match_operations_counted == 20 * counted
    assert statistics.match_operations_done < statistics.match_operations_counted / 2
    if counted == 40:
        assert statistics.multicasts == statistics.notifications  # one message to each
    else:
        assert statistics.match_operations_done == 20
        assert statistics.multicasts <= 20  # one to the cell
        assert statistics.notifications > 20


@pytest.mark.parametrize("seed", [1, 2])
def test_the_same_seed_is_the_same_run(seed: int) -> None:
    rows = []
    for _ in range(2):
        town = CloudTown(20, Options(of("EGRID", cells="hexagon"), profile=PROFILE, fix_every=2.0, seed=seed))
        town.wander(SPEED)
        town.join_all(NEAR)
        chatter(town, 15, 125.0)
        rows.append((town.rows, sorted(map(repr, town.cellular.traffic()))))
    assert rows[0] == rows[1]
