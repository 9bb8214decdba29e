"""Zones around attraction points: who stands in several joins all, who stands in none joins none."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.filtering.places import away

from nearcast.errors import InvalidPosition, InvalidScheme, UnknownName
from nearcast.filtering.attraction import Zone, Zones
from nearcast.model.area import Circle
from nearcast.model.geometry import Point, distance

points = st.builds(Point, st.floats(-90, 90), st.floats(-180, 180))
radii = st.floats(0, 7.3).map(lambda exponent: 10**exponent)
MARKET = Point(49.8728, 8.6512)


@st.composite
def zones_and_place(draw: st.DrawFn) -> tuple[Zones, Point]:
    """Some zones, and a place that is often near the border of one of them."""
    zones = Zones(Zone(f"zone {i}", draw(points), draw(radii)) for i in range(draw(st.integers(1, 6))))
    near = draw(st.sampled_from(zones.zones))
    share = draw(st.sampled_from([0.0, 0.5, 1 - 1e-12, 1.0, 1 + 1e-12, 1.5]) | st.floats(0, 2))
    return zones, away(near.center, draw(st.floats(0, 360)), min(2e7, share * near.radius))


@given(zones_and_place())
@example((Zones([Zone("date line", Point(-17, 179.9999), 500.0)]), Point(-17, -179.9999)))
@example((Zones([Zone("pole", Point(89.999, 10), 500.0)]), Point(89.999, -170)))
def test_a_place_is_in_the_zones_whose_circles_cover_it(drawn: tuple[Zones, Point]) -> None:
    zones, place = drawn
    expected = tuple(sorted(zone.name for zone in zones if Circle(zone.radius, zone.center).covers(place)))
    assert zones.at(place) == expected


def test_who_stands_in_several_zones_joins_all_and_who_stands_in_a_gap_none() -> None:
    zones = Zones(
        [
            Zone("theatre", away(MARKET, 90, 150), 100.0),
            Zone("market", MARKET, 100.0),
            Zone("castle", away(MARKET, 0, 1000), 80.0),
        ]
    )
    assert [zone.name for zone in zones] == ["castle", "market", "theatre"]
    assert zones.at(MARKET) == ("market",)
    assert zones.at(away(MARKET, 90, 75)) == ("market", "theatre")
    assert zones.at(away(MARKET, 0, 500)) == ()
    assert len(zones) == 3
    assert "market" in zones
    assert "park" not in zones
    assert zones["castle"].radius == 80.0


@given(zones_and_place(), st.floats(0, 1e5))
def test_an_extended_zone_serves_every_area_of_interest_that_reaches_into_the_zone(
    drawn: tuple[Zones, Point], radius: float
) -> None:
    zones, place = drawn
    extended = zones.extended(radius)
    # Extended by the radius of interest: whoever is interested in a place of the zone has joined its channel.
    for zone in zones:
        assert extended[zone.name].radius == zone.radius + radius
        if distance(zone.center, place) < (zone.radius + radius) * (1 - 1e-9):
            assert zone.name in extended.at(place)
    assert set(zones.at(place)) <= set(extended.at(place))
    assert zones.extended(0) == zones


def test_zones_are_the_same_in_whatever_order_they_are_given() -> None:
    zones = [Zone(name, MARKET, 10.0) for name in ("c", "a", "b")]
    assert Zones(zones) == Zones(reversed(zones))


@pytest.mark.parametrize("name", ["", None, 7])
def test_a_zone_needs_a_name(name: Any) -> None:
    with pytest.raises(InvalidScheme, match="name"):
        Zone(name, MARKET, 10.0)


@pytest.mark.parametrize("radius", [-1.0, math.nan, math.inf])
def test_a_radius_that_cannot_be_is_refused(radius: float) -> None:
    with pytest.raises(InvalidPosition, match="market"):
        Zone("market", MARKET, radius)
    with pytest.raises(InvalidPosition, match="extension"):
        Zones([Zone("market", MARKET, 1.0)]).extended(radius)


def test_two_zones_of_one_name_are_refused_and_unknown_ones_named() -> None:
    with pytest.raises(InvalidScheme, match="two zones are named 'a'"):
        Zones([Zone("a", MARKET, 1.0), Zone("b", MARKET, 1.0), Zone("a", MARKET, 2.0)])
    with pytest.raises(UnknownName, match="'a', 'b'"):
        Zones([Zone("a", MARKET, 1.0), Zone("b", MARKET, 1.0)])["c"]
