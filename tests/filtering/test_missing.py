"""Events for subscribers of whom too little is known: delivered to all, kept for a while, or dropped (BYPASS.KOM 4.2.3)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nearcast.filtering.context import ClientContext
from nearcast.filtering.missing import WaitingEvents, unplaced_receivers
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.model.time import TimeFrame

SECOND = 1_000_000


def event(name: str, **more: object) -> Event:
    return Event(name, "news", 5, publisher="ada", place=Point(1, 2), **more)  # type: ignore[arg-type]


def test_who_might_want_it_is_who_accepts_the_content_and_has_an_area() -> None:
    area = Circle(100)
    held = {
        "wants it": Subscription("news", area=area),
        "other topic": Subscription("sport", area=area),
        "other content": Subscription("news", "severity > 3", area),
        "ada": Subscription("news", area=area, no_local=True),
        "later": Subscription("news", area=area, frame=TimeFrame(6, None)),
        "no area": Subscription("news"),  # it needs no context, and has got the event already
    }
    contexts = [(name, ClientContext({"": subscription})) for name, subscription in held.items()]
    assert unplaced_receivers(event("e", attributes={"severity": 2}), contexts) == ["wants it"]


def test_what_waits_is_taken_once_and_in_order() -> None:
    waiting = WaitingEvents(2.0)
    for name in ("e1", "e2"):
        waiting.keep("bob", event(name), "channel", 0)
    waiting.keep("cem", event("e1"), None, 0)
    assert [(kept.event.id, kept.channel) for kept in waiting.take("bob", SECOND)] == [
        ("e1", "channel"),
        ("e2", "channel"),
    ]
    assert waiting.take("bob", SECOND) == []
    assert (len(waiting), waiting.given_up) == (1, 0)


def test_nothing_waits_longer_than_agreed() -> None:
    waiting = WaitingEvents(2.0)
    waiting.keep("bob", event("e1"), None, 0)
    waiting.keep("bob", event("e2"), None, SECOND)
    assert [kept.event.id for kept in waiting.take("bob", 2 * SECOND + 1)] == ["e2"]
    assert waiting.given_up == 1
    waiting.keep("bob", event("e3"), None, 0)
    waiting.expire(2 * SECOND)
    assert len(waiting) == 1
    waiting.expire(2 * SECOND + 1)
    assert (len(waiting), waiting.given_up, waiting.take("bob", 0)) == (0, 2, [])


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("keep"), st.sampled_from("abc")),
            st.tuples(st.just("take"), st.sampled_from("abc")),
            st.tuples(st.just("expire"), st.just("")),
        )
    ),
    st.integers(1, 4),
)
def test_of_a_full_buffer_the_oldest_are_given_up_first_and_everything_is_counted(
    steps: list[tuple[str, str]], largest: int
) -> None:
    waiting, plain, kept, taken, given_up = WaitingEvents(3e-6, largest), list[tuple[str, str, int]](), 0, 0, 0
    for now, (what, client) in enumerate(steps):
        fresh = [each for each in plain if what == "keep" or each[2] + 3 >= now]
        given_up += len(plain) - len(fresh)
        plain = fresh
        if what == "keep":
            kept += 1
            waiting.keep(client, event(f"e{now}"), None, now)
            plain.append((client, f"e{now}", now))
            given_up += len(plain) > largest
            plain = plain[-largest:]
        elif what == "take":
            expected = [name for holder, name, _ in plain if holder == client]
            plain = [each for each in plain if each[0] != client]
            found = [each.event.id for each in waiting.take(client, now)]
            assert found == expected
            taken += len(found)
        else:
            waiting.expire(now)
        assert (len(waiting), waiting.given_up) == (len(plain), given_up)
        assert kept == taken + given_up + len(waiting)
