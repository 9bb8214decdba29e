"""The football final: as many operations as the paper's rates give, and logs that are read or refused."""

from __future__ import annotations

import math
from pathlib import Path
from random import Random

import pytest

from nearcast.errors import InvalidInput
from nearcast.experiment.thyme.logs import read_posts
from nearcast.experiment.thyme.moving import Walks, cell
from nearcast.experiment.thyme.posts import BREADTH, GROWTH, Tags, Zipf, match_posts, popular_tags
from nearcast.experiment.thyme.venue import SIZES, area, connected, places
from nearcast.experiment.thyme.workload import BREAK, FINAL_WHISTLE, Kind, Operation, operations


def _match(nodes: int = 400, seed: int = 1) -> list[Operation]:
    random = Random(seed)
    return operations(match_posts(nodes, random), nodes, random)


def _near(count: int, expected: float) -> bool:
    """Within four deviations of a Poisson number."""
    return abs(count - expected) <= 4 * math.sqrt(expected)


def test_numbers_are_those_of_the_rates() -> None:
    done = _match()
    of = {kind: [each for each in done if each.kind is kind] for kind in Kind}
    assert len(of[Kind.PUBLISH]) == 18_180
    first = [each for each in of[Kind.SUBSCRIBE] if each.at < 200 * BREAK]
    assert _near(len(first), 400 * 3 * BREAK)
    assert _near(len(of[Kind.SUBSCRIBE]) - len(first), 400 * (3 - BREAK))
    assert _near(sum(each.past for each in of[Kind.SUBSCRIBE]), 0.6 * len(of[Kind.SUBSCRIBE]))
    assert _near(len(of[Kind.UNPUBLISH]), 400 * 0.5 * (FINAL_WHISTLE - BREAK))
    assert 0 < len(of[Kind.UNSUBSCRIBE]) <= 400 * 0.2 * (FINAL_WHISTLE - BREAK) + 32
    half = [each.at for each in (*of[Kind.UNPUBLISH], *of[Kind.UNSUBSCRIBE])]
    assert 200 * BREAK <= min(half) <= max(half) < 200 * FINAL_WHISTLE
    assert [each.at for each in done] == sorted(each.at for each in done)


def test_only_what_is_there_is_taken_back_and_only_once() -> None:
    there: set[tuple[int, str, bool]] = set()
    for each in _match(64):
        about = each.node, each.name, each.kind in (Kind.PUBLISH, Kind.UNPUBLISH)
        if each.kind in (Kind.PUBLISH, Kind.SUBSCRIBE):
            assert about not in there
            there.add(about)
        else:
            there.remove(about)


def test_subscriptions_are_on_the_most_popular_tags() -> None:
    random = Random(2)
    posts = match_posts(36, random)
    popular = popular_tags(posts, 0.6)
    asked = {each.tags for each in operations(posts, 36, random) if each.kind is Kind.SUBSCRIBE}
    assert asked <= {(tag,) for tag in popular}
    assert len(popular) == math.ceil(0.6 * len({tag for post in posts for tag in post.tags}))


def test_ranks_come_by_their_shares() -> None:
    law, random = Zipf(10), Random(3)
    drawn = [law.draw(random) for _ in range(20_000)]
    for rank in range(10):
        assert law.share(rank) == pytest.approx(law.share(0) / (rank + 1))
        assert _near(drawn.count(rank), 20_000 * law.share(rank))


@pytest.mark.parametrize("growth", [0.5, GROWTH])
def test_tags_grow_as_a_power_of_their_uses(growth: float) -> None:
    """The mean number of different ones has a closed form (Pitman, Combinatorial stochastic processes, 2006, 3.13)."""
    uses = (1_000, 8_000)
    counts: dict[int, list[int]] = {many: [] for many in uses}
    for seed in range(20):
        tags, random = Tags(growth), Random(seed)
        for number in range(1, max(uses) + 1):
            tags.draw(random)
            if number in counts:
                counts[number].append(len(tags))
    for many, found in counts.items():
        rising = [
            math.lgamma(at + many) - math.lgamma(at) for at in (BREADTH + growth, BREADTH)
        ]  # of the rising factorials
        expected = BREADTH / growth * (math.exp(rising[0] - rising[1]) - 1.0)
        deviation = math.sqrt(sum((count - expected) ** 2 for count in found) / len(found))
        assert abs(sum(found) / len(found) - expected) < 4 * deviation / math.sqrt(len(found))


def test_most_tags_are_used_once_and_none_twice_in_a_post() -> None:
    posts = match_posts(196, Random(5))
    uses: dict[str, int] = {}
    for post in posts:
        assert len(set(post.tags)) == len(post.tags)
        for tag in post.tags:
            uses[tag] = uses.get(tag, 0) + 1
    once = sum(count == 1 for count in uses.values()) / len(uses)
    assert GROWTH - 0.05 < once < GROWTH + 0.05
    # Fewer different ones than a sample of all tweets has: 7,728 among 16,062 uses.
    assert 0.4 < len(uses) / (7_728 * (sum(uses.values()) / 16_062) ** GROWTH) < 0.8


@pytest.mark.parametrize(("growth", "breadth"), [(1.0, 1.0), (-0.1, 1.0), (0.5, 0.0)])
def test_laws_that_are_none(growth: float, breadth: float) -> None:
    with pytest.raises(InvalidInput):
        Tags(growth, breadth)


def test_posts_come_in_spikes() -> None:
    minutes = [0] * 180
    for post in match_posts(100, Random(4)):
        minutes[int(post.hours * 60)] += 1
    assert max(minutes) > 3 * sum(minutes) / 180


@pytest.mark.parametrize("nodes", SIZES)
def test_areas_have_a_cell_for_two_and_all_are_connected(nodes: int) -> None:
    width, height = area(nodes)
    assert width * height / 1_600 == nodes / 2
    drawn = places(nodes, Random(5))
    assert connected(drawn)
    assert not connected([*drawn, (width + 200.0, height)])


def test_cells_keep_their_population_in_the_papers_way() -> None:
    random = Random(6)
    starts = places(16, random)
    walks = Walks(area(16), starts, 2.5, populated=True)
    inhabited = set(map(cell, starts))
    lives = [walks.life(node, Random(node), 0) for node in range(16)]
    due = [(next(life).until, node) for node, life in enumerate(lives)]
    for _ in range(2_000):
        _, node = min(due)
        due.remove(min(due))
        leg = next(lives[node])
        due.append((leg.until, node))
        assert cell(leg.end) in inhabited
    assert {place for place, count in walks.settled.items() if count > 0} <= inhabited


def test_logs_of_both_forms_are_read_alike(tmp_path: Path) -> None:
    table, lines = tmp_path / "posts.csv", tmp_path / "posts.jsonl"
    table.write_text(
        'time,user,id,text\n0,ada,1,"go #POR"\n3600,bob,2,#FRA #por\n7200,bob,3,nothing\n9000,bob,4,#fra\n'
    )
    lines.write_text(
        '{"time": "2016-07-10T20:00:00Z", "user": "ada", "id": 1, "text": "go #POR"}\n'
        '{"time": "2016-07-10T21:00:00Z", "user": "bob", "id": 2, "text": "#FRA #por"}\n\n'
        '{"time": "2016-07-10T22:30:00Z", "user": "bob", "id": 4, "tags": ["FRA"], "text": "#fra"}\n'
    )
    posts = read_posts(table, 2)
    assert posts == read_posts(lines, 2)
    assert [(post.hours, post.user, post.tags) for post in posts] == [
        (0.0, 1, ("por",)),
        (1.0, 0, ("fra", "por")),
        (2.5, 0, ("fra",)),
    ]
    assert [post.name for post in read_posts(table, 1)] == ["2", "4"]
    assert len(read_posts(table, 2, hours=2.0)) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "line 1 is no JSON"),
        ("[]", "line 1 is no JSON object"),
        ('{"time": 0, "user": "a"}', "line 1 lacks id, text or tags"),
        ('{"time": "noon", "user": "a", "id": 1, "text": "#x"}', "line 1: 'noon'"),
        ('{"time": 0, "user": "a", "id": 1, "tags": "x"}', "tags are a list"),
        ('{"time": 0, "user": "a", "id": 1, "tags": ["x"]}', "of 1 users, fewer than 2"),
    ],
)
def test_what_is_no_log_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "posts.jsonl"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=message):
        read_posts(path, 2)
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_posts(tmp_path / "none", 2)
