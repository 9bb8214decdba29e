"""Stories: a question that is put to the running broker, or to Spark, its answer, and what the definition of delivery says of it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from nearcast.cli.demo.analyst import Analyst
from nearcast.cli.demo.city import City
from nearcast.cli.demo.crowd import Crowd
from nearcast.cli.demo.person import INTEREST, TOPIC
from nearcast.cli.demo.places import HALF, MARKET, point_at
from nearcast.cli.demo.witness import BORDER, RADIUS, Witness
from nearcast.client.client import Client, connect
from nearcast.client.events import Events
from nearcast.client.track import on_the_wire
from nearcast.errors import TimedOut
from nearcast.model.area import Circle
from nearcast.model.delivery import receivers
from nearcast.model.event import Event
from nearcast.model.explanation import Explanation, explain
from nearcast.model.geometry import Point, distance
from nearcast.model.history import History
from nearcast.model.subscription import Subscription
from nearcast.model.time import Instant, TimeFrame
from nearcast.mqtt.requests import subscription_id
from nearcast.runtime.live.clock import LiveClock

YOU: Final = "you"
_PATIENCE: Final = 30.0
_JAMS: Final = ((190.0, 40.0, 4), (-60.0, 60.0, 2), (60.0, 480.0, 5))
"""Metres east and north of the centre, and how severe."""

_TRAFFIC: Final = Subscription("traffic/#", where="severity >= 3", area=Circle(300))
_SIREN: Final = Circle(350)
_WITH_WHEELS: Final = "under(transport, '/vehicle')"
_QUESTION: Final = "what was said here"
_BATCH: Final = 20
_JUST_NOW: Final = "just now"


@dataclass(frozen=True, slots=True)
class Story:
    """What was said, who received it, and why somebody does or does not."""

    title: str
    said: tuple[str, ...]
    answer: tuple[str, ...]
    explanation: Explanation
    holds: bool
    """Whether the broker did what the definition says."""

    around: tuple[float, float, float]
    """What a map of it shows: metres east and north of the centre, and how far around."""

    bright: tuple[tuple[float, float], ...] = ()
    """Places of receivers, or of what was received."""

    circles: tuple[tuple[float, float, float], ...] = ()
    marks: tuple[tuple[float, float, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Stage:
    """The city, in which everybody stands still, and the broker that serves it."""

    url: str
    city: City
    crowd: Crowd
    witness: Witness
    analyst: Analyst | None = None

    def client(self) -> Client:
        return connect(self.url, session_expiry=0)


async def stories(stage: Stage) -> AsyncIterator[Story]:
    yield await around_me(stage)
    yield await to_all_on_wheels(stage)
    yield await what_was_said_here(stage)
    if stage.analyst is not None:
        yield await asked_of_spark(stage, stage.analyst)


async def around_me(stage: Stage) -> Story:
    """The receiver's side: a subscription that goes where you go."""
    here, now = point_at(60, -40), LiveClock().now()
    history = History()
    history.moved(YOU, now, on_the_wire(here))
    history.subscribed(YOU, now, _TRAFFIC)
    events = [
        Event(f"jam-{severity}", "traffic/jam", now, {"severity": severity}, place=on_the_wire(point_at(east, north)))
        for east, north, severity in _JAMS
    ]
    async with stage.client() as you, stage.client() as town_hall:
        await you.update(lat=here.lat, lon=here.lon)
        async with you.subscribe("traffic/#", where="severity >= 3", within=300) as heard:
            for event in events:
                await town_hall.publish(event.topic, id=event.id, place=event.place, attributes=event.attributes)
            await town_hall.publish("traffic/end", id="end", place=None, severity=5)
            got = {event.id for event in await _until("end", heard)}
    lines = []
    for event, (_, _, severity) in zip(events, _JAMS, strict=True):
        assert event.place is not None
        verdict = "delivered" if event.id in got else "not delivered"
        lines.append(f"severity {severity}, {distance(here, event.place):3.0f} m away: {verdict}")
    return Story(
        title="Around me",
        said=("you subscribe to traffic/#", "where severity >= 3", "within 300 m of wherever you are"),
        answer=tuple(lines),
        explanation=explain(history, events[-1], YOU, now),
        holds=got == {event.id for event in events if YOU in receivers(history, event, now)},
        around=(60.0, 120.0, 480.0),
        circles=((60.0, -40.0, 300.0),),
        marks=((60.0, -40.0, YOU), *((east, north, str(severity)) for east, north, severity in _JAMS)),
    )


async def to_all_on_wheels(stage: Stage) -> Story:
    """The sender's side: an area around the sender, and what the receivers are."""
    here = on_the_wire(point_at(0, 0))
    people = {str(person.number): person for person in stage.crowd.people}
    async with stage.client() as ambulance:
        await ambulance.update(lat=here.lat, lon=here.lon)
        history, now = _everybody(stage), LiveClock().now()
        event = Event("siren", "city/ambulance", now, reach=_SIREN.anchored(here), to=_WITH_WHEELS)
        await ambulance.publish(event.topic, id=event.id, place=None, reach=_SIREN, to=_WITH_WHEELS)
        await ambulance.publish("city/end", id="all clear", place=None)
        # In order, and to everybody: whoever has this one has got the other or will not get it.
        await _all_have(stage, "all clear")
    got = {str(number) for number in stage.witness.others.get(event.id, ())}
    wheels = [name for name, person in people.items() if stage.city.transport_of(person.number) != "/foot"]
    on_foot = [name for name in people if name not in wheels]
    return Story(
        title="To everybody on wheels around the ambulance",
        said=("the ambulance publishes", f"reach: {_SIREN.radius:.0f} m around itself", f"to: {_WITH_WHEELS}"),
        answer=(
            f"{len(got)} of {len(wheels)} on wheels hear it,",
            f"and {len(got & set(on_foot))} of {len(on_foot)} on foot",
        ),
        explanation=explain(history, event, (sorted(set(people) - got) or sorted(people))[0], now),
        holds=got == receivers(history, event, now),
        around=(0.0, 0.0, HALF),
        bright=tuple(stage.city.where(int(name)) for name in got),
        circles=((0.0, 0.0, _SIREN.radius),),
        marks=((0.0, 0.0, "+"),),
    )


async def what_was_said_here(stage: Stage) -> Story:
    """The past: a newcomer asks for it, and it comes first."""
    here, now = on_the_wire(MARKET.point), LiveClock().now()
    async with stage.client() as you:
        await you.update(lat=here.lat, lon=here.lon)
        async with you.subscribe(TOPIC, within=RADIUS, since="-10m", batch=20) as heard:
            await you.publish(TOPIC, id=_JUST_NOW)
            ids = [event.id for event in await _until(_JUST_NOW, heard)]
    return _said_at_the_market(
        stage,
        ids,
        total=len(ids),
        title="What was said here in the last ten minutes?",
        said=(
            "you come to the market and subscribe",
            f"to {TOPIC} within {RADIUS:.0f} m",
            "since -10m, in batches of 20",
        ),
        answer=(
            f"{len(ids)} of {len(stage.witness.flights)} stored events come first,",
            "then what is said just now",
        ),
        explained=(here, now),
    )


async def asked_of_spark(stage: Stage, analyst: Analyst) -> Story:
    """The past once more: the question is found in the journal, and answers come back through the broker."""
    here = on_the_wire(MARKET.point)
    async with stage.client() as you:
        await you.update(lat=here.lat, lon=here.lon)
        async with you.subscribe(TOPIC, within=RADIUS, name=_QUESTION) as heard:
            await you.update(lat=here.lat, lon=here.lon)  # by now it has a scheme, which tells the broker at once
            question, now = subscription_id(TOPIC, _QUESTION), LiveClock().now()
            found = await analyst.answer(question, now, _BATCH)
            came = [(await heard.next(_PATIENCE)).id for _ in range(found.given)]
    return _said_at_the_market(
        stage,
        [event for event in came if event != _JUST_NOW],  # that was said in the story before this one, by you
        total=found.total - 1,
        title="What was said here in the last ten minutes, asked of Spark?",
        said=("you subscribe to it at the market;", "Spark finds that in the journal,", "and looks into the past"),
        answer=(f"{found.total} events match,", f"the first {found.given} of them come back by MQTT"),
        explained=(here, now),
    )


def _said_at_the_market(
    stage: Stage,
    ids: list[str],
    *,
    total: int,
    title: str,
    said: tuple[str, ...],
    answer: tuple[str, ...],
    explained: tuple[Point, Instant],
) -> Story:
    """What came is what was said within the radius, each once; of so many in all, the oldest."""
    east, north = MARKET.metres
    flights, got = stage.witness.flights, set(ids)
    metres = {flight.id: math.hypot(flight.east - east, flight.north - north) for flight in flights.values()}
    certain = {event for event, away in metres.items() if away <= RADIUS - BORDER}
    possible = {event for event, away in metres.items() if away <= RADIUS + BORDER}
    farther = min((event for event in metres if event not in possible), key=metres.__getitem__, default="")
    return Story(
        title=title,
        said=said,
        answer=answer,
        explanation=_past_explained(stage, farther, *explained),
        holds=got <= possible and len(ids) == len(got) and len(certain) <= total <= len(possible),
        around=(east, north, 320.0),
        bright=tuple((flights[event].east, flights[event].north) for event in got & set(metres)),
        circles=((east, north, RADIUS),),
        marks=((east, north, YOU),),
    )


def _past_explained(stage: Stage, event: str, here: Point, now: int) -> Explanation:
    """Why the nearest event that did not come does not."""
    history = History()
    history.moved(YOU, now, here)
    history.subscribed(YOU, now, Subscription(TOPIC, area=Circle(RADIUS), frame=TimeFrame.parse("-10m", now=now)))
    flight = stage.witness.flights.get(event)
    place = here if flight is None else point_at(flight.east, flight.north)
    return explain(history, Event(event or "none", TOPIC, now - 1, place=place), YOU, now)


def _everybody(stage: Stage) -> History:
    """All that the broker was told of the people who are here."""
    history, now = History(), LiveClock().now()
    for person in stage.crowd.people:
        name = str(person.number)
        history.moved(name, now, on_the_wire(point_at(*stage.witness.place_of(person.number))))
        history.registered(name, now, "default", person.context)
        history.subscribed(name, now, Subscription(INTEREST, area=Circle(RADIUS), no_local=True))
    return history


async def _until(last: str, events: Events) -> list[Event]:
    """What comes before the event of that id."""
    seen = []
    while (event := await events.next(_PATIENCE)).id != last:
        seen.append(event)
    return seen


async def _all_have(stage: Stage, event: str) -> None:
    waited = 0.0
    while len(stage.witness.others.get(event, ())) < len(stage.crowd.people):
        if waited > _PATIENCE:
            raise TimedOut(f"not everybody in the city has got the event {event!r} within {_PATIENCE:.0f} s")
        await asyncio.sleep(0.05)
        waited += 0.05


def reason(explanation: Explanation) -> str:
    """The innermost term that decides, in one line."""
    decisive = [part for part in explanation.parts if part.holds == explanation.holds]
    if not decisive:
        return f"{explanation.term}: {explanation.detail}" if explanation.detail else explanation.term
    return reason(decisive[0])
