"""Bridges and an archive that they share, in the simulator: what is on one side is on the other, as it was, and once."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest
from tests.crowdstore.crowd import Crowd
from tests.crowdstore.data_centric.venue import dcs

from nearcast.crowdstore.access import Identity, ReadingKey, unseal
from nearcast.crowdstore.bridge import ARCHIVE, ARCHIVED, Archived, Bridge, Contents, identifier_of
from nearcast.crowdstore.objects import (
    WITHDRAWN,
    Metadata,
    ObjectKey,
    Publication,
    Sealing,
    Withdrawal,
    digest_of,
)
from nearcast.crowdstore.storage import Outcome
from nearcast.model.time import Instant
from nearcast.runtime.host import Component
from nearcast.runtime.ports import Timers
from nearcast.transition.specification import MechanismSpec

LOCAL = MechanismSpec("PL/SG")
CELLS = dcs(4, 1)
every_mechanism = pytest.mark.parametrize("mechanism", [LOCAL, CELLS], ids=lambda spec: spec.name)
PLACES = [(20.0, 20.0), (60.0, 20.0), (100.0, 20.0), (140.0, 20.0), (70.0, 20.0)]
"""Each in a cell of its own, but for ``n1`` and ``n4``."""
CLUB = ReadingKey(b"c" * 32)
VENUE = Identity(b"v" * 32)


class Shelf:
    """The archive itself."""

    def __init__(self) -> None:
        self.events: dict[str, Archived] = {}
        self.words: dict[str, Withdrawal] = {}
        self.kept: list[tuple[str, str]] = []
        """By whom, and what."""

    def add(self, identifier: str, at: Instant, *tags: str, content: bytes = b"from afar") -> None:
        self.events[identifier] = Archived(at, tags, content, None)

    def add_object(self, publication: Publication) -> str:
        identifier = identifier_of(publication.metadata)
        self.events[identifier] = Archived(0, publication.metadata.tags, publication.content, publication.metadata)
        return identifier


class Reader:
    """One bridge's port to it."""

    def __init__(self, shelf: Shelf, host: str) -> None:
        self._shelf, self._host = shelf, host
        self._told: dict[str, object] = {}
        self._contents: Contents | None = None

    def open(self, contents: Contents) -> None:
        self._contents = contents

    def close(self) -> None:
        self._contents = None

    def expect(self, identifier: str, published: Instant) -> None:
        self._told[identifier] = published

    def keep(self, identifier: str, publication: Publication) -> None:
        self._shelf.kept.append((self._host, identifier))
        self._shelf.add_object(publication)

    def forget(self, identifier: str, word: Withdrawal) -> None:
        self._shelf.words[identifier] = word
        self._shelf.events.pop(identifier, None)

    def look(self) -> None:
        if self._contents is not None:
            events = self._shelf.events
            news: Mapping[str, Archived] = {
                each: it for each, it in events.items() if not isinstance(self._told.get(each), Archived)
            }
            gone = {each: self._shelf.words.get(each) for each in self._told if each not in events}
            self._told = {**events}
            self._contents(news, gone)


class Bridged(Crowd):
    """A crowd some of whose hosts have a bridge."""

    def __init__(
        self,
        mechanism: MechanismSpec,
        *bridges: str,
        remembering: bool = False,
        identity: Identity | None = None,
        formula: str = "goal",
    ) -> None:
        self.shelf = Shelf()
        self.bridges: dict[str, Bridge] = {}
        self.told: list[Metadata] = []

        def further(name: str) -> list[Component]:
            if name not in bridges:
                return []
            reader = Reader(self.shelf, name)
            bridge = self.bridges[name] = Bridge(reader, formula, identity=identity)
            self.readers[name] = reader
            return [bridge]

        self.readers: dict[str, Reader] = {}
        super().__init__(PLACES, mechanism, remembering=remembering, notices=True, further=further)
        self.run(60)

    def look(self, times: int = 3) -> None:
        """Every bridge does, now and then; in between they have time."""
        for _ in range(times):
            for name, reader in self.readers.items():
                self._timers(name).after(0.0, reader.look)
            self.run(10)

    def look_often(self, name: str) -> None:
        self._timers(name).every(0.05, self.readers[name].look)

    def _timers(self, name: str) -> Timers:
        host = self.world.hosts[name].host
        assert host is not None
        return host.timers

    def restart(self, name: str) -> None:
        self.world.hosts[name].fail()
        self.run(5)
        self.world.hosts[name].join()
        self.run(60)

    def listening(self, host: str, formula: str = "goal") -> list[Metadata]:
        told: list[Metadata] = []
        self.stores[host].subscribe(formula, told.append)
        self.run(20)
        return told

    def downloaded(self, host: str, metadata: Metadata) -> bytes:
        """As it is, if it is sealed."""
        outcomes: list[Outcome] = []
        self.stores[host].download(metadata, outcomes.append, opened=False)
        self.run(60)
        content = outcomes[0].content
        assert content is not None, outcomes
        return content


@every_mechanism
def test_what_several_bridges_bring_is_one_object(mechanism: MechanismSpec) -> None:
    crowd = Bridged(mechanism, "n2", "n3")
    early = crowd.listening("n0")
    at = crowd.simulation.now()
    crowd.shelf.add("evt", at, "goal")
    crowd.look()
    late = crowd.listening("n1")
    key = ObjectKey(ARCHIVE, "evt")
    assert [metadata.key for metadata in early] == [metadata.key for metadata in late] == [key]
    assert (early[0].published, early[0].tags) == (at, (ARCHIVED, "goal"))
    assert crowd.downloaded("n0", early[0]) == b"from afar"
    if mechanism == LOCAL:
        statistics = crowd.stores["n0"].statistics().storage
        assert (statistics.searched, statistics.retried) == (0, 0), "it comes from whoever told of it"
    assert crowd.shelf.kept == [], "it does not go up again"
    del crowd.shelf.events["evt"]
    crowd.look()
    assert crowd.listening("n0") == [], "what was taken back is gone in the crowd"
    assert [bridge.statistics().down for bridge in crowd.bridges.values()] == [0, 0]


@every_mechanism
def test_what_several_bridges_hear_of_goes_up_once_and_not_again_after_a_restart(mechanism: MechanismSpec) -> None:
    crowd = Bridged(mechanism, "n2", "n3")
    crowd.look_often("n2")
    crowd.look_often("n3")
    objects = [crowd.publish("n0", f"photo {number}", "goal") for number in range(8)]
    crowd.run(30)
    assert sorted(identifier for _, identifier in crowd.shelf.kept) == sorted(map(identifier_of, objects))
    crowd.restart("n2")
    crowd.look_often("n2")
    crowd.run(30)
    assert len(crowd.shelf.kept) == len(objects)
    assert crowd.bridges["n2"].statistics().down == 0
    crowd.unpublish("n0", "photo 3")
    crowd.run(10)
    assert identifier_of(objects[3]) not in crowd.shelf.events
    assert len(crowd.shelf.events) == len(objects) - 1


@every_mechanism
def test_an_object_whose_owner_is_gone_comes_back_as_the_same_object(mechanism: MechanismSpec) -> None:
    crowd = Bridged(mechanism, "n3")
    early = crowd.listening("n0")
    photo = crowd.stores["n1"].publish(
        "photo", b"plain text", ["goal"], summary=b"thumbnail", readers=[CLUB.public], seal_summary=False
    )
    crowd.look()
    assert list(crowd.shelf.events) == [identifier_of(photo)]
    crowd.world.hosts["n1"].fail()
    crowd.restart("n3")
    crowd.look()
    assert early == [photo], "who had heard of it is not told again"
    late = crowd.listening("n2")
    assert late == [photo]
    assert (late[0].sealing, late[0].summary) == (Sealing.CONTENT, b"thumbnail")
    assert unseal(crowd.downloaded("n2", late[0]), photo.key, "content", [CLUB]) == b"plain text"
    assert len(crowd.shelf.kept) == 1


@every_mechanism
def test_what_was_signed_comes_down_signed(mechanism: MechanismSpec) -> None:
    crowd = Bridged(mechanism, "n3")
    ada = Identity(b"a" * 32)
    made = Metadata(ObjectKey(ada.name, "photo"), ("goal",), crowd.simulation.now(), 6, digest_of(b"pixels"))
    signed, forged = ada.signed(made), msgspec.structs.replace(made, key=ObjectKey(ada.name, "another"))
    identifier = crowd.shelf.add_object(Publication(signed, b"pixels"))
    crowd.shelf.add_object(Publication(forged, b"pixels"))
    damaged = ada.signed(msgspec.structs.replace(made, key=ObjectKey(ada.name, "third")))
    crowd.shelf.add_object(Publication(damaged, b"pixel5"))
    crowd.shelf.events["another id"] = crowd.shelf.events[identifier]
    crowd.look()
    told = crowd.listening("n0")
    assert told == [signed]
    assert crowd.downloaded("n0", signed) == b"pixels"
    assert crowd.bridges["n3"].statistics().unusable == 3
    # In the other crowd, where she is, she withdraws it.
    crowd.readers["n3"].forget(identifier, ada.withdrawal(signed))
    crowd.look()
    assert crowd.listening("n1") == []


@every_mechanism
def test_what_can_be_no_object_of_the_crowd_is_skipped_and_counted(mechanism: MechanismSpec) -> None:
    crowd = Bridged(mechanism, "n3")
    crowd.shelf.add("evt", crowd.simulation.now(), *(f"tag-number-{number:04}" for number in range(100)))
    crowd.shelf.add("good", crowd.simulation.now(), "goal")
    crowd.look()
    assert [metadata.key.name for metadata in crowd.listening("n0")] == ["good"]
    assert (crowd.bridges["n3"].statistics().down, crowd.bridges["n3"].statistics().unusable) == (1, 1)


@every_mechanism
@pytest.mark.parametrize(
    "summary",
    [b"", b"\xff", b"\x94\x92\xa2n0\xa1b\x01\xc0" + b"\x91" * 1_000 + b"\xc0", b"\x92\x92\xa2n0\xa1\xff\x01"],
    ids=["empty", "no msgpack", "nested", "no text"],
)
def test_a_notice_that_is_none_is_nothing(mechanism: MechanismSpec, summary: bytes) -> None:
    crowd = Bridged(mechanism, "n3")
    photo = crowd.publish("n0", "photo", "goal")
    crowd.look()
    crowd.stores["n0"].publish("no notice", b"", [WITHDRAWN], summary=summary)
    crowd.run(10)
    assert list(crowd.shelf.events) == [identifier_of(photo)]
    crowd.unpublish("n0", "photo")
    crowd.run(10)
    assert list(crowd.shelf.events) == []


@every_mechanism
def test_no_member_suppresses_what_is_in_the_archive(mechanism: MechanismSpec) -> None:
    crowd = Bridged(mechanism, "n3", identity=VENUE)
    crowd.stores["n0"].publish("later", b"", [ARCHIVED])
    crowd.shelf.add("evt", crowd.simulation.now(), "goal")
    crowd.shelf.add("later", crowd.simulation.now(), "goal")
    crowd.look()
    crowd.stores["n0"].publish("evt", b"", [ARCHIVED])
    crowd.look()
    crowd.stores["n0"].unpublish("evt")
    crowd.look()
    assert {metadata.key for metadata in crowd.listening("n1")} == {
        ObjectKey(VENUE.name, "evt"),
        ObjectKey(VENUE.name, "later"),
    }


@pytest.mark.parametrize("remembering", [True, False], ids=["remembering", "forgetful"])
@every_mechanism
def test_what_was_taken_back_while_the_bridge_was_away_is_gone_in_the_crowd(
    mechanism: MechanismSpec, remembering: bool
) -> None:
    crowd = Bridged(mechanism, "n3", remembering=remembering)
    crowd.shelf.add("evt", crowd.simulation.now(), "goal")
    crowd.shelf.add("stays", crowd.simulation.now(), "goal")
    crowd.look()
    early = crowd.listening("n0")
    del crowd.shelf.events["evt"]
    crowd.restart("n3")
    crowd.look(5)
    assert sorted(metadata.key.name for metadata in early) == ["evt", "stays"]
    assert [metadata.key.name for metadata in crowd.listening("n1")] == ["stays"]


def test_a_name_that_is_used_again_is_another_object_in_the_archive() -> None:
    crowd = Bridged(LOCAL, "n3")
    first = crowd.publish("n0", "photo", "goal", content=b"first")
    crowd.look()
    crowd.unpublish("n0", "photo")
    crowd.run(10)
    crowd.restart("n0")  # it has forgotten everything
    crowd.restart("n3")
    second = crowd.publish("n0", "photo", "goal", content=b"second")
    crowd.look()
    assert identifier_of(first) != identifier_of(second)
    assert {each: it.content for each, it in crowd.shelf.events.items()} == {identifier_of(second): b"second"}


def test_a_download_that_failed_is_tried_again() -> None:
    crowd = Bridged(LOCAL, "n3")
    crowd.look()
    photo = crowd.publish("n0", "photo", "goal")
    crowd.run(0.1)  # the bridge has heard of it
    here = crowd.stores["n0"].nucleus.published.pop(photo.key)
    crowd.look()
    assert crowd.bridges["n3"].statistics().failed > 0
    assert crowd.shelf.events == {}
    crowd.stores["n0"].nucleus.published[photo.key] = here
    crowd.run(120)
    assert list(crowd.shelf.events) == [identifier_of(photo)]
