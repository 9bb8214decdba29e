"""Everything that goes over the wire between the broker and the page.

Times are ISO 8601 in UTC, or microseconds where the name says ``_us``; places are degrees.  The binary message is in ``positions``.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from nearcast.broker.explained import EventRow, Place

GeoJson = dict[str, Any]
"""A geometry, a feature or a collection, as RFC 7946 has it."""


LONGEST_NAME: Final = 5_000
"""Characters of a client or an event that can be asked for: with each of them written as twelve others, an address still fits into a head."""


class Told(msgspec.Struct, frozen=True, omit_defaults=False):
    """Base of what is answered."""


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of what is asked for: a word that nobody knows is a mistake."""


# Who is looking


class Login(Asked, frozen=True):
    user: str
    password: str


class Me(Told, frozen=True):
    user: str | None
    may_see: bool
    may_command: bool


# The ground


class Bounds(Told, frozen=True):
    south: float
    west: float
    north: float
    east: float


class NamedPlace(Told, frozen=True):
    name: str
    lat: float
    lon: float
    radius: float
    """Metres."""


class Parameter(Told, frozen=True):
    name: str
    type: str
    default: bool | float | str
    unit: str
    meaning: str
    choices: list[str] = []
    """Of a text: the words that there are."""


class SchemeKind(Told, frozen=True):
    kind: str
    about: str
    parameters: list[Parameter]


class World(Told, frozen=True):
    name: str
    bounds: Bounds | None
    """None: nothing is known of the ground; fit the clients."""

    streets: list[list[float]]
    """Of each: lat, lon, lat, lon, ..."""

    points: list[NamedPlace]
    attribution: str | None
    schemes: list[SchemeKind]
    roles: list[str]


# The live feed


class Origin(Told, frozen=True):
    lat: float
    lon: float


class Names(Told, frozen=True, omit_defaults=True, tag_field="kind", tag="names"):
    """What has changed; ``gone`` before ``add``, since a number may be given to somebody else."""

    add: dict[str, str] = {}
    gone: list[int] = []
    schemes: list[str] | None = None
    roles: list[str] | None = None


class Load(Told, frozen=True):
    publishes_per_s: float
    deliveries_per_s: float
    bytes_in_per_s: float
    bytes_out_per_s: float
    delay_ms_p50: float | None
    """From taking up a sampled event until its copies were handed to the connections; None: none was sampled that is timed.

    Messages of quality 0 that have nothing but a topic are not.
    """

    delay_ms_p99: float | None
    match_us: float | None
    """Of one event in the matcher, on average; None: it was not asked for any."""

    position_updates_per_s: float
    lag_ms: float
    """By how much the broker's loop was late."""


class Tick(Told, frozen=True, tag_field="kind", tag="tick"):
    at_us: int
    clients: int
    """Of which a position is known."""

    sessions: int
    connections: int
    viewers: int
    load: Load
    scheme: str
    groups: dict[str, int]
    waiting: int
    """Clients that have not answered their plan yet."""

    left_out: int
    """Events since the last tick that are not among those shown."""

    problem: str | None
    """Of the journal or the lake."""


class RecentTick(Told, frozen=True):
    """What is remembered of a tick."""

    at_us: int
    load: Load


class ShownEvent(Told, frozen=True, tag_field="kind", tag="event"):
    id: str
    topic: str
    at_us: int
    lat: float | None
    lon: float | None
    reach: GeoJson | None
    publisher: str | None
    receivers: list[int]
    """The first of them, as indexes."""

    count: int
    """Of all of them."""


class ShownTransition(Told, frozen=True, tag_field="kind", tag="transition"):
    at_us: int
    source: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")
    region: str | None = None
    """Of a plan, or several: those who are there have come to its scheme."""

    by: str | None = None
    clients: int = 0
    """That were moved; 0: everybody."""


class Hello(Told, frozen=True, tag_field="kind", tag="hello"):
    names: dict[str, str]
    """Of each index, the client."""

    period_ms: int
    origin: Origin
    schemes: list[str]
    roles: list[str]
    shown: int
    """So many clients are shown at most; those of higher numbers are not."""

    life: str
    """Of this broker: another one than before, and it has been started again; its ground and its rules may be others."""

    ticks: list[msgspec.Raw] = []
    """The last minutes, as ``RecentTick``: as far as somebody was looking."""

    transitions: list[ShownTransition] = []
    """The last of them, oldest first."""


REGIONS: Final = ""
"""In ``Cells``, instead of a scheme: the regions of plans, each feature with a ``scheme`` of its own."""


class Cells(Told, frozen=True, tag_field="kind", tag="cells"):
    """Where cells lie: told once of each."""

    scheme: str
    features: GeoJson
    """Properties: ``label`` and ``count``; of a region ``region`` (its name), ``scheme``, ``plan``, ``lat``, ``lon`` and ``radius``, too."""

    more: bool = False
    """Beside those that were told of; else these are all there are."""

    empty: bool = True
    """Also those are drawn that nobody is in."""


class CellCounts(Told, frozen=True, tag_field="kind", tag="counts"):
    """How many are in them now, where that has changed."""

    scheme: str
    counts: dict[str, int]
    """By label."""


class ViewerWish(msgspec.Struct, frozen=True):
    """What a page says on its WebSocket."""

    watch: str | msgspec.UnsetType | None = msgspec.UNSET
    pause: bool | msgspec.UnsetType = msgspec.UNSET


# Tables


class SessionRow(Told, frozen=True):
    client: str
    user: str | None
    connected: bool
    since: str | None
    """Since when it has no connection; None while it has one."""

    lat: float | None
    lon: float | None
    scheme: str
    subscriptions: int
    queued: int
    dropped: int
    address: str | None


class SessionsTable(Told, frozen=True):
    total: int
    rows: list[SessionRow]


PAGE: Final = 50
LARGEST_PAGE: Final = 500


class Area(Told, frozen=True):
    kind: str
    text: str
    radius: float | None
    """Of a circle, in metres."""

    geometry: GeoJson | None
    """None: around a client of which nobody knows where it is."""


class SubscriptionRow(Told, frozen=True):
    client: str
    id: str
    filter: str
    where: str | None
    area: str | None
    qos: int
    since: str
    """When it was accepted."""

    until: str | None
    """The end of its frame, if it has one."""


class SubscriptionsTable(Told, frozen=True):
    total: int
    rows: list[SubscriptionRow]


# Schemes


class Region(Told, frozen=True):
    name: str
    lat: float
    lon: float
    radius: float
    scheme: str
    plan: str


class Happened(Told, frozen=True):
    at: str
    what: str
    by: str | None
    clients: int | None
    """None: everybody."""


class Rules(Told, frozen=True):
    text: str
    """``[[schemes.rule]]`` tables, as in a settings file."""

    version: str
    """Of these rules: the same text has the same one, also after a restart."""


class RulesAsked(Asked, frozen=True):
    text: str
    version: str | None = None
    """Of the rules that these are made from: if others hold by now, nothing changes.  None: whatever holds is replaced."""


class PlansShown(Told, frozen=True):
    scheme: str
    groups: dict[str, int]
    waiting: int
    regions: list[Region]
    gateways: dict[str, bool]
    rules: Rules
    history: list[Happened]
    """Latest first."""


class TransitionAsked(Asked, frozen=True):
    scheme: str
    clients: list[str] | None = None


# One client


class ContextShown(Told, frozen=True):
    id: str
    attributes: dict[str, str]


class SubscriptionShown(Told, frozen=True):
    id: str
    filter: str
    where: str | None
    area: Area | None
    since: str


class ProximityShown(Told, frozen=True):
    topic: str
    area: Area


class ClientShown(Told, frozen=True, tag_field="kind", tag="client"):
    client: str
    session: SessionRow
    position: Place | None
    contexts: list[ContextShown]
    accepts_addressed: bool
    subscriptions: list[SubscriptionShown]
    proximities: list[ProximityShown]
    """Announced: where its events on a topic reach."""

    scheme: str
    cell: str | None
    cells: GeoJson | None
    """A FeatureCollection of the cells or channels that it belongs to."""

    sent: list[EventRow]
    """Latest first."""

    withheld: list[EventRow]
    """Of topics that it subscribed to, latest first."""


class ClientGone(Told, frozen=True, tag_field="kind", tag="gone"):
    """Instead of a client at whom a viewer looks closely."""

    client: str
    why: str


# The past, and places


class Extent(Told, frozen=True):
    oldest: str | None
    newest: str | None


class ClientThen(Told, frozen=True):
    client: str
    lat: float
    lon: float


class EventThen(Told, frozen=True):
    id: str
    topic: str
    at_us: int
    lat: float | None
    lon: float | None
    reach: GeoJson | None
    publisher: str | None
    receivers: list[str]
    count: int


class Past(Told, frozen=True):
    at: str
    clients: list[ClientThen]
    events: list[EventThen]
    scheme: str | None
    source: str
    complete: bool
    """False: there was more than is read for one answer."""


class HeatCell(Told, frozen=True):
    south: float
    west: float
    north: float
    east: float
    value: float
    count: int


class Heat(Told, frozen=True):
    kind: str
    cell_metres: float
    cells: list[HeatCell]
    at: str
    source: str
