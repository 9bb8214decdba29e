"""What no honest router or device says must not stop one, nor keep what is honest from anybody."""

from __future__ import annotations

import msgspec
import pytest
from tests.overlay.temporal.worlds import START, Person, Town, inside

from nearcast.model.event import Event
from nearcast.model.temporal import TemporalPredicate
from nearcast.model.time import LARGEST
from nearcast.overlay.routing.access import Registration
from nearcast.overlay.routing.context_node import ContextNode
from nearcast.overlay.routing.wire import Routed, routed
from nearcast.overlay.temporal.entity import Entity
from nearcast.overlay.temporal.messages import (
    FULLY,
    Delivery,
    Deposit,
    Indexed,
    Kept,
    Question,
    Resolution,
    Span,
)
from nearcast.overlay.temporal.settings import TemporalSettings
from nearcast.runtime.messages import encoded

CHAIN = [(0, 1), (1, 2), (2, 3)]
UNREADABLE = 1 << 63


def message(town: Town, name: str = "e") -> Routed:
    when = TemporalPredicate("overlaps", START, START + 90)
    return routed(Event(name, "news", town.now, to="a = 1", when=when), "r000")


def broken(town: Town) -> Routed:
    return msgspec.structs.replace(message(town, "broken"), to="this is no filter (")


@pytest.mark.parametrize(
    "wrong",
    [
        {"depth": 0},
        {"depth": -3},
        {"points": ("r000",)},
        {"patience": -1},
        {"patience": UNREADABLE},
    ],
)
def test_a_question_that_nobody_asks_is_counted_and_left(wrong: dict[str, object]) -> None:
    town = Town(4, CHAIN)
    town.run(10)
    honest = Question(message=message(town), depth=FULLY, patience=60_000_000)
    question = msgspec.structs.replace(honest, number=7, **wrong)
    town.temporal["r003"]._receive("r002", question)
    town.run(80)
    assert town.temporal["r003"].statistics().malformed == 1


@pytest.mark.parametrize("at", [UNREADABLE, -UNREADABLE, LARGEST])
def test_a_context_since_an_instant_that_is_none_is_refused(at: int) -> None:
    town = Town(4, CHAIN)
    host = town.world.hosts["r001"].host
    assert host is not None
    node = host.component(ContextNode)
    node._receive("phone of eve", Registration(1, 1, {"a": 1}, at, "5@r000"))
    assert node.malformed == 1
    assert len(town.temporal["r001"].archive) == 0
    node._receive("phone of eve", Registration(1, 2, {"a": 1}, town.now, "5@r000"))
    assert len(town.temporal["r001"].archive) == 1


@pytest.mark.parametrize("bounds", [(UNREADABLE, None), (START, UNREADABLE), (LARGEST, None)])
def test_pieces_and_spans_at_instants_that_are_none_are_refused(bounds: tuple[int, int | None]) -> None:
    town = Town(4, CHAIN, TemporalSettings(indexed=("a",)))
    town.run(1)
    router = town.temporal["r000"]
    router._receive("r001", Indexed(key=("a", "1"), version=1, pieces=(("5@r000", *bounds, {"a": 1}),), number=1))
    vid = town.trusted["r000"].issue("ada", "me")
    router._receive("r001", Resolution(message=message(town), spans=(Span(vid, 0, *bounds),), whole=True, number=2))
    assert router.statistics().malformed == 2
    assert router.statistics().indexed == 0
    assert town.trusted["r000"].statistics().waiting == 0


def there(town: Town) -> tuple[Person, Entity]:
    ada = town.person("ada")
    ada.register("me", {"a": 1})
    ada.go("r001", inside(1))
    town.run(20)
    companion = ada.device._companion
    assert isinstance(companion, Entity)
    return ada, companion


def test_mail_that_nobody_can_read_does_not_keep_the_rest_in_the_box() -> None:
    town = Town(4, CHAIN)
    ada, companion = there(town)
    mailbox = town.temporal["r003"]
    for number, each in enumerate((broken(town), message(town))):
        delivery = Delivery(each, ada.device.aspects)
        mailbox._receive("r000", Deposit(box=companion._box, delivery=delivery, number=number))
    assert mailbox.statistics().malformed == 1
    town.run(20)
    assert ada.got == ["e"]
    assert town.mailbox.statistics().kept == 0
    # From a mailbox that did not look: whatever can be read is.
    mail = tuple(Delivery(each, ada.device.aspects) for each in (broken(town), message(town, "f")))
    companion.hear("r003", encoded(Kept(mail)))
    assert ada.got == ["e", "f"]
    assert companion.malformed == 1


def test_a_device_takes_messages_from_those_it_trusts_alone() -> None:
    town = Town(4, CHAIN)
    ada, companion = there(town)
    delivery = Delivery(message(town), ada.device.aspects)
    companion.hear("r002", encoded(delivery))
    companion.hear("r002", encoded(Kept((delivery,))))
    assert ada.got == []
    companion.hear("r000", encoded(delivery))
    assert ada.got == ["e"]


def test_a_message_that_is_published_twice_at_once_is_asked_for_once() -> None:
    town = Town(4, CHAIN, TemporalSettings(indexed=("a",), settling=3.0))
    ada, _ = there(town)
    event = town.event("a = 1", TemporalPredicate("overlaps", START, town.now), name="e")
    for _ in range(2):
        town.publish(2, event)
    town.run(90)
    assert ada.got == ["e"]
    index = town.temporal["r002"].index
    assert index is not None
    assert not index._waiting
