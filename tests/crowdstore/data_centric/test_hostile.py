"""Whoever says what is wrong, huge, contradictory or not theirs to say stops nobody, fills nothing and takes nobody's objects away."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.crowdstore.crowd import Crowd
from tests.crowdstore.data_centric.anything import messages, values
from tests.crowdstore.data_centric.samples import gone, indexed, kept, metadata, part
from tests.crowdstore.data_centric.venue import JOINED, dcs, storage
from tests.effort import examples

from nearcast.crowdstore.access import Identity
from nearcast.crowdstore.data_centric import copies, state
from nearcast.crowdstore.data_centric.desk import UNFINISHED
from nearcast.crowdstore.data_centric.entries import Entry, Gone, Indexed, Item, Kept, Part
from nearcast.crowdstore.data_centric.messages import (
    KINDS,
    Copy,
    Entries,
    Entrusted,
    Found,
    Notify,
    Operation,
    Publish,
    Relocated,
    Subscribe,
    Unpublish,
)
from nearcast.crowdstore.data_centric.retrieving import KNOWN
from nearcast.crowdstore.geographic.grid import Cell
from nearcast.crowdstore.geographic.interface import Destination
from nearcast.crowdstore.objects import LARGEST, Metadata, ObjectKey, Withdrawal, digest_of
from nearcast.runtime.messages import Message, encoded

PLACES = [(10.0, 20.0), (30.0, 20.0), (60.0, 20.0), (100.0, 20.0)]
ADA, EVE = Identity(b"a" * 32), Identity(b"e" * 32)


def _crowd(**parameters: Any) -> Crowd:
    crowd = Crowd(PLACES, dcs(3, 1, **parameters))
    crowd.run(JOINED)
    return crowd


def _say(crowd: Crowd, host: str, message: Message, source: str = "liar", *, alone: bool = False) -> None:
    """As if the router of that host had brought it from somebody: to its cell, or to it alone."""
    there = storage(crowd, host)
    cell = there.desk.router.cell
    assert cell is not None
    there.arrived(source, Cell(0, 0), Destination(cell, host if alone else None), encoded(message))


def _works(crowd: Crowd) -> None:
    """Publishing, subscribing and downloading are what they were."""
    made = crowd.publish("n3", "fresh", "unheard-of")
    key = crowd.subscribe("n0", "unheard-of")
    crowd.run(20)
    assert (key, made.key) in crowd.heard.notified
    crowd.download("n0", made)
    crowd.run(20)
    assert crowd.heard.outcomes[-1][1].content == b"content"


def _bounded(crowd: Crowd, host: str) -> None:
    there = storage(crowd, host)
    assert len(there.desk._pieces) <= UNFINISHED
    assert len(there.desk.state) <= 2 * state.ENTRIES
    assert len(there._copies._assembling) <= copies.ASSEMBLING
    assert len(there._retrieving._known) <= KNOWN


@examples(25)
@given(
    st.lists(
        st.tuples(
            messages(), st.sampled_from(["n0", "n1", "n3"]), st.sampled_from(["liar", "n0", "n2"]), st.booleans()
        ),
        max_size=25,
    )
)
def test_messages_of_every_kind_with_any_fields_do_no_harm(said: list[tuple[Message, str, str, bool]]) -> None:
    crowd = _crowd()
    crowd.publish("n0", "o", "a", "b")
    crowd.subscribe("n2", "a")
    crowd.run(5)
    for message, host, source, alone in said:
        _say(crowd, host, message, source, alone=alone)
    crowd.run(5)
    for host in ("n0", "n1", "n3"):
        _bounded(crowd, host)
    _works(crowd)
    assert {*crowd.heard.notified} <= crowd.expected()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@examples(8)
@given(data=st.data())
def test_damaged_messages_are_none(kind: Any, data: st.DataObject) -> None:
    crowd = _DAMAGED
    payload = encoded(data.draw(values(kind)))
    cut, flipped = data.draw(st.integers(0, len(payload))), data.draw(st.integers(0, max(0, len(payload) - 1)))
    changed = bytearray(payload)
    if changed:
        changed[flipped] ^= data.draw(st.integers(1, 255))
    there = storage(crowd, "n0")
    for broken in (payload[:cut], bytes(changed), payload + b"x", b""):
        for destination in (Destination(Cell(0, 0)), Destination(Cell(0, 0), "n0")):
            there.arrived("liar", Cell(0, 0), destination, broken)
    crowd.run(1)
    _bounded(crowd, "n0")


_DAMAGED = _crowd()


def test_an_object_of_another_owner_is_neither_published_nor_withdrawn_nor_changed() -> None:
    crowd = _crowd()
    at = crowd.simulation.now()
    signed = ADA.signed(Metadata(ObjectKey(ADA.name, "photo"), ("t",), at, 3, digest_of(b"abc")))
    home = storage(crowd, "n0").desk.grid.cell_of("t")
    host = next(name for name in crowd.stores if storage(crowd, name).desk.router.cell == home)
    owner = storage(crowd, host).desk.router.address
    _say(crowd, host, Publish(1, Item(signed, *home)))
    assert storage(crowd, host).desk.state.indexed(signed.key) is not None
    lies: list[Message] = []
    eves = EVE.withdrawal(signed).proof
    for withdrawal in (
        Withdrawal(signed.key, at),
        Withdrawal(signed.key, at, eves),
        EVE.withdrawal(signed),
        ADA.withdrawal(msgspec.structs.replace(signed, published=at - 1)),  # of another object of that name
    ):
        lies.append(Unpublish(2, withdrawal, at))
        word = Gone(False, signed.key.owner, "photo", at, withdrawal.published, withdrawal.proof)
        lies += [Entrusted(3, (word,)), Entries((word,))]
    for changed in (
        msgspec.structs.replace(signed, tags=("other", "t")),
        msgspec.structs.replace(signed, published=at + 1),
        msgspec.structs.replace(signed, proof=None),
        EVE.signed(signed),
    ):
        lies += [Publish(4, Item(changed, *home)), Entries((Indexed(Item(changed, *home), ("t",)), Kept(changed)))]
        lies.append(Copy(changed, 0, b"abc"))
    before = dict(storage(crowd, host).desk.state.entries)
    for lie in lies:
        _say(crowd, host, lie)
        _say(crowd, host, lie, owner, alone=True)
    after = dict(storage(crowd, host).desk.state.entries)
    after.pop(("g", "o", signed.key.owner, "photo"), None)  # the one that is about another object is remembered
    assert after == before
    assert signed.key not in crowd.stores[host].nucleus.held
    _say(crowd, host, Unpublish(5, ADA.withdrawal(signed), at))
    assert storage(crowd, host).desk.state.indexed(signed.key) is None


def test_who_has_not_been_asked_does_not_move_or_subscribe_others() -> None:
    crowd = _crowd()
    crowd.subscribe("n2", "t")
    crowd.run(5)
    now = crowd.simulation.now()
    home = storage(crowd, "n0").desk.grid.cell_of("t")
    host = next(name for name in crowd.stores if storage(crowd, name).desk.router.cell == home)
    before = dict(storage(crowd, host).desk.state.entries)
    own = next(entry for entry in before.values() if isinstance(entry, Part))
    for message in (
        Relocated(1, "n2", 2, 0, now),
        Relocated(1, "n2", 2, 0, now + 10**15),  # for ever
        Subscribe(2, msgspec.structs.replace(own, column=2, version=now + 1)),
    ):
        _say(crowd, host, message, "liar" if not isinstance(message, Relocated) or message.at == now else "n2")
    assert storage(crowd, host).desk.state.entries == before
    _say(crowd, host, Relocated(1, "n2", 2, 0, now), "n2")
    assert storage(crowd, host).desk.state.entries != before


@pytest.mark.parametrize(
    "entry",
    [
        indexed("x", "long" * 2_000, ("t",), {"t"}),
        indexed("x", "y", (), ()),
        indexed("x", "y", ("t",), {"t", "other"}),
        indexed("x", "y", ("t",), ()),
        kept("x", "y", ()),
        part("x", "y" * 5_000, 0, "t"),
        part("x", "y", 0, "t", version=10**17),
        msgspec.structs.replace(part("x", "y", 0, "t"), column=99),
        msgspec.structs.replace(part("x", "y", 0, "t"), tag="elsewhere"),
        msgspec.structs.replace(gone("x", "y", False, 0), proof=EVE.signed(metadata("x", "y", "t")).proof),
    ],
    ids=lambda entry: type(entry).__name__,
)
def test_entries_that_cannot_be_are_not_kept(entry: Entry) -> None:
    crowd = _DAMAGED
    for message in (Entries((entry,)), Entrusted(1, (entry,))):
        _say(crowd, "n0", message, alone=not isinstance(message, Operation))
    assert entry.identity not in storage(crowd, "n0").desk.state.entries


def test_a_full_member_does_not_say_that_it_has_kept_something(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "ENTRIES", 6)
    crowd = _crowd(tries=2)
    crowd.subscribe("n3", "t")
    crowd.run(5)
    for number in range(12):
        crowd.publish("n0", f"{number}", "t")
    crowd.run(15)
    outcomes = [outcome.ok for what, outcome in crowd.heard.outcomes if what == "publish"]
    kept_there = max(len(storage(crowd, name).desk.state) for name in crowd.stores)
    assert kept_there <= 6
    assert 0 < sum(outcomes) < 12
    assert len(crowd.heard.notified) == sum(outcomes)
    # Something is withdrawn: there is room again.
    for number in range(12):
        crowd.unpublish("n0", f"{number}")
    crowd.run(15)
    crowd.publish("n0", "new", "t")
    crowd.run(5)
    assert crowd.heard.outcomes[-1][1].ok


def test_made_up_answers_fill_nothing() -> None:
    crowd = _crowd()
    key = crowd.subscribe("n3", "t")
    crowd.run(5)
    item = Item(metadata("x", "y", ("t",)), 0, 0)
    for number in range(200):
        _say(crowd, "n3", Found(number, number, 0, key, number, 9, (item,)), alone=True)
        _say(crowd, "n3", Found(number, 0, 0, key, number, 9, (item,)), alone=True)
        _say(crowd, "n3", Notify(Item(metadata("x", "y", ("t",)), 99, 99), (key,)), alone=True)
    assert len(storage(crowd, "n3")._requests._further) <= 1
    assert len(crowd.heard.notified) == 1


def test_what_somebody_says_to_be_huge_takes_no_room_until_it_comes() -> None:
    crowd = _crowd()
    for number in range(100):
        huge = Metadata(ObjectKey("x", f"{number}"), ("t",), 0, LARGEST, bytes(16))
        _say(crowd, "n0", Copy(huge, number, bytes(1_024)))
        _say(crowd, "n0", Entries((Kept(huge),)), alone=True)
    there = storage(crowd, "n0")
    assert sum(each.size for each in there._copies._assembling.values()) <= copies.ASSEMBLING * 1_024
    assert len(there._copies._copying) <= copies.COPYING
    crowd.run(60)
    _works(crowd)
