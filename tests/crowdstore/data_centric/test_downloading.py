"""Objects from whoever has them, the nearest first, in the end from the cell where all members should (THYME 5.5)."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.crowdstore.crowd import Crowd
from tests.crowdstore.data_centric.samples import metadata
from tests.crowdstore.data_centric.venue import JOINED, cell_of, dcs, in_cell, storage, tag_at, walk
from tests.crowdstore.lossy import lossy
from tests.effort import examples

from nearcast.crowdstore.chunks import CHUNK
from nearcast.crowdstore.data_centric import copies
from nearcast.crowdstore.data_centric.downloading import sources_of
from nearcast.crowdstore.data_centric.entries import Item, Place
from nearcast.crowdstore.data_centric.messages import Fetched, Lacking
from nearcast.crowdstore.geographic.grid import Cell
from nearcast.crowdstore.geographic.interface import Destination
from nearcast.crowdstore.objects import Metadata, ObjectKey, Publication
from nearcast.crowdstore.storage import Failure, Outcome


def _row(columns: int = 5, *, remembering: bool = False, **parameters: float) -> Crowd:
    """One host in each cell of a row; n5 beside the first."""
    places = [in_cell(column, 0) for column in range(columns)]
    crowd = Crowd([*places, in_cell(0, 0, 1)], dcs(columns, 1, **parameters), remembering=remembering)
    crowd.run(JOINED)
    return crowd


def _downloads(crowd: Crowd) -> list[Outcome]:
    return [outcome for what, outcome in crowd.heard.outcomes if what == "download"]


def _served(crowd: Crowd) -> dict[str, int]:
    served = {name: storage(crowd, name).statistics().served for name in crowd.stores}
    return {name: count for name, count in served.items() if count}


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from("pqr")), max_size=8), st.integers(1, 5), st.integers(0, 4))
def test_the_nearest_copies_come_first_and_the_active_cell_last(
    places: list[tuple[int, str]], tries: int, active: int
) -> None:
    desk = storage(_ROW, "n2").desk
    item = Item(metadata("n0", "x", ("t",)), active, 0).with_replicas(
        [Place(at, node, column, 0) for at, (column, node) in enumerate(places)]
    )
    found = sources_of(item, desk, tries)
    assert len(found) == tries
    assert found[-1] == Destination(Cell(active, 0)) or found.count(Destination(Cell(active, 0))) == 1
    distances = [abs(source.cell.column - 2) for source in found if source.node is not None]
    assert distances == sorted(distances)
    assert Destination(Cell(active, 0)) in found


_ROW = _row()


@examples(6)
@given(st.integers(0, 40 * CHUNK), st.randoms(use_true_random=False))
def test_everybody_gets_what_was_published(size: int, random: Random) -> None:
    crowd = _row()
    content = random.randbytes(size)
    made = crowd.publish("n0", "x", "t", content=content)
    crowd.run(5)
    for node in range(6):
        crowd.download(f"n{node}", made)
    crowd.run(60)
    assert [outcome.content for outcome in _downloads(crowd)] == [content] * 6
    # The other member of the publisher's cell had it all the time.
    assert crowd.stores["n5"].nucleus.held[made.key].content == content


def test_a_nearer_copy_is_asked_before_the_publisher() -> None:
    crowd = _row()
    made = crowd.publish("n0", "x", "t")
    crowd.subscribe("n4", "t")
    crowd.run(5)
    crowd.download("n3", made)
    crowd.run(25)
    assert set(_served(crowd)) <= {"n0", "n5"}
    before = _served(crowd)
    crowd.subscribe("n4", "t")  # hears of the new copy with the past
    crowd.run(5)
    crowd.download("n4", made)
    crowd.run(5)
    assert [outcome.ok for outcome in _downloads(crowd)] == [True, True]
    assert _served(crowd) == before | {"n3": 1}


def test_one_member_of_many_that_has_it_is_found() -> None:
    """As long as the others have not got it yet: the acting member passes what it is asked for to one after the other."""
    crowd = Crowd([in_cell(0, 0, number) for number in range(5)] + [in_cell(1, 0)], dcs(2, 1))
    crowd.run(JOINED)
    made = [crowd.publish("n0", f"{number}", tag_at(crowd, 1)) for number in range(12)]
    crowd.run(5)
    crowd.world.hosts["n0"].fail()
    crowd.run(10)
    for name in ("n1", "n2", "n4"):
        storage(crowd, name)._copies._missed.update({metadata.key: 4 for metadata in made})  # nor do they get it now
        crowd.stores[name].nucleus.held.clear()
    for metadata_ in made:
        crowd.download("n5", metadata_)
    crowd.run(8)
    assert [outcome.ok for outcome in _downloads(crowd)] == [True] * 12


def test_who_does_not_have_it_says_so_and_the_next_is_asked() -> None:
    crowd = _row()
    made = crowd.publish("n0", "x", "t")
    crowd.run(5)
    crowd.download("n3", made)
    crowd.run(25)
    del crowd.stores["n3"].nucleus.held[made.key]
    crowd.subscribe("n4", "t")
    crowd.run(5)
    before = crowd.simulation.now()
    crowd.download("n4", made)
    while len(_downloads(crowd)) < 2:
        crowd.run(0.05)
    assert _downloads(crowd)[-1].ok
    assert crowd.simulation.now() - before < 1_000_000, "nobody has kept silent"


def test_the_publisher_has_failed_and_its_cell_still_has_it() -> None:
    crowd = _row()
    made = crowd.publish("n0", "x", "t", content=bytes(5_000))
    crowd.run(5)
    crowd.world.hosts["n0"].fail()
    crowd.run(25)
    crowd.download("n3", made)
    crowd.run(20)
    assert [outcome.content for outcome in _downloads(crowd)] == [bytes(5_000)]


def test_the_last_copy_goes_with_the_last_member_and_is_still_found() -> None:
    crowd = _row()
    made = crowd.publish("n0", "x", "t")
    crowd.run(5)
    crowd.world.hosts["n0"].fail()
    crowd.run(10)
    walk(crowd, "n5", 2)  # the only one that has it
    crowd.run(30)
    assert cell_of(crowd, "n5") == Cell(2, 0)
    crowd.download("n3", made)
    crowd.run(20)
    assert [outcome.content for outcome in _downloads(crowd)] == [b"content"]


def test_nobody_has_it() -> None:
    crowd = _row(tries=2)
    made = crowd.publish("n0", "x", "t")
    crowd.run(5)
    key = crowd.subscribe("n3", "t")
    crowd.run(5)
    assert crowd.heard.notified == [(key, made.key)]
    crowd.unpublish("n0", "x")
    crowd.run(5)
    crowd.download("n3", made)  # knows where it was
    crowd.download("n2", made)  # does not
    crowd.run(20)
    assert [outcome.failure for outcome in _downloads(crowd)] == [Failure.NOT_FOUND, Failure.NOT_FOUND]
    made = crowd.publish("n0", "y", "t")
    crowd.run(5)
    for name in ("n0", "n5"):
        crowd.world.hosts[name].fail()
    crowd.run(1)
    crowd.download("n3", made)
    crowd.run(30)
    assert _downloads(crowd)[-1].failure is Failure.TIMED_OUT


def test_what_was_unpublished_is_still_with_those_who_downloaded_it() -> None:
    crowd = _row()
    made = crowd.publish("n0", "x", "t")
    crowd.run(5)
    crowd.download("n3", made)
    crowd.run(25)
    crowd.unpublish("n0", "x")
    crowd.run(5)
    assert made.key not in crowd.stores["n5"].nucleus.held
    assert made.key in crowd.stores["n3"].nucleus.held


def test_a_liar_that_sends_something_else_does_not_keep_anybody_from_getting_it() -> None:
    crowd = _row()
    made = crowd.publish("n0", "x", "t")
    crowd.run(5)
    crowd.download("n3", made)
    crowd.run(25)
    crowd.stores["n3"].nucleus.held[made.key] = Publication(made, b"CONTENT")
    crowd.subscribe("n4", "t")
    crowd.run(5)
    crowd.download("n4", made)
    crowd.run(20)
    assert _downloads(crowd)[-1].content == b"content"
    assert _served(crowd)["n3"] == 1


def test_answers_of_those_who_were_not_asked_count_for_nothing() -> None:
    crowd = _row()
    made = crowd.publish("n0", "x", "t")
    crowd.run(5)
    there = storage(crowd, "n3")
    got: list[bytes | None] = []
    there._downloading.begin(
        made, [Destination(Cell(1, 0), "nobody"), Destination(Cell(0, 0))], lambda c, _: got.append(c)
    )
    number = there._operations._last
    for message in (Lacking(number), Fetched(number, 0, b"CONTENT")):
        there._receive("liar", message)
    download = there._downloading._open[number]
    assert download.at == Destination(Cell(1, 0), "nobody")
    assert not download.assembly.size
    crowd.run(25)
    assert got == [b"content"]


@pytest.mark.parametrize("share", [0.1, 0.2])
def test_large_objects_come_whole_although_much_is_lost(share: float) -> None:
    places = [in_cell(column, 0, number) for column in range(3) for number in range(2)]
    crowd = Crowd(places, dcs(3, 1, tries=10), network=lossy(share))
    crowd.run(60)
    content = Random(1).randbytes(120 * CHUNK)
    made = crowd.publish("n0", "x", "t", content=content)
    crowd.run(60)
    crowd.download("n5", made)
    crowd.run(400)
    assert [outcome.content for outcome in _downloads(crowd)] == [content]


def test_who_joins_gets_copies_of_all_that_its_cell_keeps_some_at_a_time() -> None:
    crowd = _row()
    made = [crowd.publish("n0", f"{number}", "t", content=bytes(3_000)) for number in range(20)]
    crowd.run(25)
    walk(crowd, "n1", 0, number=2)
    most = 0
    for _ in range(300):
        crowd.run(0.1)
        most = max(most, len(storage(crowd, "n1")._copies._copying))
    assert 0 < most <= copies.COPYING
    crowd.run(30)
    assert all(each.key in crowd.stores["n1"].nucleus.held for each in made)


def test_copies_that_could_not_be_had_are_asked_for_again() -> None:
    crowd = _row()
    made = crowd.publish("n0", "x", "t")
    crowd.run(5)
    there = storage(crowd, "n5")
    del crowd.stores["n5"].nucleus.held[made.key]
    own = crowd.stores["n0"].nucleus.published.pop(made.key)
    crowd.run(15)
    assert made.key not in crowd.stores["n5"].nucleus.held
    crowd.stores["n0"].nucleus.published[made.key] = own
    crowd.run(15)
    assert made.key in crowd.stores["n5"].nucleus.held
    # And what nobody has is not asked for for ever.
    del crowd.stores["n5"].nucleus.held[made.key], crowd.stores["n0"].nucleus.published[made.key]
    crowd.run(100)
    before = there._operations._last
    crowd.run(100)
    assert there._operations._last == before


def test_there_is_room_for_so_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "ROOM", 10_000)
    crowd = _row()
    for number in range(5):
        crowd.publish("n0", f"{number}", "t", content=bytes(3_000))
        crowd.run(5)
    crowd.run(30)
    assert sum(len(each.content) for each in crowd.stores["n5"].nucleus.held.values()) == 9_000
    crowd.unpublish("n0", "0")
    crowd.run(30)
    assert len(crowd.stores["n5"].nucleus.held) == 3


def test_there_is_room_for_so_much_of_what_a_host_has_downloaded_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "ROOM", 10_000)
    crowd = _row()
    sizes = [3_000, 3_000, 3_000, 3_000, 11_000]
    for number, size in enumerate(sizes):
        made = crowd.publish("n0", f"{number}", "t", content=bytes(size))
        crowd.run(5)
        crowd.download("n2", made)
        crowd.run(5)
        assert _downloads(crowd)[-1] == Outcome(content=bytes(size)), "whether there is room for it or not"
    assert [key.name for key in crowd.stores["n2"].nucleus.held] == ["1", "2", "3"]
    crowd.download("n4", crowd.things[ObjectKey("n0", "0")].metadata)
    crowd.run(10)
    assert _downloads(crowd)[-1].ok, "from somebody else"


def test_metadata_from_elsewhere_that_nobody_knows() -> None:
    crowd = _row(tries=2)
    crowd.download("n1", metadata("n0", "never", ("t",)))
    crowd.download("n1", Metadata(metadata("n0", "x", ()).key, (), 0, 1, bytes(16)))
    crowd.run(25)
    assert [outcome.failure for outcome in _downloads(crowd)] == [Failure.NOT_FOUND] * 2


def test_where_it_is_can_be_asked() -> None:
    crowd = _row()
    made = crowd.publish("n0", "x", tag_at(crowd, 3), tag_at(crowd, 1))
    crowd.run(5)
    crowd.download("n2", made)  # never subscribed
    crowd.run(5)
    assert _downloads(crowd)[-1].content == b"content"


def test_where_it_is_can_be_asked_of_the_cells_of_all_its_tags() -> None:
    crowd = _row(tries=2)
    tags = tag_at(crowd, 3), tag_at(crowd, 1)
    made = crowd.publish("n0", "x", *tags)
    crowd.run(5)
    first = storage(crowd, "n0").desk.grid.cell_of(made.tags[0])
    crowd.world.hosts[f"n{first.column}"].fail()  # the only one of that cell
    crowd.run(20)
    crowd.download("n2", made)
    crowd.download("n2", metadata("n0", "never", made.tags))
    crowd.run(30)
    assert _downloads(crowd) == [Outcome(Failure.NOT_FOUND), Outcome(content=b"content")]


def test_a_large_object_is_told_to_its_cell_little_by_little() -> None:
    """Whoever hears it meanwhile does not ask for it, and whatever else is to be said goes between."""
    crowd = _row()
    film = crowd.publish("n0", "film", "t", content=bytes(range(256)) * 1_000 * 4)
    crowd.run(0.5)
    assert storage(crowd, "n0").desk.router.statistics().tally.told < 200
    other = crowd.publish("n0", "photo", "t")
    crowd.run(0.5)
    assert [what for what, outcome in crowd.heard.outcomes if outcome.ok] == ["publish", "publish"]
    assert {*crowd.stores["n5"].nucleus.held} == {other.key}
    crowd.run(30)
    assert {*crowd.stores["n5"].nucleus.held} == {other.key, film.key}
    assert not _served(crowd), "nobody had to be asked for it"


def test_many_large_objects_are_told_one_after_the_other() -> None:
    """As after an exchange, when a host tells all that it has: else members would have begun more of them than they remember."""
    crowd = _row()
    for number in range(copies.ASSEMBLING + 8):
        crowd.publish("n0", f"{number}", "t", content=bytes(20_000))
    crowd.run(1)
    assert storage(crowd, "n0").desk.router.statistics().tally.told < 250
    assert len(storage(crowd, "n5")._copies._assembling) == 1
    crowd.run(9)
    assert len(crowd.stores["n5"].nucleus.held) == copies.ASSEMBLING + 8


def test_of_a_large_object_that_is_withdrawn_nothing_more_is_told() -> None:
    crowd = _row()
    crowd.publish("n0", "film", "t", content=bytes(1_000_000))
    crowd.run(0.5)
    crowd.unpublish("n0", "film")
    crowd.run(1)
    told = storage(crowd, "n0").desk.router.statistics().tally.told
    crowd.run(8)
    assert storage(crowd, "n0").desk.router.statistics().tally.told < told + 5
    assert not crowd.stores["n5"].nucleus.held


def test_who_goes_away_in_the_middle_of_a_large_object_tells_its_cell_the_rest_from_afar() -> None:
    crowd = _row()
    film = crowd.publish("n0", "film", "t", content=bytes(1_000_000))
    crowd.run(1)
    walk(crowd, "n0", 4)
    crowd.run(30)
    assert {name for name, store in crowd.stores.items() if film.key in store.nucleus.held} == {"n5"}
    crowd.world.hosts["n0"].fail()
    crowd.run(20)
    crowd.download("n2", film)
    crowd.run(30)
    assert _downloads(crowd)[-1].ok


def test_copies_in_the_cell_of_an_earlier_life_go_with_their_object() -> None:
    crowd = _row(remembering=True)
    tag = tag_at(crowd, 4)
    crowd.publish("n0", "x", tag)
    crowd.run(5)
    crowd.world.hosts["n0"].fail()
    crowd.run(20)
    walk(crowd, "n0", 2)
    crowd.world.hosts["n0"].join()
    crowd.run(40)  # it has published it again, where it is now
    assert {name for name, store in crowd.stores.items() if store.nucleus.held} == {"n2", "n5"}
    crowd.unpublish("n0", "x")
    crowd.run(20)
    assert not any(store.nucleus.held for store in crowd.stores.values())


def test_copies_go_when_somebody_withdraws_it_who_does_not_know_of_them() -> None:
    crowd = _row()
    made = crowd.publish("n0", "x", tag_at(crowd, 4))
    crowd.run(5)
    crowd.world.hosts["n0"].fail()
    crowd.run(20)
    walk(crowd, "n0", 2)
    crowd.world.hosts["n0"].join()  # and has forgotten everything
    crowd.run(40)
    assert crowd.stores["n5"].nucleus.held
    crowd.stores["n0"].withdraw(made)
    crowd.run(20)
    assert not crowd.stores["n5"].nucleus.held
