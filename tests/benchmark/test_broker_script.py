"""People walk as people do, the truth about who is near is the model's, and cells cover every circle."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.benchmark.broker_script import FASTEST, SECONDS_BETWEEN_REPORTS, Script, script, side
from nearcast.benchmark.broker_useful import touching
from nearcast.benchmark.workload import RADIUS, WITHIN_REACH
from nearcast.model.geometry import Point, distance


@pytest.fixture(scope="module")
def walk() -> Script:
    return script(clients=60, steps=12)


def pairs(walk: Script, steps: range) -> tuple[np.ndarray, np.ndarray]:
    step, publisher, receiver = np.nonzero(walk.metres[steps.start : steps.stop] <= RADIUS)
    return (step + steps.start) * walk.clients + publisher, receiver


def test_nobody_leaves_the_box_or_runs(walk: Script) -> None:
    x, y = walk.plane
    assert np.abs(x).max() <= side(60) / 2 + 0.1
    assert np.hypot(np.diff(x, axis=0), np.diff(y, axis=0)).max() <= FASTEST * SECONDS_BETWEEN_REPORTS + 0.1
    assert (np.hypot(np.diff(x, axis=0), np.diff(y, axis=0)) > 0).mean() > 0.9


def test_as_many_are_near_as_in_the_city_of_the_other_benchmark() -> None:
    # Spread evenly, 30; those at the edge of the box have fewer, those who cross its middle more.
    assert (script(2_000, 1).metres <= RADIUS).sum() / 2_000 == pytest.approx(WITHIN_REACH, rel=0.15)


def test_distances_are_those_of_the_model(walk: Script) -> None:
    for step, publisher, receiver in ((0, 1, 2), (5, 40, 7), (11, 59, 0)):
        here, there = (Point(walk.lat[step, who], walk.lon[step, who]) for who in (publisher, receiver))
        assert walk.metres[step, publisher, receiver] == pytest.approx(distance(here, there), abs=1e-6)


def test_the_right_deliveries_are_all_useful(walk: Script) -> None:
    events, receivers = pairs(walk, range(3, 6))
    judgement = walk.judge(events, receivers, range(3, 6))
    assert (judgement.useful, judgement.differing) == (len(events), 0)


def test_what_is_lacking_doubled_too_far_or_of_another_time_differs(walk: Script) -> None:
    steps = range(3, 6)
    events, receivers = pairs(walk, steps)
    # Well inside: in the border band either answer is right.
    inside = int(np.flatnonzero(walk.metres[events // walk.clients, events % walk.clients, receivers] < 100)[0])
    assert walk.judge(np.delete(events, inside), np.delete(receivers, inside), steps).differing == 1
    assert walk.judge(np.append(events, events[inside]), np.append(receivers, receivers[inside]), steps).differing == 1
    step, publisher, receiver = (int(found[0]) for found in np.nonzero(walk.metres[3:4] > 200))
    far = (step + 3) * walk.clients + publisher
    assert walk.judge(np.append(events, far), np.append(receivers, receiver), steps).differing == 1
    assert walk.judge(np.append(events, 0), np.append(receivers, 0), steps).differing == 1
    assert walk.judge(np.append(events, far), np.append(receivers, receiver), steps).useful == len(events)


def test_a_receiver_keeps_what_is_near(walk: Script) -> None:
    events, receivers = np.divmod(np.arange(2 * walk.clients**2), walk.clients)
    kept = walk.near(events, receivers)
    assert kept.sum() == (walk.metres[:2] <= RADIUS).sum()


@given(
    east=st.floats(-1e4, 1e4),
    north=st.floats(-1e4, 1e4),
    cell=st.sampled_from([75.0, 150.0, 300.0, 600.0, 1200.0]),
    angle=st.floats(0, 2 * np.pi),
    share=st.floats(0, 1),
)
def test_every_place_within_the_radius_is_in_a_touched_cell(
    east: float, north: float, cell: float, angle: float, share: float
) -> None:
    there = east + share * RADIUS * np.cos(angle), north + share * RADIUS * np.sin(angle)
    touched = set(touching(east, north, cell))
    assert (int(there[0] // cell), int(there[1] // cell)) in touched
    # And none in vain: of every one of them some corner of the circle's box is in or beyond it.
    assert len(touched) <= (2 * RADIUS // cell + 2) ** 2
