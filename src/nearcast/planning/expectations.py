"""What to expect of a filter scheme before it was seen: from geometry, and from the size of its messages."""

from __future__ import annotations

import math
from dataclasses import dataclass

from nearcast.dissemination.broker_state import square_kilometres
from nearcast.filtering.messages import Assignment, AssignmentRequest, ContextUpdate
from nearcast.filtering.parameters import Egrid, Grid, Multi, Radial, Ste
from nearcast.filtering.registry import scheme_of
from nearcast.filtering.scheme import Scheme, Territory
from nearcast.planning.estimates import Expectation
from nearcast.runtime.messages import Message, encoded
from nearcast.transition.plan import Exchange, ExecutionPlan, PlanDone, PlanId, PlanMessage
from nearcast.transition.specification import MechanismSpec

_SOME_TIME = 1_767_225_600_000_000
"""Instants of these years take as many bytes on the wire as this one."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What an operator knows before the first client comes."""

    location_interval: float = 5.0
    """Seconds between two fixes of a client."""

    speed: float = 1.0
    """Metres per second that clients walk, those who stand among them."""

    overhead: int = 29
    """Bytes of headers of each message."""


def expectation(spec: MechanismSpec, territory: Territory, radius: float, around: Circumstances) -> Expectation:
    """For clients with areas of interest of that radius, spread evenly."""
    scheme = scheme_of(spec)
    area = 1e6 * square_kilometres(territory.box)
    share = min(1.0, _reach(scheme, radius, area) / area)
    messages = _messages(scheme, area, around)
    report, answer = _sizes(spec, scheme, territory, radius, around)
    plan = PlanId(100, "broker")
    switching = sum(
        len(encoded(message)) + around.overhead
        for message in (PlanMessage(ExecutionPlan(plan, (Exchange("filter scheme", spec),))), PlanDone(plan, ok=True))
    )
    return Expectation(
        share=share,
        context_bytes=messages * (report + answer),
        context_messages=messages,
        operations=1.0,
        switching_bytes=switching + report + answer,
        recall=_recall(scheme, radius, around),
        presumed=isinstance(scheme, Egrid) or detail(scheme) is not None,
    )


def detail(scheme: Scheme) -> float | None:
    """How far clients go, in metres, before they say so: 0 if they report every fix; None if that may be anything."""
    if not isinstance(scheme, Radial) or isinstance(scheme, Multi) or scheme.update == "frequency":
        return None
    return 0.0 if scheme.update == "fix" else scheme.distance


def tells(running: Scheme, other: Scheme) -> bool:
    """Whether from what clients report to one scheme it can be told when they would report to another."""
    seen = detail(running)
    if seen is None:
        return running == other
    # Borders of cells are crossed by whoever moves; a fix, or a time, passes unseen as long as nobody does.
    wanted = math.inf if isinstance(other, Grid) else detail(other)
    return seen == 0.0 or (wanted is not None and wanted >= seen)


def _reach(scheme: Scheme, radius: float, area: float) -> float:
    """Square metres around an event within which clients are told of it."""
    match scheme:
        case Egrid():
            return (2.0 * (radius + scheme.margin) + _width(scheme, area)) ** 2
        case Grid():
            return _width(scheme, area) ** 2
        case Ste():
            # Half a minute and more ahead, to both sides: the evaluation finds three quarters of it wanted (A.1).
            return math.pi * radius**2 * 4.0 / 3.0
        case Radial():
            return math.pi * radius**2
    return area


def _recall(scheme: Scheme, radius: float, around: Circumstances) -> float:
    """A circle that is drawn a little beside the right one misses 2/pi of what it is off, in radii; STE reaches ahead for that."""
    if not isinstance(scheme, Radial) or isinstance(scheme, Ste) or not radius:
        return 1.0
    # On the mean, a report is half as old as it gets.
    way = scheme.distance if scheme.update in ("distance", "hybrid") else 0.0
    wait = max(around.location_interval, scheme.seconds if scheme.update == "frequency" else 0.0)
    off = (way + around.speed * wait) / 2.0
    return max(0.0, 1.0 - 2.0 / math.pi * off / radius)


def _messages(scheme: Scheme, area: float, around: Circumstances) -> float:
    """That a client sends in a second."""
    match scheme:
        case Grid():
            # A straight walk in a random direction crosses 4/pi borders for each width of a cell.  EGRID asks both when the area of
            # interest reaches a new cell and when the client itself does.
            borders = 2.0 if isinstance(scheme, Egrid) else 1.0
            return min(1.0 / around.location_interval, around.speed * borders * 4.0 / math.pi / _width(scheme, area))
        case Radial() if scheme.update == "distance":
            return min(1.0 / around.location_interval, around.speed / scheme.distance)
        case Radial() if scheme.update != "fix":
            return 1.0 / max(around.location_interval, scheme.seconds)
    return 1.0 / around.location_interval


def _width(scheme: Grid, area: float) -> float:
    """Of a cell.  A hexagon of H3 has a seventh of the area of the next larger ones; the largest have 4.36e12 square metres."""
    if scheme.cells == "hexagon":
        return math.sqrt(4.36e12 / 7.0**scheme.resolution)
    return math.sqrt(area) / scheme.factor


def _sizes(
    spec: MechanismSpec, scheme: Scheme, territory: Territory, radius: float, around: Circumstances
) -> tuple[int, int]:
    """Bytes of a report, and of the answer to it."""
    middle = territory.box.center

    def size(message: Message) -> int:
        return len(encoded(message)) + around.overhead

    if not isinstance(scheme, Grid):
        return size(ContextUpdate(_SOME_TIME, middle.lat, middle.lon, scheme=spec.name)), 0
    cells = scheme.tessellation(territory)
    covered = cells.around(middle, radius, scheme.cover) if isinstance(scheme, Egrid) else (cells.cell_of(middle),)
    request = AssignmentRequest(_SOME_TIME, middle.lat, middle.lon, scheme=spec.name)
    return size(request), size(Assignment(_SOME_TIME, covered[0], covered, scheme=spec.name))
