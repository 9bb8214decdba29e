"""UDP with the range of a radio: who is too far away hears nothing, and who walks nearer does."""

from __future__ import annotations

import pytest
from tests.runtime.live.virtual import live, neighbourhood, started
from tests.waiting import until

from nearcast.errors import InvalidInput
from nearcast.model.geometry import Point
from nearcast.runtime.host import Component, Host
from nearcast.runtime.links import RECEIVED, SENT
from nearcast.runtime.live import FedPosition, LiveRuntime
from nearcast.runtime.live.ranged import RangedLink, RangedNetwork
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Endpoint
from nearcast.runtime.simulation.plane import Plane

PLANE = Plane(Point(49.8728, 8.6512))
PORT = 9


class Word(Message, frozen=True, tag="word"):
    text: str


class Talker(Component):
    def __init__(self) -> None:
        self.heard: list[str] = []
        self.endpoint: Endpoint

    def start(self, host: Host) -> None:
        self.endpoint = host.link("wifi").open(PORT, lambda _sender, word: self.heard.append(word.text), Word)


class Pavement:
    """Hosts by name, at so many metres; none: they do not know where they are."""

    def __init__(self, runtime: LiveRuntime, radius: float, **metres: float | None) -> None:
        group = neighbourhood()
        self.talkers = {name: Talker() for name in metres}
        self.positions: dict[str, FedPosition] = {}
        self.links: dict[str, RangedLink] = {}
        for name, place in metres.items():
            position = self.positions[name] = FedPosition(runtime.clock)
            if place is not None:
                self.put(name, place)
            network = RangedNetwork(
                group=group.group, group_port=group.group_port, radius=radius, position=position.fix
            )
            host = runtime.add(name, lambda name=name: [self.talkers[name]], [network])  # type: ignore[misc]
            link = host.links["wifi"]
            assert isinstance(link, RangedLink)
            self.links[name] = link

    def put(self, name: str, metres: float) -> None:
        point = PLANE.to_point(metres, 0.0)
        self.positions[name].update(point.lat, point.lon, accuracy=0.0)


def test_who_is_in_range_hears_it_and_who_is_beyond_does_not_until_he_comes_nearer() -> None:
    async def story() -> None:
        runtime = LiveRuntime(seed=1)
        street = Pavement(runtime, 60.0, ada=0.0, bob=59.9, cleo=60.1, dan=None)
        running = await started(runtime)
        talkers, links = street.talkers, street.links
        talkers["ada"].endpoint.broadcast(Word("one"))
        await until(lambda: bool(talkers["bob"].heard) and links["cleo"].unheard == links["dan"].unheard == 1)
        street.put("cleo", 50.0)
        talkers["ada"].endpoint.broadcast(Word("two"))
        await until(lambda: bool(talkers["cleo"].heard) and links["dan"].unheard == 2)
        talkers["dan"].endpoint.broadcast(Word("who am I?"))
        await until(lambda: all(links[name].unheard for name in ("ada", "bob", "cleo")))
        runtime.stop()
        await running
        assert [talkers[name].heard for name in ("bob", "cleo", "dan")] == [["one", "two"], ["two"], []]
        books = {(row.host, row.direction): (row.messages, row.bytes) for row in runtime.traffic()}
        assert books["ada", SENT] == books["bob", RECEIVED], "what is received has the bytes that were sent"
        assert links["bob"].statistics().dropped == {}

    live(story)


@pytest.mark.parametrize("data", [b"", b"x", b"x" * 16, b"\x09abc" + b"\xff" * 16, b"\x09" + bytes(16)])
def test_what_is_no_datagram_of_such_a_network_is_never_handed_over(data: bytes) -> None:
    async def story() -> None:
        runtime = LiveRuntime(seed=1)
        street = Pavement(runtime, 60.0, ada=0.0, bob=1.0)
        running = await started(runtime)
        link = street.links["bob"]
        # As it comes out of the socket.
        link._arrive(data, ("127.0.0.1", 9))
        runtime.stop()
        await running
        assert link.unheard + sum(link.statistics().dropped.values()) == 1
        assert street.talkers["bob"].heard == []

    live(story)


def test_a_radio_without_a_range_cannot_be() -> None:
    with pytest.raises(InvalidInput, match="range of 0"):
        RangedNetwork(radius=0.0, position=lambda: None)
