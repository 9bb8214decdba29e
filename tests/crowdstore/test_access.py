"""Nobody publishes, changes or withdraws under a name that is not theirs, and only readers read."""

from __future__ import annotations

from functools import partial

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.crowdstore import toys
from tests.crowdstore.crowd import HERE, RANGE
from tests.crowdstore.going_over import LOCAL, cells

from nearcast.crowdstore.access import (
    Identity,
    ReadingKey,
    Unreadable,
    genuine,
    genuine_withdrawal,
    opened_summary,
    seal,
    unseal,
)
from nearcast.crowdstore.data_centric.entries import Item, withdrawn
from nearcast.crowdstore.data_centric.mechanism import DataCentricStorage
from nearcast.crowdstore.data_centric.messages import Copy, Entrusted, Publish, Unpublish
from nearcast.crowdstore.objects import Metadata, ObjectKey, Proof, Sealing, Withdrawal, digest_of
from nearcast.crowdstore.service import CrowdStore
from nearcast.crowdstore.storage import Failure, Outcome
from nearcast.errors import InvalidEvent, InvalidInput
from nearcast.model.time import MICROSECONDS
from nearcast.runtime.host import Component
from nearcast.runtime.simulation.disc import DiscNetwork
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.world import World
from nearcast.transition.engine import HostEngine
from nearcast.transition.specification import MechanismSpec

ADA, BOB, EVE = (Identity(bytes([number]) * 32) for number in range(3))
THING = Metadata(ObjectKey(ADA.name, "photo"), ("goal",), 7, 3, digest_of(b"abc"), b"small")


def test_what_the_owner_signed_is_genuine_and_every_change_of_it_is_not() -> None:
    signed = ADA.signed(THING)
    assert genuine(signed)
    for change in (
        {"key": ObjectKey(ADA.name, "other")},
        {"tags": ("goal", "save")},
        {"published": 8},
        {"size": 4},
        {"digest": digest_of(b"abd")},
        {"summary": b"large"},
        {"sealing": Sealing.CONTENT},
        {"proof": None},
    ):
        assert not genuine(msgspec.structs.replace(signed, **change)), change


def test_another_key_cannot_sign_under_a_name_that_proves_itself() -> None:
    assert not genuine(EVE.signed(THING))
    stolen, own = EVE.signed(THING).proof, ADA.signed(THING).proof
    assert stolen is not None
    assert own is not None
    for proof in (
        Proof(own.key, stolen.signature),
        Proof(stolen.key, own.signature),
        Proof(b"", b""),
        Proof(own.key, b""),
    ):
        assert not genuine(msgspec.structs.replace(THING, proof=proof))


def test_under_a_plain_name_nothing_is_proven_and_no_proof_accepted() -> None:
    plain = msgspec.structs.replace(THING, key=ObjectKey("n1", "photo"))
    assert genuine(plain)
    assert not genuine(EVE.signed(plain))


@given(at=st.integers(0, 63), mask=st.integers(1, 255), length=st.integers(0, 63))
def test_a_damaged_or_truncated_signature_is_none(at: int, mask: int, length: int) -> None:
    proof = ADA.signed(THING).proof
    assert proof is not None
    damaged = bytearray(proof.signature)
    damaged[at] ^= mask
    for signature in (bytes(damaged), proof.signature[:length]):
        assert not genuine(msgspec.structs.replace(THING, proof=Proof(proof.key, signature)))


def test_only_the_owner_withdraws_and_only_that_object() -> None:
    signed = ADA.signed(THING)
    said = ADA.withdrawal(signed)
    assert genuine_withdrawal(said)
    assert genuine_withdrawal(said, signed)
    assert not genuine_withdrawal(EVE.withdrawal(signed), signed)
    assert not genuine_withdrawal(Withdrawal(signed.key, signed.published), signed)
    later = ADA.signed(msgspec.structs.replace(THING, published=9))
    assert not genuine_withdrawal(said, later), "a replay for an object of the same name"
    assert not genuine_withdrawal(msgspec.structs.replace(said, published=9), later)
    # What was signed to publish is no signature to withdraw.
    assert not genuine_withdrawal(Withdrawal(signed.key, signed.published, signed.proof), signed)


@given(data=st.binary(max_size=3_000), others=st.integers(0, 3), group=st.booleans())
def test_readers_read_and_others_do_not(data: bytes, others: int, group: bool) -> None:
    club = ReadingKey(b"c" * 32)
    readers = [Identity(bytes([100 + n]) * 32).reading.public for n in range(others)]
    readers.append(club.public if group else BOB.reading.public)
    sealed = seal(data, THING.key, "content", readers)
    assert unseal(sealed, THING.key, "content", [BOB.reading, club]) == data
    with pytest.raises(Unreadable, match="other readers"):
        unseal(sealed, THING.key, "content", [EVE.reading, BOB.reading if group else club])
    for key, purpose in ((THING.key, "summary"), (ObjectKey(ADA.name, "swapped"), "content")):
        with pytest.raises(Unreadable):
            unseal(sealed, key, purpose, [BOB.reading, club])


@given(st.data())
def test_what_was_damaged_or_truncated_is_unreadable(data: st.DataObject) -> None:
    sealed = seal(b"content", THING.key, "content", [BOB.reading.public])
    at = data.draw(st.integers(0, len(sealed) - 1))
    damaged = sealed[:at] + bytes([sealed[at] ^ data.draw(st.integers(1, 255))]) + sealed[at + 1 :]
    for bad in (damaged, sealed[:at], data.draw(st.binary(max_size=200))):
        with pytest.raises(Unreadable):
            unseal(bad, THING.key, "content", [BOB.reading])


MECHANISMS = [toys.LOCAL, toys.KEPT, LOCAL, cells(1, 1)]


class Town:
    """Three hosts with identities that all hear each other."""

    def __init__(self, mechanism: MechanismSpec, club: ReadingKey) -> None:
        self.simulation = Simulation(1)
        world = World(self.simulation, Plane(HERE), 3)
        network = DiscNetwork(self.simulation, world.motion, RANGE, check_wire=True)
        self.stores: dict[str, CrowdStore] = {}
        self.told: list[tuple[str, Metadata]] = []
        for number, identity in enumerate((ADA, BOB, EVE)):
            world.motion.put(number, 10.0 * number, 0.0)
            world.add(identity.name, partial(self._components, identity, mechanism, club), [network]).join()

    def _components(self, identity: Identity, mechanism: MechanismSpec, club: ReadingKey) -> list[Component]:
        store = self.stores[identity.name] = CrowdStore(
            mechanism, identity=identity, groups=[club] if identity is BOB else []
        )
        return [HostEngine(), store]

    def listen(self, identity: Identity) -> None:
        self.stores[identity.name].subscribe("goal", lambda metadata: self.told.append((identity.name, metadata)))

    def run(self, seconds: float = 12.0) -> None:
        self.simulation.run(self.simulation.now() + round(seconds * MICROSECONDS))


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda spec: spec.name)
def test_a_sealed_object_is_kept_by_all_and_read_by_its_readers(
    mechanism: MechanismSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    toys.known(monkeypatch)
    club = ReadingKey(b"c" * 32)
    town = Town(mechanism, club)
    town.run()
    for identity in (BOB, EVE):
        town.listen(identity)
    town.run()
    ada = town.stores[ADA.name]
    metadata = ada.publish("photo", b"secret", ["goal"], summary=b"small", readers=[club.public], seal_summary=True)
    town.run()
    assert town.told == [(BOB.name, metadata), (EVE.name, metadata)]
    outcomes: dict[str, Outcome] = {}
    for identity in (BOB, EVE):
        town.stores[identity.name].download(metadata, partial(outcomes.__setitem__, identity.name))
    town.run()
    assert outcomes == {BOB.name: Outcome(content=b"secret"), EVE.name: Outcome(Failure.UNREADABLE)}
    assert town.stores[BOB.name].summary(metadata) == b"small"
    with pytest.raises(Unreadable):
        town.stores[EVE.name].summary(metadata)
    assert all(b"secret" not in held.content for held in town.stores[EVE.name].nucleus.held.values())


def test_an_envelope_of_lists_in_lists_is_read_by_nobody_and_stops_nobody() -> None:
    # A field too many is skipped, however deep it is.
    nested = (
        b"\x94" + msgspec.msgpack.encode(b"e" * 32) + b"\x90" + msgspec.msgpack.encode(b"s") + b"\x91" * 3_000 + b"\xc0"
    )
    with pytest.raises(Unreadable, match="damaged"):
        unseal(nested, THING.key, "content", [ReadingKey(b"c" * 32)])
    metadata = msgspec.structs.replace(THING, summary=nested, sealing=Sealing.ALL)
    with pytest.raises(Unreadable, match="damaged"):
        opened_summary(metadata, [ReadingKey(b"c" * 32)])


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda spec: spec.name)
def test_forged_things_are_told_to_nobody(mechanism: MechanismSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    toys.known(monkeypatch)
    town = Town(mechanism, ReadingKey(b"c" * 32))
    town.run()
    town.listen(BOB)
    town.run()
    bob = town.stores[BOB.name].nucleus
    (key,) = (subscription.key for subscription in bob.subscriptions)
    for forged in (THING, EVE.signed(THING)):
        assert not bob.notify(key, forged)
        with pytest.raises(InvalidEvent, match="not published by its owner"):
            town.stores[BOB.name].download(forged, lambda _: None)
    assert town.stores[BOB.name].statistics().forged == 2
    assert not town.told


def test_nobody_else_withdraws_what_was_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    toys.known(monkeypatch)
    town = Town(toys.KEPT, ReadingKey(b"c" * 32))
    town.run()
    metadata = town.stores[ADA.name].publish("photo", b"abc", ["goal"])
    town.run()
    # Eve speaks the language of the mechanism, and lies.
    active = town.stores[EVE.name]._proxy.active
    assert isinstance(active, toys.ToyKept)
    for lie in (EVE.withdrawal(metadata), Withdrawal(metadata.key, metadata.published)):
        active.endpoint.broadcast(toys.Gone(lie))
    town.run()
    town.listen(BOB)
    town.run()
    assert [told for _, told in town.told] == [metadata]
    town.stores[ADA.name].unpublish("photo")
    town.run()
    town.listen(BOB)
    town.run()
    assert len(town.told) == 1, "the owner can"


def test_nobody_else_withdraws_from_cells_or_publishes_in_somebodys_name() -> None:
    town = Town(cells(1, 1), ReadingKey(b"c" * 32))
    town.run()
    metadata = town.stores[ADA.name].publish("photo", b"abc", ["goal"])
    town.run()
    active, nucleus = town.stores[EVE.name]._proxy.active, town.stores[BOB.name].nucleus
    assert isinstance(active, DataCentricStorage)
    desk, (home,) = active.desk, active.desk.grid
    forged = msgspec.structs.replace(THING, key=ObjectKey(ADA.name, "forged"), tags=("goal",))
    at = desk.now()
    for number, lie in enumerate((EVE.withdrawal(metadata), Withdrawal(metadata.key, metadata.published))):
        desk.to_cells([home], Unpublish(number, lie, at))
        desk.to_cells([home], Entrusted(number + 10, (withdrawn(lie, at),)))
    for number, thing in enumerate((forged, EVE.signed(forged))):
        desk.to_cells([home], Publish(number + 20, Item(thing, 0, 0)))
        desk.tell(Copy(thing, 0, b""))
    town.run()
    town.listen(BOB)
    town.run()
    assert [told for _, told in town.told] == [metadata]
    assert [key.name for key in nucleus.held] == ["photo"]
    # A withdrawal that was heard once is none of what its owner publishes later.
    old = ADA.withdrawal(msgspec.structs.replace(metadata, published=metadata.published - 1))
    desk.to_cells([home], Unpublish(30, old, desk.now()))
    town.run()
    assert [key.name for key in nucleus.held] == ["photo"]
    town.stores[ADA.name].unpublish("photo")
    town.run()
    assert not nucleus.held
    town.listen(BOB)
    town.run()
    assert len(town.told) == 1, "the owner can"


def test_a_host_with_an_identity_is_called_by_it() -> None:
    simulation = Simulation(1)
    world = World(simulation, Plane(HERE), 1)
    network = DiscNetwork(simulation, world.motion, RANGE)
    store = CrowdStore(toys.LOCAL, identity=ADA)
    world.motion.put(0, 0.0, 0.0)
    host = world.add("n0", lambda: [HostEngine(), store], [network])
    with pytest.raises(InvalidInput, match="give both the same"):
        host.join()


def test_bad_readers_are_refused() -> None:
    with pytest.raises(InvalidInput, match="1 to 256 readers"):
        seal(b"", THING.key, "content", [])
    with pytest.raises(InvalidInput, match="public half"):
        seal(b"", THING.key, "content", [b"short"])
    with pytest.raises(InvalidInput, match="32 bytes"):
        Identity(b"short")
