"""The index for messages without a place: it finds whom asking everybody finds."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.oracle.strategies import WORLDS, addressing, contexts
from tests.overlay.temporal.test_historical import everybody_is_found, lived, tree
from tests.overlay.temporal.worlds import Town, inside

from nearcast.model.event import Event
from nearcast.model.history import Context
from nearcast.model.predicate import Predicate
from nearcast.model.temporal import TemporalPredicate
from nearcast.model.values import Path
from nearcast.overlay.temporal.archive import Archive, Piece
from nearcast.overlay.temporal.attribute_index import AttributeIndex, Kept, Ring, bucket_of
from nearcast.overlay.temporal.messages import Confirmed, Indexed, IndexQuestion, Question
from nearcast.overlay.temporal.settings import TemporalSettings

HERE = WORLDS[0]
INDEXED = TemporalSettings(indexed=("role", "speed", "transport"), buckets=4, settling=6.0)


class Alone:
    """One router that keeps everything."""

    def __init__(self) -> None:
        self.archive = Archive()
        self.index = AttributeIndex("r", 0, INDEXED, None, self._tell, lambda *_: None, self.archive.pieces)  # type: ignore[arg-type]
        self.index._ring = Ring(["r"])

    def _tell(self, to: str, message: Confirmed, _failed: object) -> None:
        assert to == "r"
        assert isinstance(message, Indexed)
        self.index.hear("r", message)

    def record(self, vid: str, at: int, context: Context | None) -> None:
        self.index.changed(self.archive.record(vid, at, context))


Change = tuple[int, str, Context | None]


@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["1@t", "2@t"]), st.none() | contexts(HERE)), max_size=10),
    addressing(HERE),
)
def test_the_index_knows_whatever_the_archives_know(changes: list[Change], to: Predicate) -> None:
    alone, now = Alone(), 100
    for step, vid, context in changes:
        now += step
        alone.record(vid, now, context)
    event = Event("e", "news", now, to=to)
    keys = alone.index.keys_for(event)
    if keys is None:
        return
    found = [
        span
        for conjunct, key in keys
        if key in alone.index._kept
        for span in alone.index._kept[key].spans(event, conjunct)
    ]
    # Pieces of one identity may lie in several buckets: who unites them does so with those of several nodes as well.
    instants = range(95, now + 5)

    def held(spans: list[object]) -> set[tuple[str, int, int]]:
        return {
            (span.vid, span.conjunct, at)  # type: ignore[attr-defined]
            for span in spans
            for at in instants
            if span.start <= at and (span.end is None or at < span.end)  # type: ignore[attr-defined]
        }

    assert held([*found]) == held([*alone.archive.spans(event)])


TOLD = [(1, 5, None, "x"), (2, 5, 5, "x"), (2, 5, None, "a"), (3, 5, 9, "a"), (3, 9, None, "b"), (4, 9, 12, "b")]


@given(st.permutations(TOLD))
def test_the_newest_word_of_a_piece_counts_in_whatever_order_they_come(
    order: list[tuple[int, int, int | None, str]],
) -> None:
    kept = Kept()
    # What is said together stays together.
    for version in dict.fromkeys(version for version, *_ in order):
        for said, start, end, value in TOLD:
            if said == version:
                kept.put("r", version, Piece("1@t", start, end, {"role": value}))
    (span,) = kept.spans(Event("e", "news", 20, to="role IN ('a', 'b', 'x')"), 0)
    assert (span.start, span.end) == (5, 12)
    assert not kept.spans(Event("e", "news", 20, to="role = 'x'"), 0)
    kept.forget(10)
    (span,) = kept.spans(Event("e", "news", 20, to="role IN ('a', 'b')"), 0)
    assert (span.start, span.end, len(kept), len(kept._rows)) == (9, 12, 1, 1)


def test_what_filters_call_equal_is_in_one_bucket() -> None:
    assert bucket_of(50, 64) == bucket_of(50.0, 64) != bucket_of(51, 64)
    assert bucket_of(0.0, 64) == bucket_of(-0.0, 64)
    assert bucket_of(Path.parse("/v/car"), 64) == bucket_of("/v/car", 64)
    assert bucket_of(10**400, 64).isdigit()


def test_few_keys_have_another_keeper_when_a_router_comes_or_goes() -> None:
    routers, keys = [f"r{number:03}" for number in range(100)], [("a", str(number)) for number in range(2_000)]
    before, after = Ring(routers), Ring(routers[1:])
    moved = {key for key in keys if before.keeper(key) != after.keeper(key)}
    assert moved == {key for key in keys if before.keeper(key) == "r000"}
    share = Counter(before.keeper(key) for key in keys)
    assert len(share) > 80
    assert max(share.values()) < 100


@examples(10)
@given(seed=st.integers(0, 1_000_000))
def test_who_was_there_is_found_by_attributes_alone(seed: int) -> None:
    random = Random(seed)
    settings = TemporalSettings(indexed=("a", "b"), buckets=3, settling=6.0)
    town, instants = lived(random, depth=1, settings=settings)
    everybody_is_found(town, random, instants)
    if random.random() < 0.5:
        town.connect(tree(random, len(town.names)))
        town.run(20)
    everybody_is_found(town, random, instants, first=50)


def indexed_town(size: int) -> Town:
    settings = TemporalSettings(indexed=("role",), settling=3.0)
    town = Town(size, [(number, number // 2) for number in range(1, size)], settings)
    ada = town.person("ada")
    ada.register("me", {"role": "driver", "age": 3})
    ada.go("r003", inside(3))
    town.run(20)
    return town


def sent(town: Town, kind: type[Confirmed]) -> int:
    tag = str(kind.__struct_config__.tag)
    return sum(link.books.get(("sent", tag), (0, 0))[0] for link in town.wires.links.values())


def test_one_question_instead_of_a_broadcast_and_one_message_for_each_change() -> None:
    for size in (6, 24):
        town = indexed_town(size)
        upkeep, asked = sent(town, Indexed), sent(town, Question)
        town.people["ada"].walk(inside(3, 0.3))
        town.run(5)
        # One that says that a piece has ended and another begun: whatever the number of routers.
        assert sent(town, Indexed) - upkeep <= 1
        began = town.now
        town.run(5)
        event = town.event("role = 'driver' AND age > 2", TemporalPredicate("overlaps", began, town.now), name="e")
        town.publish(1, event)
        town.run(20)
        assert town.people["ada"].got == ["e"]
        assert sent(town, Question) == asked
        assert sent(town, IndexQuestion) <= 2
        # What the index cannot tell is asked for everywhere.
        town.publish(1, town.event("age > 2", TemporalPredicate("overlaps", began, town.now), name="f"))
        town.run(20)
        assert town.people["ada"].got == ["e", "f"]
        assert sent(town, Question) - asked == size - 1


def test_pieces_of_a_keeper_that_fails_are_told_to_the_next_one() -> None:
    town = indexed_town(8)
    index = town.temporal["r000"].index
    assert index is not None
    keeper = index._ring.keeper(("role", bucket_of("driver", 16)))
    assert keeper is not None
    began = town.now
    others = [name for name in town.names if name != keeper]
    town.world.hosts[keeper].fail()
    town.names = others
    del town.routers[keeper]
    town.connect([(number, 0) for number in range(1, len(others))])
    town.run(30)
    event = town.event("role = 'driver'", TemporalPredicate("overlaps", began - 1, began), name="e")
    asking = next(number for number, name in enumerate(others) if name != "r003")
    town.publish(asking, event)
    town.run(60)
    statistics = [town.trusted[name].statistics() for name in town.trusted if name != keeper]
    assert sent(town, Question) == 0
    assert keeper == "r000" or sum(each.delivered + each.deposited + each.waiting for each in statistics) == 1
