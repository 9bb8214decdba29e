"""``[schemes]``: the filter scheme at the start, the ground it is cut for, and the rules by which it changes.

A scheme is written as in scenario files: ``{ kind = "EGRID", factor = 10 }`` (docs/scenarios.md); lengths are metres here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from nearcast.errors import InvalidSettings
from nearcast.model.area import Area
from nearcast.model.area_text import area_of_tree
from nearcast.model.time import MICROSECONDS
from nearcast.settings_files import Duration, Section

if TYPE_CHECKING:  # a second to import, which `nearcast serve --help` need not wait for
    from nearcast.filtering.scheme import Territory
    from nearcast.planning.ruled import SchemeRule
    from nearcast.transition.specification import MechanismSpec

SchemeTable = dict[str, bool | int | float | str]

_RADIAL: Final[SchemeTable] = {"kind": "RADIAL"}


class TerritoryBox(Section, frozen=True, kw_only=True):
    """Degrees; what schemes with cells divide.  By default, the world but for its poles."""

    south: float = -85.0
    west: float = -180.0
    north: float = 85.0
    east: float = 180.0


class AttractionPoint(Section, frozen=True, kw_only=True):
    """``[[schemes.point]]``: for ATTRACT and MULTI."""

    name: str
    lat: float
    lon: float
    radius: Annotated[float, msgspec.Meta(gt=0)]
    """Metres."""


class SchemeRuleSettings(Section, frozen=True, kw_only=True):
    """``[[schemes.rule]]``: a scheme for as long as something is above, or below, a threshold."""

    when: str
    above: float | None = None
    below: float | None = None
    back_at: float | None = None
    dwell: Duration = Duration.of("30s")
    scheme: SchemeTable

    def __post_init__(self) -> None:
        if (self.above is None) == (self.below is None):
            raise InvalidSettings("above or below is needed, and not both")

    def rule(self) -> SchemeRule:
        from nearcast.dissemination.broker_state import INFORMATION
        from nearcast.planning.ruled import SchemeRule
        from nearcast.transition.rules import Condition, Direction

        if self.when not in INFORMATION:
            raise InvalidSettings(f"schemes.rule: nothing is known as {self.when!r}; there is {', '.join(INFORMATION)}")
        if self.above is not None:
            condition = Condition(INFORMATION[self.when], Direction.ABOVE, self.above, self.back_at)
        else:
            assert self.below is not None
            condition = Condition(INFORMATION[self.when], Direction.BELOW, self.below, self.back_at)
        return SchemeRule(condition, _specification(self.scheme, "schemes.rule.scheme"), self.dwell / MICROSECONDS)


class PlannerSettings(Section, frozen=True, kw_only=True):
    """``[[schemes.planner]]``: whose plans are carried out, and which; with the first one, no plan without a signature is."""

    name: str
    key: str
    """Public, as ``nearcast planner`` prints it."""

    schemes: tuple[str, ...] = ()
    """Kinds that it may plan, as in ``["EGRID"]``; none: all."""

    within: dict[str, Any] | None = None
    """An area in which its regions lie; then it plans nothing for everybody."""

    gateways: bool = True
    """Whether it may switch gateways."""

    def __post_init__(self) -> None:
        from nearcast.planning.signed import public_key

        if not self.name:
            raise InvalidSettings("schemes.planner: a planner has a name")
        public_key(self.key)
        self.area()

    def area(self) -> Area | None:
        """Of ``within``."""
        return None if self.within is None else absolute_area(self.within)


def absolute_area(tree: dict[str, Any]) -> Area:
    """An area of a settings file, which must lie somewhere."""
    area = area_of_tree(tree)
    if area.is_relative:
        raise InvalidSettings("within must lie somewhere; give the area its centre: at = [lon, lat]")
    return area


class SchemeSettings(Section, frozen=True, kw_only=True):
    start: SchemeTable = msgspec.field(default_factory=_RADIAL.copy)
    territory: TerritoryBox = TerritoryBox()
    points: tuple[AttractionPoint, ...] = msgspec.field(default=(), name="point")
    rules: tuple[SchemeRuleSettings, ...] = msgspec.field(default=(), name="rule")
    planners: tuple[PlannerSettings, ...] = msgspec.field(default=(), name="planner")
    audience: str = ""
    """What planners call this broker in what they sign, so that no plan for another one is carried out here."""

    def __post_init__(self) -> None:
        names = [each.name for each in self.planners]
        if len(set(names)) < len(names):
            raise InvalidSettings("schemes.planner: two planners have the same name")

    def initial(self) -> MechanismSpec:
        """The scheme to run until something changes it; ``InvalidSettings`` if there is no such scheme."""
        return _specification(self.start, "schemes.start")

    def ground(self) -> Territory:
        from nearcast.filtering.attraction import Zone, Zones
        from nearcast.filtering.scheme import Territory
        from nearcast.filtering.tessellation import GeoBox
        from nearcast.model.geometry import Point

        box = self.territory
        zones = Zones(Zone(point.name, Point(point.lat, point.lon), point.radius) for point in self.points)
        return Territory(GeoBox(box.south, box.west, box.north, box.east), zones)

    def transition_rules(self) -> tuple[SchemeRule, ...]:
        """In the order of the file: of several that hold, the last decides."""
        return tuple(entry.rule() for entry in self.rules)


def _specification(table: SchemeTable, key: str) -> MechanismSpec:
    from nearcast.filtering.registry import SCHEMES, scheme_of
    from nearcast.transition.specification import MechanismSpec

    kind = table.get("kind")
    if not isinstance(kind, str):
        raise InvalidSettings(f"{key}: needs a kind, one of {', '.join(SCHEMES)}")
    spec = MechanismSpec(kind, tuple((name, value) for name, value in table.items() if name != "kind"))
    scheme_of(spec)  # refuses unknown schemes and parameters
    return spec
