"""Three stories, each a question that was asked of the city as it stands, and its answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nearcast.cli.demo.city import BRIDGE, HALF_HEIGHT, METRES_PER_DEGREE, PLACES, TRAFFIC, City, point_at
from nearcast.model.area import Box, Circle
from nearcast.model.delivery import receivers
from nearcast.model.event import Event
from nearcast.model.explanation import Explanation, explain
from nearcast.model.geometry import distance
from nearcast.model.predicate_text import value_text

YOU = "you"


@dataclass(frozen=True, slots=True)
class Story:
    """What was said, who receives it, and why somebody does or does not."""

    title: str
    said: tuple[str, ...]
    answer: tuple[str, ...]
    explanation: Explanation
    holds: bool
    """Whether the answer is the one that counting by hand gives."""
    around: tuple[float, float, float]
    """What a map of it shows: metres east and north of the centre, and how far around."""
    receivers: frozenset[str]
    circles: tuple[tuple[float, float, float], ...] = ()
    marks: tuple[tuple[float, float, str], ...] = ()


def stories(city: City) -> Iterator[Story]:
    """One after the other: to look into ten minutes of three thousand lives takes a moment."""
    yield around_me(city)
    yield to_those_heading_for_the_bridge(city)
    yield who_was_here(city)


def around_me(city: City) -> Story:
    """The receiver's side: a subscription that goes where you go."""
    matcher, here = city.matcher, point_at(60, -40)
    matcher.move(YOU, here.lat, here.lon)
    matcher.subscribe(YOU, TRAFFIC)
    tried = []
    lines = []
    for east, north, severity in ((190.0, 40.0, 4), (-60.0, 60.0, 2), (60.0, 480.0, 5)):
        place = point_at(east, north)
        event = city.publish("traffic/jam", attributes={"severity": severity}, place=place)
        delivered = YOU in matcher.match(event)
        tried.append((event, delivered, severity >= 3 and distance(here, place) <= 300))
        lines.append(
            f"severity {severity}, {distance(here, place):3.0f} m away: {'delivered' if delivered else 'not delivered'}"
        )
    explanation = matcher.explain(tried[2][0], YOU)
    return Story(
        title="Around me",
        said=("you subscribe to traffic/#", "where severity >= 3", "within 300 m of wherever you are"),
        answer=tuple(lines),
        explanation=explanation,
        holds=all(delivered == expected for _, delivered, expected in tried) and not explanation.holds,
        around=(60.0, 120.0, 480.0),
        receivers=frozenset(),
        circles=((60.0, -40.0, 300.0),),
        marks=((60.0, -40.0, "you"), (190.0, 40.0, "4"), (-60.0, 60.0, "2"), (60.0, 480.0, "5")),
    )


def to_those_heading_for_the_bridge(city: City) -> Story:
    """The sender's side: addressed by what the receivers are doing, wherever they are."""
    east, north = list(PLACES.values())[BRIDGE]
    to = f"under(transport, '/vehicle/motorized') AND S_WITHIN(destination, {value_text(_square(east, north, 150))})"
    event = city.publish("traffic/closed", attributes={"severity": 4}, to=to)
    found = frozenset(city.matcher.match(event))
    motorized = city.is_motorized()
    counted = {city.ids[i] for i in np.flatnonzero(motorized & (city.destination == BRIDGE))}
    other = city.ids[int(np.flatnonzero(motorized & (city.destination != BRIDGE))[0])]
    return Story(
        title="To every motor vehicle heading for the bridge",
        said=("under(transport, '/vehicle/motorized')", "AND S_WITHIN(destination, <the bridge>)"),
        answer=(
            f"{len(found):,} of {int(motorized.sum()):,} motor vehicles hear of it,",
            f"and nobody else of {len(city.ids):,}",
        ),
        explanation=city.matcher.explain(event, other),
        holds=found == counted,
        around=(0.0, 0.0, HALF_HEIGHT),
        receivers=found,
        marks=((east, north, "bridge"),),
    )


def who_was_here(city: City) -> Story:
    """The past: judged on the intervals during which somebody was there, not on where they are now."""
    reach = Circle(150, point_at(0, 0))
    present = city.publish("notice/found", reach=reach)
    past = city.publish("notice/found", reach=reach, to="overlaps(time, '-10m', 'now')")
    now_here = frozenset(city.matcher.match(present))
    were_here = receivers(city.history, past, city.now)
    left = sorted(were_here - now_here)
    return Story(
        title="To whoever was here in the last ten minutes",
        said=("reach: 150 m around the square", "overlaps(time, '-10m', 'now')"),
        answer=(f"{len(now_here):,} are here now,", f"{len(were_here):,} are or were here"),
        explanation=explain(city.history, past, left[0] if left else city.ids[0], city.now),
        holds=now_here <= were_here == _seen_within(city, past, reach),
        around=(0.0, 0.0, HALF_HEIGHT),
        receivers=were_here,
        circles=((0.0, 0.0, 150.0),),
    )


def _seen_within(city: City, event: Event, reach: Circle) -> frozenset[str]:
    """Counted another way: some position that counted during the interval lies within reach."""
    assert event.when is not None
    start = event.when.a or 0
    seen = set()
    for client in city.history.clients():
        track = city.history.client(client).position
        times = {start, *(at for at in track.changes() if start < at <= city.now)}
        if any(position is not None and reach.covers(position) for position in map(track.at, times)):
            seen.add(client)
    return frozenset(seen)


def _square(east: float, north: float, half: float) -> Box:
    middle, corner = point_at(east, north), point_at(east + half, north + half)
    lat, lon = half / METRES_PER_DEGREE, corner.lon - middle.lon
    corners = middle.lon - lon, middle.lat - lat, middle.lon + lon, middle.lat + lat
    return Box(*(round(degrees, 4) for degrees in corners))


def reason(explanation: Explanation) -> str:
    """The innermost term that decides, in one line."""
    decisive = [part for part in explanation.parts if part.holds == explanation.holds]
    if not decisive:
        return f"{explanation.term}: {explanation.detail}" if explanation.detail else explanation.term
    return reason(decisive[0])
