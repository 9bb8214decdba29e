"""Who has forgotten everything, or is told in another order, misses nobody for long, and keeps nothing for ever."""

from __future__ import annotations

from tests.overlay.routing_worlds import GivenTree
from tests.overlay.temporal.test_hostile import message, there
from tests.overlay.temporal.worlds import START, Town

from nearcast.model.event import Event
from nearcast.model.temporal import TemporalPredicate
from nearcast.overlay.routing.wire import routed
from nearcast.overlay.temporal.attribute_index import Ring
from nearcast.overlay.temporal.identities import Identities
from nearcast.overlay.temporal.messages import Delivery, Indexed, Span
from nearcast.overlay.temporal.settings import TemporalSettings

CHAIN = [(0, 1), (1, 2), (2, 3)]


def test_a_trusted_node_that_has_forgotten_its_identities_issues_others() -> None:
    town = Town(4, CHAIN)
    ada, _ = there(town)
    trusted = town.trusted["r000"]
    trusted.identities = Identities("r000")
    trusted._entities.clear()
    town.run(30)
    event = town.event("a = 1", TemporalPredicate("overlaps", town.now - 1, town.now), name="e")
    town.publish(2, event)
    town.run(30)
    assert ada.got == ["e"]


def test_a_trusted_node_keeps_no_message_longer_than_any_lives() -> None:
    town = Town(4, CHAIN, TemporalSettings(longest_life=100.0, remembered=40.0))
    trusted = town.trusted["r000"]
    when = TemporalPredicate("overlaps", START, START + 10**15)
    trusted.resolved(routed(Event("e", "news", town.now, to="a = 1", when=when), "r000"), [], True)
    town.run(90)
    assert trusted.statistics().messages == 1
    town.run(70)
    assert trusted.statistics().messages == 0


def test_what_waits_for_somebody_who_never_comes_is_kept_as_long_as_mail_is() -> None:
    town = Town(4, CHAIN, TemporalSettings(kept=100.0, remembered=40.0))
    town.run(1)
    trusted = town.trusted["r000"]
    trusted.resolved(message(town), [Span(trusted.issue("ada", "me"), 0, START + 1, START + 2)], True)
    town.run(90)
    assert trusted.statistics().waiting == 1
    town.run(30)
    assert trusted.statistics().waiting == 0


def test_mail_for_a_router_without_mailboxes_waits_where_it_is() -> None:
    town = Town(4, CHAIN)
    trusted = town.trusted["r000"]
    trusted.issue("ada", "me")
    for mailbox in ("r001", "r000"):
        entity = trusted._entities["ada"]
        entity.mailbox = mailbox
        trusted._deposit(entity, Delivery(message(town, mailbox), ("me",)))
    town.run(30)
    assert trusted.statistics().waiting == 2


def test_a_keeper_that_saw_a_tree_which_nobody_else_saw_still_knows_its_pieces() -> None:
    town = Town(4, CHAIN, TemporalSettings(indexed=("a",)))
    town.run(1)
    index = town.temporal["r001"].index
    assert index is not None
    key = next(("a", str(n)) for n in range(99) if index._ring.keeper(("a", str(n))) == "r001")
    index.hear("r002", Indexed(key=key, version=1, pieces=(("5@r000", START, None, {"a": 1}),)))
    more = next(f"x{n}" for n in range(9_999) if _keeper(key, [*town.names, f"x{n}"]) == f"x{n}")
    edges = [(town.names[one], town.names[other]) for one, other in CHAIN]
    index.tree_changed(GivenTree("r001", [*edges, ("r003", more)]))
    town.run(5)
    index.tree_changed(GivenTree("r001", edges))
    town.run(100)
    assert len(index) == 1
    # What it is not asked for any more it does not keep for ever.
    index.tree_changed(GivenTree("r001", [*edges, ("r003", more)]))
    town.run(100)
    assert len(index) == 0


def _keeper(key: tuple[str, str], routers: list[str]) -> str | None:
    return Ring(routers).keeper(key)
