"""What broker and client say to each other of filter schemes where MQTT carries the rest: events, subscriptions, signs of life.

MQTT loses nothing within a session and keeps the order, so little is needed beside what the schemes themselves say
(``filtering.messages``) and plans (``transition.plan``): how the ground is divided, and who is who after a connection was lost.
"""

from __future__ import annotations

from typing import Final

from nearcast.dissemination.cloud_messages import Context
from nearcast.errors import InvalidProperty
from nearcast.filtering.attraction import Zone, Zones
from nearcast.filtering.channels import UnknownChannels
from nearcast.filtering.messages import AssignmentRequest, ClientMessage, ContextUpdate, Joining
from nearcast.filtering.scheme import Territory
from nearcast.filtering.tessellation import GeoBox
from nearcast.model.geometry import Point, checked_metres
from nearcast.runtime.messages import Message
from nearcast.transition.plan import PlanDone, PlanId
from nearcast.transition.specification import MechanismSpec

PORT: Final = 1
"""What schemes say."""

GREETINGS: Final = 2
"""What goes before."""

INTERFACE: Final = "mqtt"

MOST_CHANNELS: Final = 4_096
"""That a client may join by itself: the broker keeps each of its subscriptions once for every channel."""

FARTHEST_AHEAD: Final = 1_000_000
"""So many plans a broker may have forgotten, because its disk was lost, when it meets a client that has not."""


class Ground(Message, frozen=True, tag="ground"):
    """The broker's first words on every connection: what schemes cut into channels.  The client answers with ``Hello``."""

    box: tuple[float, float, float, float]
    """Degrees south, west, north, east."""

    zones: tuple[tuple[str, float, float, float], ...]
    """Name, latitude, longitude and metres of each."""

    unknown_channels: UnknownChannels


class Hello(ClientMessage, frozen=True, tag="hello"):
    """The client is here, and wants what happens around it: which scheme it runs, by which plan, and where it is."""

    running: MechanismSpec
    plan: PlanId
    context: Context | None = None
    pinned: MechanismSpec | None = None
    """It insists on this scheme (LCN 2016, VI)."""


class Inquiry(Message, frozen=True, tag="inquiry"):
    """What the client said shows a plan that the broker does not know: it asks for a ``Hello``."""


CONTEXTS: Final = (ContextUpdate, AssignmentRequest, Joining)


def ground_of(territory: Territory) -> Ground:
    box = territory.box
    zones = tuple((zone.name, zone.center.lat, zone.center.lon, zone.radius) for zone in territory.zones)
    return Ground((box.south, box.west, box.north, box.east), zones, territory.unknown_channels)


def territory_in(ground: Ground) -> Territory:
    zones = Zones(Zone(name, Point(lat, lon), metres) for name, lat, lon, metres in ground.zones)
    return Territory(GeoBox(*ground.box), zones, ground.unknown_channels)


def check(message: Message, clock: int) -> None:
    """Refuse what no client of ours would say; ``clock`` is the broker's.  Whatever a client sends is a stranger's word."""
    match message:
        case Hello():
            _check_clock(max(message.clock, message.plan.clock), clock)
            if message.context is not None:
                check(message.context, clock)
        case PlanDone() | ContextUpdate() | AssignmentRequest() | Joining():
            _check_clock(message.clock, clock)
    match message:
        case ContextUpdate():
            Point(message.lat, message.lon)
            checked_metres(message.speed, "speed")
            if message.heading is not None and not 0.0 <= message.heading <= 360.0:
                raise InvalidProperty(f"heading {message.heading!r} is outside 0 to 360 degrees")
        case AssignmentRequest():
            Point(message.lat, message.lon)
        case Joining() if len(message.channels) > MOST_CHANNELS:
            raise InvalidProperty(
                f"{len(message.channels)} channels are too many; at most {MOST_CHANNELS} can be joined"
            )


def _check_clock(shown: int, ours: int) -> None:
    # Clocks are never turned back: one client that shows the largest number there is would leave nobody else a later one.
    if not 0 <= shown <= ours + FARTHEST_AHEAD:
        raise InvalidProperty(f"the clock {shown} of a plan cannot be: the newest plan is {ours}")
