"""Joining, going away, losses, and words that mean nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.crowdstore.crowd import Crowd
from tests.crowdstore.lossy import lossy

from nearcast.crowdstore.objects import Metadata, ObjectKey, SubscriptionKey, digest_of
from nearcast.crowdstore.publish_local.interests import Interests
from nearcast.crowdstore.publish_local.mechanism import PublishLocalStorage
from nearcast.crowdstore.publish_local.messages import (
    Absent,
    Chunk,
    Get,
    Have,
    Interest,
    Join,
    JoinAnswer,
    More,
    Notify,
    Search,
    Subscribe,
    Unsubscribe,
    Unwanted,
)
from nearcast.crowdstore.storage import PORT, Failure
from nearcast.crowdstore.unicast.messages import Routes
from nearcast.model.time import MICROSECONDS
from nearcast.runtime.host import Host
from nearcast.runtime.messages import Codec, Message, encoded
from nearcast.transition.engine import HostEngine
from nearcast.transition.specification import MechanismSpec

PLSG = MechanismSpec("PL/SG")
LINE = [(90.0 * x, 0.0) for x in range(5)]


def test_who_joins_late_learns_every_subscription_and_tells_of_what_it_has() -> None:
    crowd = Crowd(LINE, PLSG, remembering=True)
    crowd.run(30)
    crowd.publish("n4", "a", "t")
    crowd.world.hosts["n4"].fail()
    crowd.run(5)
    for _ in range(60):
        crowd.subscribe("n0", "t")
    crowd.run(5)
    assert not crowd.heard.notified
    crowd.world.hosts["n4"].join()
    crowd.run(20)
    assert sorted(crowd.heard.notified) == sorted(crowd.expected())
    storage = crowd.stores["n4"].statistics().storage
    assert (storage.subscriptions, storage.joined, storage.join_requests) == (60, True, 1)


def test_who_is_alone_finds_out() -> None:
    crowd = Crowd([(0.0, 0.0)], PLSG)
    crowd.run(7)
    assert not crowd.stores["n0"].statistics().storage.joined
    crowd.run(2)
    assert crowd.stores["n0"].statistics().storage.joined
    crowd.publish("n0", "a", "t")
    crowd.subscribe("n0", "t")
    crowd.run(1)
    assert {*crowd.heard.notified} == crowd.expected()


def test_only_some_answer_who_joins() -> None:
    crowd = Crowd([(float(x), 0.0) for x in range(40)], MechanismSpec.of("PL/SG", answers=2.0))
    crowd.run(30)
    for _ in range(10):
        crowd.world.hosts["n0"].fail()
        crowd.world.hosts["n0"].join()
        crowd.run(15)
    answers = sum(store.statistics().storage.join_answers for store in crowd.stores.values())
    # Two on average; ten times, with a standard deviation of about 4.4 altogether.
    assert 7 <= answers <= 40


def test_who_returns_without_memory_withdraws_what_it_wanted_before() -> None:
    crowd = Crowd(LINE, PLSG)
    crowd.run(30)
    crowd.subscribe("n0", "t")
    crowd.run(2)
    crowd.world.hosts["n0"].fail()
    crowd.world.hosts["n0"].join()
    crowd.run(10)
    assert {store.statistics().storage.subscriptions for store in crowd.stores.values()} == {0}


def test_a_subscription_that_ended_does_not_come_back() -> None:
    crowd = Crowd(LINE, PLSG)
    crowd.run(30)
    key = crowd.subscribe("n0", "t")
    crowd.run(2)
    crowd.world.motion.put(4, 9_000.0, 0.0)
    crowd.unsubscribe("n0", key)
    crowd.run(2)
    # n4 has not heard of it, and tells whoever asks.
    crowd.world.motion.put(4, 360.0, 0.0)
    old = Interest(key, "t", None, None, crowd.simulation.now())
    _say(crowd, 4, 3, JoinAnswer(0, 1, (old,)))
    _say(crowd, 4, 3, Subscribe(old))
    crowd.run(2)
    assert [crowd.stores[f"n{node}"].statistics().storage.subscriptions for node in range(5)] == [0, 0, 0, 0, 1]
    # Until it has something to tell: then it is told.
    crowd.publish("n4", "a", "t")
    crowd.run(40)
    assert crowd.stores["n4"].statistics().storage.subscriptions == 0
    assert not crowd.heard.notified


def test_ended_subscriptions_are_remembered_for_a_while_only() -> None:
    interests = Interests(10, lambda _: None)
    key = SubscriptionKey("ada", "1")
    interest = Interest(key, "t", None, None, 0)
    assert interests.add(interest, 0) is not None
    interests.end(key, 5 * MICROSECONDS)
    assert interests.add(interest, 15 * MICROSECONDS) is None
    assert interests.add(interest, 15 * MICROSECONDS + 1) is not None
    over = Interest(SubscriptionKey("ada", "2"), "t", None, 3 * MICROSECONDS, 4 * MICROSECONDS)
    assert interests.add(over, 14 * MICROSECONDS) is not None
    assert over in interests.others(b"", 14 * MICROSECONDS)
    assert over not in interests.others(b"", 14 * MICROSECONDS + 1)


def test_subscriptions_that_end_leave_nothing_behind() -> None:
    crowd = Crowd([(20.0, 20.0), (60.0, 20.0)], PLSG)
    crowd.run(60)
    storage = crowd.stores["n0"]._proxy.active
    assert isinstance(storage, PublishLocalStorage)
    for number in range(100):
        for name in "ab":  # of somebody to whom there is no way
            storage._learn(Interest(SubscriptionKey(f"ghost{number}", name), "goal", None, None, 1))
        storage._unlearn(SubscriptionKey(f"ghost{number}", "a"))
    assert len(storage._notifying._untold) == len(storage.router._awaited) == 100
    for number in range(100):
        storage._unlearn(SubscriptionKey(f"ghost{number}", "b"))
    assert not storage._notifying._untold
    assert not storage.router._awaited


def test_who_tells_anew_is_heard_also_if_its_clock_is_ahead_but_not_from_the_far_future() -> None:
    interests = Interests(10, lambda _: None)
    key = SubscriptionKey("ada", "1")

    def told(made: int, now: int) -> bool:
        interest = Interest(key, "t", None, None, made * MICROSECONDS)
        return interests.add(interest, now * MICROSECONDS) is not None

    assert told(0, 0)
    assert not told(106, 100)
    assert told(105, 100)
    assert not told(105, 101), "the same"
    assert told(106, 101)


def test_a_subscription_from_the_far_future_is_over_in_time_and_its_owner_is_heard_again() -> None:
    interests = Interests(10, lambda _: None)
    key, late = SubscriptionKey("ada", "1"), 10**9 * MICROSECONDS
    assert interests.add(Interest(key, "t", None, 50 * MICROSECONDS, late), 0) is not None
    # The clock of its owner was set right.
    assert interests.add(Interest(key, "t", None, 50 * MICROSECONDS, 20 * MICROSECONDS), 20 * MICROSECONDS) is not None
    interests.purge(61 * MICROSECONDS)
    assert len(interests) == 0


@pytest.mark.parametrize("skew", [-3_600, 400, 365 * 86_400])
def test_whose_clock_is_wrong_hears_of_everything_all_the_same(skew: int, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Host.now
    monkeypatch.setattr(Host, "now", lambda host: right(host) + (host.name == "n0") * skew * MICROSECONDS)
    crowd = Crowd(LINE, PLSG, remembering=True)
    crowd.run(40)
    crowd.publish("n1", "before", "t")
    key = crowd.subscribe("n0", "t")
    crowd.run(5)
    crowd.publish("n2", "meanwhile", "t")
    crowd.run(5)
    crowd.world.hosts["n0"].fail()
    crowd.run(100)
    crowd.publish("n3", "missed", "t")
    crowd.world.hosts["n0"].join()
    crowd.run(60)
    crowd.unsubscribe("n0", key)
    crowd.run(5)
    crowd.publish("n4", "after", "t")
    crowd.run(5)
    assert [name.name for _, name in crowd.heard.notified] == ["before", "meanwhile", "missed"]
    assert {store.statistics().storage.subscriptions for store in crowd.stores.values()} == {0}


def test_what_is_known_is_not_told_again() -> None:
    interests = Interests(10, lambda _: None)
    for number in range(300):
        interests.add(Interest(SubscriptionKey("ada", f"{number}"), "t", None, None, 0), 0)
    known = interests.known()
    assert len(interests.others(known, 0)) == 300 - 128
    assert interests.others(known + bytes(3), 0) == interests.others(known, 0)


@pytest.mark.parametrize("share", [0.1, 0.2])
def test_downloads_survive_losses_and_floods_reach_nearly_everybody(share: float) -> None:
    places = [(60.0 * x, 60.0 * y) for x in range(4) for y in range(3)]
    crowd = Crowd(places, MechanismSpec.of("PL/SG", retries=20), network=lossy(share))
    crowd.run(60)
    metadata = crowd.publish("n0", "a", "t", content=bytes(range(250)) * 60)
    for node in range(1, 12):
        crowd.subscribe(f"n{node}", "t")
        crowd.download(f"n{node}", metadata)
    crowd.run(300)
    downloads = [outcome for what, outcome in crowd.heard.outcomes if what == "download"]
    assert len(downloads) == 11
    assert {outcome.content for outcome in downloads} == {bytes(range(250)) * 60}
    assert sum(store.statistics().storage.retried for store in crowd.stores.values()) > 0
    assert {store.statistics().storage.subscriptions for store in crowd.stores.values()} <= {9, 10, 11}
    assert {*crowd.heard.notified} <= crowd.expected()
    assert len(crowd.heard.notified) >= 7


def test_a_download_from_somebody_who_is_off_times_out() -> None:
    crowd = Crowd(LINE, MechanismSpec.of("PL/SG", timeout=1.0, retries=2))
    crowd.run(40)
    metadata = crowd.publish("n4", "a", "t")
    crowd.world.hosts["n4"].fail()
    crowd.download("n0", metadata)
    crowd.run(3.9)  # one of them for the search
    assert "download" not in dict(crowd.heard.outcomes)
    crowd.run(0.2)
    assert dict(crowd.heard.outcomes)["download"].failure is Failure.TIMED_OUT


def test_an_exchange_carries_on_with_what_the_host_has() -> None:
    crowd = Crowd(LINE, PLSG)
    crowd.run(30)
    crowd.publish("n0", "a", "t")
    key = crowd.subscribe("n4", "t")
    crowd.run(2)
    for host in crowd.world.hosts.values():
        assert host.host is not None
        host.host.component(HostEngine).engine.execute("crowdstore", MechanismSpec.of("PL/SG", hesitation=0.05))
    crowd.run(30)
    crowd.publish("n1", "b", "t")
    crowd.run(2)
    assert sorted(crowd.heard.notified) == sorted(crowd.expected())
    assert crowd.stores["n4"].nucleus.told(key) == 2


def test_who_stopped_says_nothing_more() -> None:
    crowd = Crowd(LINE, PLSG)
    crowd.run(5)
    metadata = crowd.publish("n1", "a", "t")
    crowd.subscribe("n0", "t")
    crowd.download("n0", metadata)
    crowd.stores["n0"].stop()
    link = crowd.network.links["n0"]
    before = {kind: messages for (way, kind), (messages, _) in link.books.items() if way == "sent"}
    crowd.run(60)
    assert {kind: messages for (way, kind), (messages, _) in link.books.items() if way == "sent"} == before
    assert not link.open_ports


OBJECT = Metadata(ObjectKey("n1", "a"), ("t",), 0, 3, digest_of(b"abc"))
THEIRS = SubscriptionKey("n0", "x")
ODD: list[Message] = [
    Subscribe(Interest(SubscriptionKey("n9", "1"), "((", None, None, 0)),
    Subscribe(Interest(SubscriptionKey("n9", "2"), "t", 5, 5, 0)),
    Subscribe(Interest(SubscriptionKey("n0", "3"), "t", None, None, 0)),
    Unsubscribe(SubscriptionKey("n0", "3"), 0),
    Unsubscribe(SubscriptionKey("nobody", ""), 0),
    Join(b"odd"),
    JoinAnswer(7, 3, ()),
    JoinAnswer(0, 65_535, ()),
    Notify("n1", "n0", 3, SubscriptionKey("n1", "x"), (OBJECT,)),
    Notify("n1", "n0", 3, THEIRS, (OBJECT,), 5),
    Notify("n1", "n0", 3, THEIRS, (), 5),
    Notify("n0", "n0", 3, THEIRS, (OBJECT,), 5),
    Notify("nobody", "n0", 3, THEIRS, (msgspec.structs.replace(OBJECT, key=ObjectKey("nobody", "a")),)),
    Unwanted("n1", "n0", 3, THEIRS),
    More("n1", "n0", 3, THEIRS, 0, ""),
    More("n0", "n0", 3, THEIRS, 0, ""),
    Get("n1", "n0", 3, ObjectKey("n0", "a"), (0, 0, 9_999)),
    Get("n1", "n0", 3, ObjectKey("n0", "none"), ()),
    Get("n0", "n0", 3, ObjectKey("n0", "a"), (0,)),
    Chunk("n1", "n0", 3, ObjectKey("n1", "a"), -4, b""),
    Chunk("n1", "n0", 3, ObjectKey("n2", "a"), 0, b"abc"),
    Absent("n1", "n0", 3, ObjectKey("n2", "a")),
    Absent("n1", "nowhere", 0, ObjectKey("n2", "a")),
    Absent("n1", "nowhere", 64, ObjectKey("n2", "a")),
    Search("n1", ObjectKey("n0", "a"), b"", 0),
    Search("n0", ObjectKey("n0", "a"), b"", 0),
    Search("nobody", ObjectKey("n0", "none"), digest_of(b"content"), 0),
    Have("n1", "n0", 3, ObjectKey("n2", "a")),
]


def _say(crowd: Crowd, sender: int, to: int, message: Message, port: int = PORT) -> None:
    crowd.network.links[f"n{sender}"].open_ports[port].send(f"n{to}", message)


@pytest.mark.parametrize("message", ODD, ids=lambda message: type(message).__name__)
def test_odd_messages_do_no_harm(message: Message) -> None:
    crowd = Crowd(LINE, PLSG)
    crowd.run(30)
    crowd.publish("n0", "a", "t")
    key = crowd.subscribe("n0", "t")
    crowd.run(1)
    _say(crowd, 1, 0, message)
    crowd.run(1)
    crowd.publish("n2", "b", "t")
    crowd.run(1)
    assert sorted(crowd.heard.notified) == sorted(crowd.expected())
    assert crowd.stores["n0"].nucleus.told(key) == 2


def _bad(message: Message, **changes: Any) -> bytes:
    return encoded(msgspec.structs.replace(message, **changes))


@pytest.mark.parametrize(
    "data",
    [
        _bad(ODD[15], hops=65),
        _bad(ODD[15], hops=-1),
        _bad(ODD[15], source=""),
        _bad(ODD[16], chunks=tuple(range(9))),
        _bad(ODD[9], objects=(msgspec.structs.replace(OBJECT, size=2**40),)),
        _bad(ODD[1], interest=Interest(THEIRS, "t" * 2_000, None, None, 0)),
        _bad(ODD[5], known=bytes(5_000)),
        encoded(Routes((("z", -1, 0),))),
        encoded(Routes((("z", 0, 2**60),))),
        encoded(Routes((("", 0, 2),))),
    ],
)
def test_what_breaks_the_rules_is_no_message(data: bytes) -> None:
    codec: Codec[Any] = Codec(Routes, *{type(message) for message in ODD})
    with pytest.raises(msgspec.DecodeError):
        codec.decoded(data)


def test_a_host_whose_memory_is_handed_on_has_all_of_it() -> None:
    crowd = Crowd(LINE, PLSG, remembering=True)
    crowd.run(20)
    crowd.publish("n0", "a", "t")
    crowd.publish("n0", "b", "t")
    crowd.unpublish("n0", "b")
    key = crowd.subscribe("n0", "t")
    crowd.run(1)
    crowd.world.hosts["n0"].fail()
    crowd.world.hosts["n0"].join()
    crowd.run(20)
    crowd.publish("n1", "c", "t")
    crowd.run(1)
    assert sorted(crowd.heard.notified) == sorted(crowd.expected())
    assert crowd.stores["n0"].nucleus.told(key) == 2
    assert crowd.stores["n0"].statistics().published == 1
