"""Events sorted by subscription: each once, only what is wanted, acknowledged when taken."""

import asyncio
from typing import Final

from hypothesis import given
from hypothesis import strategies as st
from mqtt5 import PublishPacket

from nearcast.client.inbox import ADDRESSED, REMEMBERED, UNCLAIMED, Inbox, Seen, Stream, checked
from nearcast.client.protocol import Delivered, Receipt
from nearcast.client.track import Own, Track
from nearcast.model.acceptance import wanted
from nearcast.model.geometry import Point
from nearcast.mqtt.publication import delivered_event
from nearcast.mqtt.requests import subscription_request

BEGUN: Final = 1_000_000_000


class World:
    """An inbox, and who was thanked."""

    def __init__(self) -> None:
        self.acknowledged: list[Receipt] = []
        self.own = Own()
        self.track = self.own.track
        self.inbox = Inbox(self.own, lambda: 5_000_000_000, self.acknowledged.append)

    def stream(self, number: int, topic: str = "a/#", *, by_scheme: bool = False, area: str | None = None) -> Stream:
        request = subscription_request(topic, [("nc-area", area)] if area else [])
        stream = Stream(
            number, request, 10, 1, checked(request, 0, 1, no_local=False), begun=BEGUN, by_scheme=by_scheme
        )
        self.inbox.add(stream)
        return stream

    def deliver(self, *numbers: int, id: str | None = "e", **properties: str) -> Receipt:  # noqa: A002
        named = [(f"nc-{name}", value) for name, value in properties.items()]
        if id is not None:
            named.append(("nc-id", id))
        receipt = Receipt(1, 1, 1, 0)
        packet = PublishPacket("a/b", b"", subscription_ids=list(numbers), user_properties=named)
        self.inbox.deliver(Delivered(packet, receipt))
        return receipt


def test_an_event_that_comes_again_is_given_once_and_acknowledged_again() -> None:
    world = World()
    stream = world.stream(1)
    world.deliver(1)
    again = world.deliver(1)
    assert (stream.waiting, stream.statistics().duplicates) == (1, 1)
    assert world.acknowledged == [again]


def test_an_event_for_two_subscriptions_is_acknowledged_after_the_second_has_taken_it() -> None:
    async def run() -> None:
        world = World()
        one, two = world.stream(1), world.stream(2)
        receipt = world.deliver(1, 2)
        await one.take()
        assert not world.acknowledged
        await two.take()
        assert world.acknowledged == [receipt]

    asyncio.run(run())


def test_messages_without_an_id_are_all_different() -> None:
    world = World()
    stream = world.stream(1)
    for _ in range(3):
        world.deliver(1, id=None)
    assert stream.waiting == 3


def test_what_nobody_asked_for_waits_for_the_subscription_it_belongs_to() -> None:
    world = World()
    world.deliver(7)
    assert not world.acknowledged
    assert world.stream(7).waiting == 1


def test_what_nobody_ever_asks_for_is_given_up_in_the_end() -> None:
    world = World()
    receipts = [world.deliver(7, id=str(number)) for number in range(UNCLAIMED + 3)]
    assert world.acknowledged == receipts[:3]
    assert world.inbox.statistics().unclaimed == 3


def test_what_comes_without_a_subscription_was_addressed_to_this_client() -> None:
    world = World()
    addressed = Stream(ADDRESSED, None, 10)
    world.inbox.add(addressed)
    other = world.stream(1)
    world.deliver()
    assert (addressed.waiting, other.waiting) == (1, 0)


def test_what_cannot_be_read_is_counted_and_acknowledged() -> None:
    world = World()
    stream = world.stream(1)
    world.deliver(1, place="nowhere")
    assert (stream.waiting, world.inbox.statistics().unreadable, len(world.acknowledged)) == (0, 1, 1)


PLACES = st.builds(Point, st.floats(-0.01, 0.01), st.floats(-0.01, 0.01))


@given(PLACES, PLACES, st.sampled_from([None, '{"circle": 500, "at": [0, 0]}']))
def test_what_schemes_send_too_much_of_is_refused_by_the_last_check(
    here: Point, place: Point, reach: str | None
) -> None:
    world = World()
    stream = world.stream(1, area="500", by_scheme=True)
    world.track.add(BEGUN, here)
    properties = {"place": f"{place.lat!r},{place.lon!r}", "published": "2026-01-01T00:00:00Z"}
    if reach:
        properties["reach"] = reach
    world.deliver(1, id="e", **properties)
    named = [(f"nc-{name}", value) for name, value in properties.items()]
    event = delivered_event("a/b", b"", named, None, id="e", received=0)
    assert stream.check is not None
    assert stream.waiting == wanted(stream.check, event, "", here)
    assert stream.statistics().unwanted == 1 - stream.waiting


def test_the_last_check_asks_where_i_was_when_it_was_published() -> None:
    world = World()
    stream = world.stream(1, area="500", by_scheme=True)
    world.track.add(BEGUN, Point(0, 0))
    world.track.add(BEGUN + 10_000_000, Point(1, 1))
    world.deliver(1, id="then", place="0,0", published="1970-01-01T00:16:45Z")
    world.deliver(1, id="now", place="0,0", published="1970-01-01T00:16:55Z")
    assert (stream.waiting, stream.statistics().unwanted) == (1, 1)


def test_what_was_published_before_the_subscription_is_not_judged_by_place_again() -> None:
    """The broker has judged it, by where this client was when it subscribed."""
    world = World()
    stream = world.stream(1, area="500", by_scheme=True)
    world.track.add(0, Point(1, 1))
    world.deliver(1, place="0,0", published="1970-01-01T00:16:30Z")
    assert stream.waiting == 1


def test_an_end_lets_readers_go() -> None:
    async def run() -> None:
        world = World()
        stream = world.stream(1)
        reading = asyncio.create_task(stream.take())
        await asyncio.sleep(0)
        stream.end()
        assert await reading is None

    asyncio.run(run())


@given(st.lists(st.integers(0, 3 * REMEMBERED), max_size=200))
def test_the_newest_events_are_remembered(ids: list[int]) -> None:
    seen, known = Seen(), set()
    for number in ids:
        assert seen.add(str(number)) == (number not in known)
        known.add(number)


def test_the_memory_of_events_is_bounded() -> None:
    seen = Seen()
    for number in range(5 * REMEMBERED):
        assert seen.add(str(number))
    assert len(seen._recent) + len(seen._older) <= 2 * REMEMBERED
    assert not seen.add(str(4 * REMEMBERED + 1))


@given(st.lists(st.tuples(st.integers(0, 100), PLACES), min_size=1), st.integers(-10, 110))
def test_a_track_is_a_step_function(fixes: list[tuple[int, Point]], at: int) -> None:
    fixes.sort(key=lambda fix: fix[0])
    track = Track()
    for when, point in fixes:
        track.add(when, point)
    before = [point for when, point in fixes if when <= at]
    assert track.position(at) == (before[-1] if before else None)
    assert track.knows(at) == bool(before)
    assert track.newest == fixes[-1][1]
