"""What the broker halves make of messages that arrive in another order than they were sent."""

from __future__ import annotations

from typing import Any

from tests.dissemination.transitions.story import HOME, PLANE

from nearcast.filtering.broker_half import Cloud, Tally
from nearcast.filtering.context import ClientContext
from nearcast.filtering.messages import AssignmentRequest, ContextUpdate
from nearcast.filtering.ste import SteBroker
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.subscription import Subscription

AHEAD = Event("ahead", "news", 0, place=PLANE.to_point(0.0, 200.0))
BEHIND = Event("behind", "news", 0, place=PLANE.to_point(0.0, -200.0))


def broker(*subscriptions: Subscription) -> SteBroker:
    """Of one client, who walks to the north."""
    half = SteBroker(Cloud(_say_nothing, Tally()), 1.5, 15.0)
    half.adopt("ada", ClientContext({held.id: held for held in subscriptions}))
    assert half.hear("ada", ContextUpdate(5, HOME.lat, HOME.lon, 4.0, 0.0, clock=2))
    return half


def test_the_old_scheme_s_word_of_a_fix_does_not_replace_the_new_one_s() -> None:
    half = broker(Subscription("news", area=Circle(125)))
    assert half.receivers(AHEAD, None) == ["ada"]
    # Said before the client came to STE, of the same fix, and overtaken: it does not know where she is going.
    assert not half.hear("ada", AssignmentRequest(5, HOME.lat, HOME.lon, clock=1))
    assert half.receivers(AHEAD, None) == ["ada"]
    assert half.hear("ada", AssignmentRequest(6, HOME.lat, HOME.lon, clock=1))
    assert half.receivers(AHEAD, None) == []


def test_what_is_left_is_not_judged_by_the_envelope_of_what_has_ended() -> None:
    half = broker(Subscription("news", area=Circle(125), id="near"), Subscription("news", id="all"))
    assert half.receivers(BEHIND, None) == ["ada"]
    half.unsubscribe("ada", "near")
    assert half.receivers(BEHIND, None) == ["ada"]


def _say_nothing(_client: str, _message: Any) -> None: ...
