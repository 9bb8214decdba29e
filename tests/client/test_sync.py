"""The client without an event loop."""

import threading

import pytest
from tests.served import ServedBroker

import nearcast
from nearcast import Circle, Point
from nearcast.errors import ConnectionFailed, InvalidPredicate, TimedOut

LONG = 60.0


def test_everything_works_without_await(broker: ServedBroker) -> None:
    with nearcast.connect_sync(broker.url, schemes=False) as me:
        me.update(lat=1, lon=2, role="/reader")
        me.register("work", crew=2)
        me.deregister("work")
        assert me.position == Point(1, 2)
        with me.subscribe("sync/#", within=500) as events:
            published = me.publish("sync/a", b"x", reach=Circle(100), to="under(role, '/reader')")
            event = events.next(LONG)
            assert (event.id, event.payload) == (published, b"x")
            assert events.statistics().delivered == 1
            me.announce("sync/b", 100)
            me.publish("sync/b")
            assert next(events).reach == Circle(100, Point(1, 2))
            me.unannounce("sync/b")
        me.unpublish(published)
        assert [each.topic for each in me.subscribe("sync/#", since="-1h", until="now", batch=1)] == ["sync/b"]
        with me.addressed() as addressed:
            me.publish("to/you", b"psst", to="under(role, '/reader')")
            assert addressed.next(LONG).payload == b"psst"
        me.forget_position()
        assert me.position is None
        assert me.statistics().published == 3


def test_errors_come_as_they_are(broker: ServedBroker) -> None:
    with nearcast.connect_sync(broker.url, schemes=False) as me:
        with pytest.raises(InvalidPredicate):
            me.publish("a", to="severity >=")
        with me.subscribe("silence") as events, pytest.raises(TimedOut):
            events.next(0.01)


def test_a_client_that_was_closed_says_so_and_leaves_no_thread(broker: ServedBroker) -> None:
    before = threading.active_count()
    with nearcast.connect_sync(broker.url, schemes=False) as me:
        assert threading.active_count() > before
    assert threading.active_count() == before
    with pytest.raises(ConnectionFailed, match="closed"):
        me.publish("a")


def test_a_client_that_is_not_let_in_leaves_no_thread() -> None:
    before = threading.active_count()
    with pytest.raises(ConnectionFailed), nearcast.connect_sync("mqtt://127.0.0.1:1", schemes=False):
        pass
    assert threading.active_count() == before


def test_several_threads_may_share_a_client(broker: ServedBroker) -> None:
    with nearcast.connect_sync(broker.url, schemes=False) as me, me.subscribe("threads") as events:
        threads = [threading.Thread(target=me.publish, args=("threads", str(number))) for number in range(8)]
        for thread in threads:
            thread.start()
        assert {events.next(LONG).payload for _ in threads} == {str(number).encode() for number in range(8)}
        for thread in threads:
            thread.join()
