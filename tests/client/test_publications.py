"""Whom an event is for travels as the application wrote it, and means the same to the broker."""

import pytest

from nearcast.client.publications import Outgoing, made
from nearcast.errors import InvalidEvent
from nearcast.model.cql2 import parse, parse_addressing
from nearcast.model.predicate import Predicate
from nearcast.model.temporal import TemporalPredicate
from nearcast.mqtt import names
from nearcast.mqtt.publication import publication

NOW = 1_800_000_000_000_000
CARS = "transport = 'car'"
LATELY = "overlaps(time, '-10m', 'now')"


def temporal(text: str) -> TemporalPredicate:
    found = parse_addressing(text, now=NOW)[1]
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("to", "when", "written"),
    [
        (None, None, {}),
        (CARS, None, {names.TO: CARS}),
        (f"{CARS} AND {LATELY}", None, {names.TO: f"{CARS} AND {LATELY}"}),
        (LATELY, None, {names.TO: LATELY}),
        (None, LATELY, {names.WHEN: LATELY}),
        (CARS, LATELY, {names.TO: CARS, names.WHEN: LATELY}),
        (CARS, temporal(LATELY), {names.TO: CARS, names.WHEN: str(temporal(LATELY))}),
        (parse(CARS), LATELY, {names.TO: CARS, names.WHEN: LATELY}),
        (parse(CARS), temporal(LATELY), {names.TO: CARS, names.WHEN: str(temporal(LATELY))}),
    ],
)
def test_texts_go_as_they_were_written(
    to: str | Predicate | None, when: str | TemporalPredicate | None, written: dict[str, str]
) -> None:
    ready = made(Outgoing("a/b", b"", None, to, when, (), None, {}), "e1", NOW, None, None, None)
    assert dict(ready.properties) == {names.ID: "e1", **written}
    assert publication("a/b", b"", ready.properties).event("e1", NOW, None, None) == ready.event


@pytest.mark.parametrize("text", ["a\0b", "a" * 65_536, "ä" * 40_000], ids=["null", "long", "long in bytes"])
def test_texts_that_mqtt_does_not_know_are_refused_before_they_end_the_connection(text: str) -> None:
    tagged = Outgoing("a/b", b"", None, None, None, (text,), None, {})
    plain = Outgoing("a/b", b"", None, None, None, (), None, {})
    for given, identifier in ((tagged, "e1"), (plain, text)):
        with pytest.raises(InvalidEvent, match=r"U\+0000"):
            made(given, identifier, NOW, None, None, None)
