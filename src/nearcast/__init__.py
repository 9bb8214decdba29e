"""nearcast delivers messages to whoever is, was or will be in the right place and the right context.

The public names of all rooms, each fetched when it is first asked for: ``import nearcast`` alone loads neither numba
nor shapely.  Everything a caller may catch is in ``nearcast.errors``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from nearcast.client.client import Client, connect
    from nearcast.client.events import Events
    from nearcast.client.sync import SyncClient, connect_sync
    from nearcast.client.tracing import traced
    from nearcast.errors import InvalidInput, NearcastError
    from nearcast.matching.events import EventBatch, Texts
    from nearcast.matching.matcher import Matcher, MatcherStatistics
    from nearcast.matching.matches import Matches, Receivers
    from nearcast.model.area import (
        Area,
        Box,
        Circle,
        Outline,
        Polygon,
        Rectangle,
        area_from_geojson,
        area_to_geojson,
    )
    from nearcast.model.content_filter import ContentFilter
    from nearcast.model.cql2 import parse as parse_filter
    from nearcast.model.delivery import Delivery, delivered, delivery, receivers
    from nearcast.model.event import Event, Proximity
    from nearcast.model.explanation import Explanation, explain
    from nearcast.model.geometry import Point, distance
    from nearcast.model.history import History
    from nearcast.model.subscription import Subscription
    from nearcast.model.temporal import TemporalPredicate
    from nearcast.model.time import TimeFrame, duration, instant
    from nearcast.model.values import AttributeType, OneOf, Path, Range, Subtree, register_type

__version__: str

__all__ = [
    "Area",
    "AttributeType",
    "Box",
    "Circle",
    "Client",
    "ContentFilter",
    "Delivery",
    "Event",
    "EventBatch",
    "Events",
    "Explanation",
    "History",
    "InvalidInput",
    "Matcher",
    "MatcherStatistics",
    "Matches",
    "NearcastError",
    "OneOf",
    "Outline",
    "Path",
    "Point",
    "Polygon",
    "Proximity",
    "Range",
    "Receivers",
    "Rectangle",
    "Subscription",
    "Subtree",
    "SyncClient",
    "TemporalPredicate",
    "Texts",
    "TimeFrame",
    "__version__",
    "area_from_geojson",
    "area_to_geojson",
    "connect",
    "connect_sync",
    "delivered",
    "delivery",
    "distance",
    "duration",
    "explain",
    "instant",
    "parse_filter",
    "receivers",
    "register_type",
    "traced",
]

_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "nearcast.client.client": ("Client", "connect"),
    "nearcast.client.events": ("Events",),
    "nearcast.client.sync": ("SyncClient", "connect_sync"),
    "nearcast.client.tracing": ("traced",),
    "nearcast.errors": ("InvalidInput", "NearcastError"),
    "nearcast.matching.events": ("EventBatch", "Texts"),
    "nearcast.matching.matcher": ("Matcher", "MatcherStatistics"),
    "nearcast.matching.matches": ("Matches", "Receivers"),
    "nearcast.model.area": (
        *("Area", "Box", "Circle", "Outline", "Polygon", "Rectangle"),
        *("area_from_geojson", "area_to_geojson"),
    ),
    "nearcast.model.content_filter": ("ContentFilter",),
    "nearcast.model.delivery": ("Delivery", "delivered", "delivery", "receivers"),
    "nearcast.model.event": ("Event", "Proximity"),
    "nearcast.model.explanation": ("Explanation", "explain"),
    "nearcast.model.geometry": ("Point", "distance"),
    "nearcast.model.history": ("History",),
    "nearcast.model.subscription": ("Subscription",),
    "nearcast.model.temporal": ("TemporalPredicate",),
    "nearcast.model.time": ("TimeFrame", "duration", "instant"),
    "nearcast.model.values": ("AttributeType", "OneOf", "Path", "Range", "Subtree", "register_type"),
}
_RENAMED: Final = {"parse_filter": ("nearcast.model.cql2", "parse")}
"""What is clear inside its module but not outside."""

_ORIGIN: Final = {name: (module, name) for module, names in _NAMES.items() for name in names} | _RENAMED


def __getattr__(name: str) -> Any:
    """PEP 562: called for a name that is not here yet."""
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("nearcast")
    elif name in _ORIGIN:
        module, attribute = _ORIGIN[name]
        value = getattr(import_module(module), attribute)
    else:
        raise AttributeError(f"module 'nearcast' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
