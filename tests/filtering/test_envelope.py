"""The space-time envelope: the circle of RADIAL, and what lies ahead."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from tests.filtering.places import away

from nearcast.errors import InvalidPosition, InvalidScheme
from nearcast.filtering.envelope import Envelope
from nearcast.model.area import Circle
from nearcast.model.geometry import Point, distance, offset

MARKET = Point(49.8728, 8.6512)
positions = st.builds(Point, st.floats(-90, 90), st.floats(-180, 180))
headings = st.floats(-360, 720)
radii = st.floats(0, 2000)
speeds = st.floats(0, 40)
alphas = st.floats(0, 3)
angles = st.floats(0, 89)
envelopes = st.builds(Envelope, positions, radii, st.none() | headings, speeds, alphas, angles)


@st.composite
def envelopes_and_places(draw: st.DrawFn) -> tuple[Envelope, Point]:
    """Places near the circle, the corners and the axis, or anywhere."""
    envelope = draw(envelopes)
    reach = draw(st.sampled_from([envelope.radius, envelope.length, envelope.bounding_radius])) * draw(
        st.sampled_from([0.0, 1 - 1e-9, 1.0, 1 + 1e-9]) | st.floats(0, 1.2)
    )
    bearing = (envelope.heading or 0.0) + draw(st.sampled_from([0.0, 90.0, -90.0, 180.0]) | st.floats(-180, 180))
    return envelope, draw(positions) if draw(st.integers(0, 9)) == 0 else away(envelope.position, bearing, reach)


def test_an_envelope_is_a_circle_and_a_trapezoid_along_the_movement() -> None:
    # 1.5 m/s for 2 minutes: 180 m; at its end 100 + 180 * tan 15 = 148.2 m to each side.
    envelope = Envelope(MARKET, 100.0, 90.0, 1.5, 2.0)
    assert envelope.length == 180.0
    end = 100 + 180 * math.tan(math.radians(15))
    for ahead, aside, expected in (
        (0.0, 99.9, True),
        (0.0, -99.9, True),
        (0.0, 100.2, False),
        (-99.9, 0.0, True),
        (-100.1, 0.0, False),
        (-1.0, 100.2, False),
        (90.0, 100 + 90 * math.tan(math.radians(15)) - 0.1, True),
        (90.0, 100 + 90 * math.tan(math.radians(15)) + 0.1, False),
        (179.9, 0.0, True),
        (180.1, 0.0, False),
        (179.9, end - 0.2, True),
        (179.9, 0.2 - end, True),
        (179.9, end + 0.1, False),
    ):
        bearing = 90.0 + math.degrees(math.atan2(aside, ahead))
        assert envelope.covers(away(MARKET, bearing, math.hypot(ahead, aside))) is expected, (ahead, aside)
    assert envelope.bounding_radius == pytest.approx(math.hypot(180, end), rel=1e-8)


@pytest.mark.parametrize("angle", [0.0, 15.0, 45.0])
def test_its_area_is_half_a_circle_and_a_trapezoid(angle: float) -> None:
    radius, length, slope = 100.0, 240.0, math.tan(math.radians(angle))
    envelope = Envelope(MARKET, radius, 30.0, 2.0, 2.0, angle)
    # In front the circle reaches out of the trapezoid nowhere, as it is longer than the radius.
    expected = math.pi * radius**2 / 2 + length * (2 * radius + length * slope)
    # A polar raster: rings of equal area, so each place stands for the same area; its error is the border cut by cells.
    rings, rays = 150, 240
    covered = sum(
        envelope.covers(away(MARKET, 360 * ray / rays, envelope.bounding_radius * math.sqrt((ring + 0.5) / rings)))
        for ring in range(rings)
        for ray in range(rays)
    )
    whole = math.pi * envelope.bounding_radius**2
    assert covered / (rings * rays) * whole == pytest.approx(expected, rel=0.02)


@given(envelopes_and_places())
def test_it_covers_the_circle_and_stays_within_its_bounding_radius(drawn: tuple[Envelope, Point]) -> None:
    envelope, place = drawn
    if Circle(envelope.radius, envelope.position).covers(place):
        assert envelope.covers(place)
    if envelope.covers(place):
        assert distance(envelope.position, place) <= envelope.bounding_radius


@given(positions, radii, headings, speeds, alphas, angles, st.floats(0, 1.5), st.floats(0, 360))
@example(MARKET, 125.0, 0.0, 1.0, 1.0, 15.0, 1.0, 90.0)
def test_without_movement_or_without_alpha_it_is_the_circle_to_the_last_bit(
    position: Point,
    radius: float,
    heading: float,
    speed: float,
    alpha: float,
    angle: float,
    share: float,
    bearing: float,
) -> None:
    place = away(position, bearing, share * radius)
    near = distance(position, place)  # a radius that the place is exactly on, and the next smaller one
    for r in (radius, near, math.nextafter(near, 0.0)):
        expected = Circle(r, position).covers(place)
        for still in (
            Envelope(position, r, heading, 0.0, alpha, angle),
            Envelope(position, r, heading, speed, 0.0, angle),
            Envelope(position, r, None, speed, alpha, angle),
        ):
            assert still.covers(place) is expected
            assert still.bounding_radius == r


def test_without_movement_it_has_not_even_the_first_line_of_the_trapezoid() -> None:
    # Straight east on the equator nothing is ahead, and the offset may round to less than the distance.
    unequal = 0
    for i in range(1, 400):
        position, place = Point(0, 8), Point(0, 8 + i * 1e-5)
        radius = math.nextafter(distance(position, place), 0.0)
        assert not Envelope(position, radius, 0.0, 0.0, 1.0).covers(place)
        unequal += offset(position, place)[0] <= radius
    assert unequal > 0


@given(envelopes_and_places(), st.floats(0, 3))
def test_it_grows_with_alpha(drawn: tuple[Envelope, Point], more: float) -> None:
    envelope, place = drawn
    longer = Envelope(
        envelope.position, envelope.radius, envelope.heading, envelope.speed, envelope.alpha + more, envelope.angle
    )
    assert longer.covers(place) or not envelope.covers(place)
    assert longer.bounding_radius >= envelope.bounding_radius


@given(st.floats(1, 2000), headings, speeds, alphas, angles, headings, st.floats(0, 360), st.floats(0, 1.2))
def test_it_turns_with_the_heading(
    radius: float, heading: float, speed: float, alpha: float, angle: float, turn: float, bearing: float, share: float
) -> None:
    before = Envelope(MARKET, radius, heading, speed, alpha, angle)
    after = Envelope(MARKET, radius, heading + turn, speed, alpha, angle)
    reach = share * before.bounding_radius
    place, turned = away(MARKET, bearing, reach), away(MARKET, bearing + turn, reach)
    slightly = [before.covers(away(MARKET, bearing + d, reach + e)) for d in (-1e-6, 1e-6) for e in (-1e-4, 0, 1e-4)]
    assume(len(set(slightly)) == 1)  # not on the border, where turning decides by rounding
    assert before.covers(place) == after.covers(turned)
    mirrored = away(MARKET, 2 * heading - bearing, reach)
    assert before.covers(mirrored) == before.covers(place)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"radius": -1.0}, InvalidPosition, "radius"),
        ({"speed": -1.0}, InvalidPosition, "speed"),
        ({"speed": math.nan}, InvalidPosition, "speed"),
        ({"heading": math.inf}, InvalidPosition, "heading"),
        ({"alpha": -0.5}, InvalidScheme, "alpha"),
        ({"alpha": math.nan}, InvalidScheme, "alpha"),
        ({"angle": 90.0}, InvalidScheme, "angle"),
        ({"angle": -1.0}, InvalidScheme, "angle"),
        ({"angle": "15"}, InvalidScheme, "angle"),
    ],
)
def test_what_cannot_be_is_refused(change: dict[str, Any], error: type[Exception], message: str) -> None:
    parameters: dict[str, Any] = {"radius": 1.0, "heading": 0.0, "speed": 1.0, "alpha": 1.0}
    with pytest.raises(error, match=message):
        Envelope(MARKET, **{**parameters, **change})
