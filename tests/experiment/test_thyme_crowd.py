"""The crowd of THYME's evaluation, in small: what is counted is what happened."""

from __future__ import annotations

import json
import time
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import campaign

from nearcast.crowdstore.objects import Metadata, ObjectKey
from nearcast.errors import InvalidInput
from nearcast.experiment.catalogue import EXPERIMENTS
from nearcast.experiment.checks import Outcome
from nearcast.experiment.figures.data import data_of
from nearcast.experiment.measures import computed
from nearcast.experiment.runs import Computed
from nearcast.experiment.thyme.book import MARGIN, Book, Thing, Wish
from nearcast.experiment.thyme.evaluation import DCS, PL_SG, evaluated, with_posts
from nearcast.experiment.thyme.radio import PROFILE, RANGE
from nearcast.experiment.thyme.reporting import worst
from nearcast.experiment.thyme.static import TH1, TH2
from nearcast.experiment.thyme.sweep import SWEEP
from nearcast.experiment.thyme.unstable import TH4
from nearcast.experiment.thyme.venue import replaceable
from nearcast.model.time import MICROSECONDS
from nearcast.runtime.simulation.radio.modulation import success_probability


def _thing(name: str, at: float, withdrawn: float | None = None) -> Thing:
    metadata = Metadata(ObjectKey("a", name), ("x",), round(at * MICROSECONDS), 1, b"")
    return Thing(metadata, None if withdrawn is None else round(withdrawn * MICROSECONDS))


def test_due_is_what_the_definition_says_without_what_is_a_matter_of_seconds() -> None:
    book = Book()
    for thing in (_thing("early", 10), _thing("gone", 20, 50), _thing("late", 200), _thing("closely", 20, 101)):
        book.things[thing.metadata.key] = thing
    second = MICROSECONDS
    book.wishes.append(Wish("b", "x", None, 100 * second, None, {ObjectKey("a", "late"): 201 * second}))
    book.wishes.append(
        Wish("b", "x", 100 * second, 100 * second, 150 * second, {ObjectKey("a", "early"): 130 * second})
    )
    book.wishes.append(Wish("c", "x", None, 100 * second))
    found = book.numbers(["b"])
    assert 5 * second == MARGIN
    assert found["notification due"] == 2  # early and late, of the first wish
    assert found["notification success"] == 0.5
    assert found["notification extra"] == 1
    assert found["notification latency"] == found["notification latency max"] == 1.0


def test_the_own_absence_of_a_subscriber_is_no_latency() -> None:
    book, second = Book(), MICROSECONDS
    thing = _thing("goal", 100)
    book.things[thing.metadata.key] = thing
    book.wishes.append(Wish("off", "x", None, 10 * second, None, {thing.metadata.key: 203 * second}))
    book.wishes.append(Wish("on", "x", None, 10 * second, None, {thing.metadata.key: 101 * second}))
    book.goes("off", 90 * second)
    book.returns("off", 200 * second)
    book.goes("on", 150 * second)
    found = book.numbers(["off"])
    assert found["notification latency max"] == 3.0
    assert found["notification latency"] == 2.0


@given(
    st.lists(st.tuples(st.floats(0, 199), st.floats(0, 79)), min_size=1, max_size=40), st.randoms(use_true_random=False)
)
def test_whoever_goes_leaves_no_cell_empty(where: list[tuple[float, float]], random: Random) -> None:
    candidates = random.sample(range(len(where)), len(where))
    going = replaceable(candidates, where)
    cells = {(int(x // 40), int(y // 40)) for x, y in where}
    left = [at for node, at in enumerate(where) if node not in going]
    assert {(int(x // 40), int(y // 40)) for x, y in left} == cells
    assert len(left) == len(cells)  # and everybody else may go
    assert going == [node for node in candidates if node in going]


@pytest.mark.parametrize("failing", [0.0, 0.4])
def test_a_small_crowd_is_measured_twice_alike(failing: float) -> None:
    found = evaluated(1, mechanism="PL/SG", nodes=16, share=0.1, failing=failing)
    assert found == evaluated(1, mechanism="PL/SG", nodes=16, share=0.1, failing=failing)
    assert found["publish success"] == 1.0
    assert found["notification extra"] == 0
    assert 0 < found["control bytes"] < found["bytes sent"]
    assert 0 <= found["bytes forwarded"] < found["bytes flooded"] < found["bytes sent"]
    if not failing:
        assert found["notification success"] > 0.9


def test_who_walks_changes_what_is_sent() -> None:
    standing, walking = (evaluated(1, mechanism="PL/SG", nodes=16, share=0.1, speed=speed) for speed in (0.0, 2.5))
    assert standing != walking


def test_frames_that_get_lost_are_lost_to_applications() -> None:
    all_came, some_lost, nothing = (
        evaluated(1, mechanism=PL_SG, nodes=16, share=0.2, growth=0.3, loss=loss) for loss in (0.0, 0.2, 1.0)
    )
    assert all_came["notification success"] == 1.0
    assert 0.3 < some_lost["notification success"] < 1.0
    assert nothing["notification success"] < 0.3  # of own objects only
    assert nothing["download hops"] == 0.0


def test_lost_broadcasts_take_no_unicast_away() -> None:
    found = evaluated(1, mechanism=PL_SG, nodes=16, share=0.2, growth=0.3, broadcast_loss=1.0)
    nothing = evaluated(1, mechanism=PL_SG, nodes=16, share=0.2, growth=0.3, loss=1.0)
    # Nobody hears of anybody: no route is known, so only what is one's own arrives, and no frame is ever sent to one host.
    assert found["notification success"] == nothing["notification success"]
    all_came, unicasts_lost = (
        evaluated(1, mechanism=PL_SG, nodes=16, share=0.2, growth=0.3, loss=loss, broadcast_loss=0.0)
        for loss in (0.0, 1.0)
    )
    assert all_came["notification success"] == 1.0
    assert unicasts_lost["control bytes"] > 2 * nothing["control bytes"], (
        "tables are broadcasts: hosts know of each other"
    )
    assert unicasts_lost["notification success"] < 0.3


def test_without_skipped_cells_more_is_forwarded() -> None:
    ours, papers = (evaluated(1, mechanism=DCS, nodes=36, share=0.1, skip=skip) for skip in (True, False))
    assert papers["bytes forwarded"] > 1.1 * ours["bytes forwarded"]
    assert 1.0 <= ours["download hops"] <= papers["download hops"]


def test_more_kinds_of_tags_bring_fewer_notifications() -> None:
    few, many = (evaluated(1, mechanism=PL_SG, nodes=16, share=0.2, growth=growth) for growth in (0.3, 0.9))
    assert few["notification due"] > 2 * many["notification due"]


def test_the_radio_reaches_as_far_as_the_paper_says() -> None:
    def arrives(metres: float) -> float:
        ratio = 10.0 ** ((PROFILE.power_at(metres) - PROFILE.noise_dbm) / 10.0)
        return success_probability(PROFILE.family, PROFILE.data_rate, ratio, 8 * 150)

    assert arrives(RANGE) > 0.95
    assert arrives(RANGE + 20) < 0.01


def test_figures_give_confidence_intervals_over_the_seeds() -> None:
    drawing = next(it for it in TH4.drawings if it.name == "operations-dcs")
    seeds: list[Outcome] = [
        {run: computed({"publish success": value, "download success": 1.0}) for run in drawing.runs}
        for value in (0.7, 0.8, 0.9)
    ]
    table = data_of(drawing.draw(seeds))
    assert table.columns == ("series", "share of nodes that fail", "share that succeeded", "95 % confidence, ±")
    (first, *_) = table.rows
    assert first[:2] == ("publish", 0.0)
    assert first[2] == pytest.approx(0.8)
    assert first[3] == pytest.approx(4.303 * 0.1 / 3**0.5, abs=1e-4)
    alone = data_of(drawing.draw(seeds[:1]))
    assert alone.rows[0][3] is None


@campaign
@pytest.mark.parametrize("mechanism", [PL_SG, DCS])
def test_196_nodes_and_720_seconds_take_less_than_five_minutes(mechanism: str) -> None:
    evaluated(1, mechanism=mechanism, nodes=16, share=0.1)  # compiles
    start = time.process_time()
    found = evaluated(1, mechanism=mechanism, nodes=196)
    assert time.process_time() - start < 300
    assert found["notification success"] > 0.94
    assert found["download success"] > 0.94


def test_an_operation_of_which_there_is_none_has_not_failed() -> None:
    outcome: Outcome = {"a": computed({"publish success": 0.9}), "b": computed({"publish success": 0.8})}
    assert worst(["a", "b"], "publish")(outcome) == 0.8
    assert worst(["a", "b"], "unsubscribe")(outcome) == 1.0


def test_what_is_usual_in_the_sweep_is_the_run_of_th1() -> None:
    of = {run.digest: run.name for run in TH1.computed(False)}
    usual = {run.name: of[run.digest] for run in SWEEP.computed(False) if run.digest in of}
    assert usual == {
        "PL/SG-period-15": "PL/SG-196",
        "DCS-beacon-2": "DCS-196",
        "PL/SG-growth-0.8": "PL/SG-196",
        "DCS-growth-0.8": "DCS-196",
    }


def test_experiments_run_with_real_posts(tmp_path: Path) -> None:
    """Whose publications they are, and when; another log under that name is another run."""
    log = tmp_path / "posts.jsonl"

    def write(each: int) -> None:
        posts = [
            {
                "time": 60 * number + user,
                "user": f"u{user}",
                "id": f"{number}-{user}",
                "tags": ['a "tag"', f"t{number}"],
            }
            for user in range(40)
            for number in range(each)
        ]
        log.write_text("\n".join(json.dumps(post) for post in posts))

    def runs() -> list[Computed]:
        return list(with_posts(TH2, log).computed(True))

    write(2)
    first = runs()
    assert [run.name for run in first] == [run.name for run in TH2.computed(True)]
    write(3)
    assert not {run.digest for run in first} & {run.digest for run in runs()}
    found = evaluated(1, mechanism="PL/SG", nodes=16, posts=str(log))
    assert found["publish asked"] == 16 * 3, "those of the most active users, one for each node"
    assert found["notification due"] > 100
    assert found["notification success"] > 0.94


def test_only_experiments_that_publish_posts_take_them_and_only_such_as_are_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="publishes no posts"):
        with_posts(next(each for each in EXPERIMENTS if not each.computed(True)), tmp_path)
    with pytest.raises(InvalidInput, match="cannot be read"):
        with_posts(TH2, tmp_path / "none")
