"""Who knows what: nodes contexts and no entities, trusted nodes entities and no contexts, mailboxes neither."""

from __future__ import annotations

import gc
from types import FunctionType, ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.overlay.temporal.worlds import START, Town, inside

from nearcast.model.event import Event
from nearcast.model.temporal import TemporalPredicate
from nearcast.overlay.routing.wire import routed
from nearcast.overlay.temporal.entity import Entity
from nearcast.overlay.temporal.identities import Identities, Owner
from nearcast.overlay.temporal.messages import Delivery, Deposit, Span, trusted_node_of
from nearcast.overlay.temporal.settings import TemporalSettings

CHAIN = [(0, 1), (1, 2), (2, 3)]


@given(st.lists(st.integers(0, 20), max_size=30))
def test_identities_strictly_grow_also_where_the_clock_stands_still_or_goes_back(instants: list[int]) -> None:
    identities = Identities("r7")
    issued = [identities.issue(Owner("ada", str(number)), at) for number, at in enumerate(instants)]
    numbers = [int(vid.partition("@")[0]) for vid in issued]
    assert numbers == sorted(set(numbers))
    assert {trusted_node_of(vid) for vid in issued} <= {"r7"}
    assert [identities.owner(vid) for vid in issued] == [Owner("ada", str(number)) for number in range(len(issued))]
    assert identities.owner("1@elsewhere") is None


def texts_in(thing: object) -> set[str]:
    """All texts that can be reached from it, but for those of programs."""
    found: set[str] = set()
    seen: set[int] = set()
    waiting: list[Any] = [thing]
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, (type, FunctionType, ModuleType)):
            continue
        seen.add(id(each))
        if isinstance(each, str):
            found.add(each)
        elif isinstance(each, bytes):
            found.add(each.decode(errors="replace"))
        elif isinstance(each, dict):  # whose names the collector of garbage does not visit
            waiting += [*each, *each.values()]
        else:
            waiting += gc.get_referents(each)
    return found


def test_no_store_knows_both_who_somebody_is_and_what_he_was() -> None:
    town = Town(4, CHAIN, trusted=(3,), check_wire=True)
    ada = town.person("ada-lovelace", 3)
    ada.register("me", {"profession": "mathematician"})
    ada.go("r001", inside(1))
    town.run(30)
    ada.walk(inside(1, 0.2))
    town.run(30)
    node, trusted = town.temporal["r001"], town.trusted["r003"]
    archived = texts_in(node.archive)
    assert {"profession", "mathematician"} <= archived
    assert not any("ada-lovelace" in text for text in archived)
    entities = texts_in((trusted.identities, trusted._entities, trusted._messages))
    assert "ada-lovelace" in entities
    assert not any("profession" in text or "mathematician" in text for text in entities)
    event = town.event("profession = 'mathematician'", TemporalPredicate("overlaps", START, town.now), name="e")
    ada.go(None, None)
    town.run(60)
    town.publish(0, event)
    town.run(30)
    # What a message asks for, its receivers may read; what they were beyond that, or who they are, a mailbox does not know.
    kept = texts_in(town.mailbox._boxes)
    assert town.mailbox.statistics().kept == 1
    assert not any("ada-lovelace" in text for text in kept)
    assert not any("position" in text for text in texts_in(trusted._messages) if "profession" not in text)


def test_identities_change_with_every_move_unless_somebody_wants_to_keep_his() -> None:
    town = Town(4, CHAIN)
    for name, changing in (("ada", True), ("bob", False)):
        person = town.person(name, changing=changing)
        person.register("me", {"who": name})
        for home in (1, 2, 1):
            person.go(f"r00{home}", inside(home))
            town.run(30)
    used = {
        name: {
            span.vid
            for temporal in town.temporal.values()
            for span in temporal.archive.spans(Event("e", "news", town.now, to=f"who = '{name}'"))
        }
        for name in ("ada", "bob")
    }
    assert {name: len(vids) for name, vids in used.items()} == {"ada": 3, "bob": 1}


def asked(town: Town, relation: str, a: int, b: int, lifetime: int | None = None) -> Any:
    when = TemporalPredicate(relation, a, b)
    return routed(Event("e", "news", town.now, to="a = 1", when=when, lifetime=lifetime), "r000")


def test_an_interval_that_goes_on_elsewhere_is_judged_as_one() -> None:
    """Somebody who walks from node to node was there for long, not several times for a short while."""
    town = Town(4, CHAIN, TemporalSettings(settling=4.0))
    ada, trusted = town.person("ada"), town.trusted["r000"]
    vids = [trusted.issue("ada", "me") for _ in range(2)]
    first, second = (START + 10, START + 20), (START + 20, START + 60)
    message = asked(town, "during", START + 5, START + 30)
    trusted.resolved(message, [Span(vids[0], 0, *first)], False)
    town.run(2)
    trusted.resolved(message, [Span(vids[1], 0, *second)], False)
    town.run(60)
    ada.go("r001", None)
    town.run(20)
    assert ada.got == []
    # The same intervals of another context of hers, or of another conjunct, are others.
    trusted.resolved(message, [Span(trusted.issue("ada", "car"), 0, *first)], False)
    town.run(20)
    assert ada.got == []  # nobody who has ever said what "car" is owns it here
    assert trusted.statistics().delivered + trusted.statistics().deposited == 1


@pytest.mark.parametrize("relation", ["overlaps", "during"])
def test_what_more_answers_could_falsify_waits_for_them(relation: str) -> None:
    town = Town(4, CHAIN, TemporalSettings(settling=8.0))
    trusted = town.trusted["r000"]
    town.run(1)
    message = asked(town, relation, START, START + 90)
    trusted.resolved(message, [Span(trusted.issue("ada", "me"), 0, START + 1, START + 2)], False)
    assert trusted.statistics().waiting == (relation == "overlaps")
    town.run(7)
    assert trusted.statistics().waiting == (relation == "overlaps")
    town.run(2)
    assert trusted.statistics().waiting == 1


def test_a_message_is_delivered_once_whatever_is_found_later() -> None:
    town = Town(4, CHAIN)
    trusted = town.trusted["r000"]
    message = asked(town, "overlaps", START, START + 90)
    for _ in range(3):
        vid = trusted.issue("ada", "me")
        trusted.resolved(message, [Span(vid, 0, START + 1, START + 2), Span(vid, 0, START + 3, None)], True)
        town.run(5)
    assert trusted.statistics().waiting == 1
    trusted.resolved(message, [Span("77@r000", 0, START + 1, START + 2)], True)
    assert trusted.statistics().unknown == 1


def test_a_message_whose_life_has_ended_when_it_would_be_for_somebody_is_for_nobody() -> None:
    town = Town(4, CHAIN, TemporalSettings(settling=1.0))
    trusted = town.trusted["r000"]
    ends = town.now + 30_000_000
    for lifetime, name in ((20_000_000, "ada"), (40_000_000, "bob")):
        message = asked(town, "contains", START, ends, lifetime)
        message = type(message)(**{**{f: getattr(message, f) for f in message.__struct_fields__}, "id": name})
        trusted.resolved(message, [Span(trusted.issue(name, "me"), 0, START - 5, None)], True)
    town.run(60)
    assert trusted.statistics().waiting == 1


def test_an_open_span_is_judged_when_time_has_proven_it_and_not_if_it_ended_before() -> None:
    town = Town(4, CHAIN, TemporalSettings(settling=2.0))
    trusted = town.trusted["r000"]
    proof = town.now + 30_000_000
    message = asked(town, "contains", START, proof)
    ada, bob = (trusted.issue(name, "me") for name in ("ada", "bob"))
    trusted.resolved(message, [Span(ada, 0, START - 5, None), Span(bob, 0, START - 5, None)], False)
    town.run(29)
    # He left just in time, and word of it comes later.
    town.run(2)
    trusted.resolved(message, [Span(bob, 0, START - 5, proof - 1)], False)
    trusted.resolved(message, [Span(bob, 0, START - 5, None)], False)
    assert trusted.statistics().waiting == 0
    town.run(20)
    assert trusted.statistics().waiting == 1
    assert [d.message.id for _, d in trusted._entities["ada"].waiting] == ["e"]


def test_messages_are_forgotten_when_nothing_more_can_come_for_them() -> None:
    town = Town(4, CHAIN, TemporalSettings(remembered=100.0))
    trusted = town.trusted["r000"]
    trusted.resolved(asked(town, "overlaps", START, START + 9), [Span("1@r000", 0, 1, 2)], True)
    assert trusted.statistics().messages == 1
    town.run(90)
    assert trusted.statistics().messages == 1
    town.run(60)
    assert trusted.statistics().messages == 0


def test_a_device_that_does_not_answer_gets_its_message_by_mail_and_only_once() -> None:
    town = Town(4, CHAIN)
    ada = town.person("ada")
    ada.register("me", {"a": 1})
    ada.go("r001", inside(1))
    town.run(20)
    event = town.event("a = 1", TemporalPredicate("overlaps", START, town.now), name="e")
    town.world.hosts["phone of ada"].fail()
    town.publish(3, event)
    town.run(40)
    assert town.mailbox.statistics().kept == 1
    assert town.trusted["r000"].statistics().delivered == 0


def test_a_copy_that_came_directly_and_by_mail_reaches_the_application_once() -> None:
    town = Town(4, CHAIN)
    ada = town.person("ada")
    ada.register("me", {"a": 1})
    ada.go("r001", inside(1))
    town.run(20)
    event = town.event("a = 1", TemporalPredicate("overlaps", START, town.now), name="e")
    town.publish(3, event)
    town.run(20)
    assert ada.got == ["e"]
    companion = ada.device._companion
    assert isinstance(companion, Entity)
    delivery = Delivery(routed(event, "r000"), ada.device.aspects)
    town.mailbox._deposit(Deposit(box=companion._box, delivery=delivery))
    town.run(300)
    assert ada.got == ["e"]
    assert town.mailbox.statistics().kept == 0


def test_what_waits_for_somebody_without_a_mailbox_comes_when_he_returns() -> None:
    town = Town(4, CHAIN)
    ada = town.person("ada", mailbox=False)
    ada.register("me", {"a": 1})
    ada.go("r001", inside(1))
    town.run(20)
    ada.go(None, None)
    event = town.event("a = 1", TemporalPredicate("overlaps", START, town.now), name="e")
    town.run(60)
    town.publish(3, event)
    town.run(60)
    assert (ada.got, town.trusted["r000"].statistics().waiting) == ([], 1)
    ada.go("r002", inside(2))
    town.run(20)
    assert (ada.got, town.trusted["r000"].statistics().waiting) == (["e"], 0)
