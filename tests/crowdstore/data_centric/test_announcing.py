"""Whoever has downloaded an object says so where its metadata is: once for several, without an answer, and not in vain."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from tests.crowdstore.crowd import Crowd, grid
from tests.crowdstore.data_centric.venue import JOINED, dcs, storage

from nearcast.crowdstore.data_centric.entries import Indexed
from nearcast.crowdstore.data_centric.messages import Replicated
from nearcast.crowdstore.geographic.grid import Cell
from nearcast.crowdstore.geographic.messages import Packet, Told
from nearcast.runtime.messages import kind_in
from nearcast.runtime.ports import Sending
from nearcast.runtime.simulation.disc import DiscNetwork
from nearcast.runtime.simulation.network import Parcel


class Tapped(DiscNetwork):
    """Counts what is said between cells, by kind and by who said it first."""

    said: ClassVar[Counter[tuple[str, str]]] = Counter()

    def transmit(self, parcel: Parcel) -> Sending:
        message = parcel.message
        if isinstance(message, Packet | Told) and message.source == parcel.sender.address:
            self.said[str(kind_in(message.payload)), message.source] += 1
        return super().transmit(parcel)


def _crowd() -> Crowd:
    Tapped.said = Counter()
    crowd = Crowd(grid(4, 3), dcs(4, 3, gather=5.0), network=Tapped)
    crowd.run(JOINED)
    return crowd


def _replicas(crowd: Crowd, owner: str, name: str) -> set[str]:
    """Who is in the list of an object, wherever its metadata is kept."""
    found: set[str] = set()
    for host in crowd.stores:
        for entry in storage(crowd, host).desk.state.entries.values():
            if isinstance(entry, Indexed) and (entry.key.owner, entry.key.name) == (owner, name):
                found |= {place.node for place in entry.item.replicas}
    return found


def test_copies_are_listed_and_told_together_and_nobody_answers() -> None:
    crowd = _crowd()
    objects = [crowd.publish("n0", f"o{number}", "x") for number in range(3)]
    crowd.run(5)
    before = Tapped.said["crowd-answered", "n0"]
    answered = sum(count for (kind, _), count in Tapped.said.items() if kind == "crowd-answered")
    home = storage(crowd, "n0").desk.grid.cell_of("x")
    reader = next(host for host in crowd.stores if host != "n0" and storage(crowd, host).desk.router.cell != home)
    crowd.subscribe(reader, "x")
    crowd.run(5)
    for metadata in objects:
        crowd.download(reader, metadata)
    crowd.run(4)
    assert [outcome.ok for kind, outcome in crowd.heard.outcomes if kind == "download"] == [True] * 3
    assert reader not in _replicas(crowd, "n0", "o0")
    crowd.run(10)
    for number in range(3):
        assert reader in _replicas(crowd, "n0", f"o{number}")
    assert Tapped.said["crowd-replicated", reader] == 1
    assert Tapped.said["crowd-answered", "n0"] == before
    assert sum(count for (kind, _), count in Tapped.said.items() if kind == "crowd-answered") == answered


def test_where_a_copy_is_known_another_one_in_the_same_cell_is_no_news() -> None:
    crowd = Crowd([(10.0, 10.0), (30.0, 30.0), (100.0, 20.0)], dcs(3, 1, gather=5.0), network=Tapped)
    Tapped.said = Counter()
    crowd.run(JOINED)
    assert storage(crowd, "n0").desk.router.cell == storage(crowd, "n1").desk.router.cell == Cell(0, 0)
    metadata = crowd.publish("n0", "o", "x")
    crowd.subscribe("n1", "x")
    crowd.run(5)
    crowd.stores["n1"].nucleus.held.clear()
    crowd.download("n1", metadata)
    crowd.run(15)
    assert [outcome.ok for kind, outcome in crowd.heard.outcomes if kind == "download"] == [True]
    assert Tapped.said["crowd-replicated", "n1"] == 0


def test_of_others_copies_nobody_may_speak() -> None:
    crowd = _crowd()
    crowd.publish("n0", "o", "x")
    crowd.run(5)
    desk = storage(crowd, "n5").desk
    key = next(iter(crowd.things))
    desk.to_cells([desk.grid.cell_of("x")], Replicated((key,), "n7", 0, 0, desk.now()))
    crowd.run(2)
    assert _replicas(crowd, "n0", "o") == {"n0"}
    desk.to_cells([desk.grid.cell_of("x")], Replicated((key,), "n5", 0, 0, desk.now()))
    crowd.run(2)
    assert _replicas(crowd, "n0", "o") == {"n0", "n5"}
