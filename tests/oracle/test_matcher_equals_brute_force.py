"""Twenty thousand clients against two thousand events, moves in between: the matcher finds whom a full search finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from nearcast.matching import EventBatch, Matcher
from nearcast.model.area import Circle
from nearcast.model.geometry import EARTH_RADIUS, distance_degrees
from nearcast.model.subscription import Subscription

Floats = npt.NDArray[np.float64]
CLIENTS, EVENTS, ROUNDS = 20_000, 2_000, 4
SPREAD = 2_500.0  # metres
RADII = (20.0, 150.0, 150.0, 400.0)


def scattered(rng: np.random.Generator, lat: float, lon: float, count: int) -> tuple[Floats, Floats]:
    """Points around a middle: four in five near attractions, the others anywhere in the city."""
    attractions = rng.normal(0.0, SPREAD, (40, 2))
    clustered = attractions[rng.integers(0, 40, count)] + rng.normal(0.0, 120.0, (count, 2))
    anywhere = rng.uniform(-2 * SPREAD, 2 * SPREAD, (count, 2))
    east, north = np.where(rng.random((count, 1)) < 0.8, clustered, anywhere).T
    angle, bearing = np.hypot(east, north) / EARTH_RADIUS, np.arctan2(east, north)
    phi = np.radians(lat)
    sine = np.sin(phi) * np.cos(angle) + np.cos(phi) * np.sin(angle) * np.cos(bearing)
    turn = np.arctan2(np.sin(bearing) * np.sin(angle) * np.cos(phi), np.cos(angle) - np.sin(phi) * sine)
    return np.degrees(np.arcsin(np.clip(sine, -1, 1))), (lon + np.degrees(turn) + 180.0) % 360.0 - 180.0


def haversines(lat: float, lon: float, lats: Floats, lons: Floats) -> Floats:
    h = (
        np.sin(np.radians(lats - lat) / 2) ** 2
        + np.cos(np.radians(lat)) * np.cos(np.radians(lats)) * np.sin(np.radians(lons - lon) / 2) ** 2
    )
    metres: Floats = 2 * EARTH_RADIUS * np.arcsin(np.sqrt(np.minimum(1.0, h)))
    return metres


def within(lat: float, lon: float, lats: Floats, lons: Floats, radius: Floats) -> npt.NDArray[np.bool_]:
    over = haversines(lat, lon, lats, lons) - radius
    inside = over <= 0
    for i in np.flatnonzero(np.abs(over) < 1e-6):
        inside[i] = distance_degrees(lat, lon, float(lats[i]), float(lons[i])) <= radius[i]
    return inside


@pytest.mark.parametrize(
    ("lat", "lon"),
    [(49.87, 8.65), (0.0, 180.0), (-71.5, -179.999), (89.99, 33.0), (-89.999, 100.0)],
    ids=["city", "antimeridian", "antimeridian far south", "north pole", "south pole"],
)
def test_all_and_only_those_within_their_radius_are_found(lat: float, lon: float) -> None:
    rng = np.random.default_rng(7)
    matcher = Matcher()
    lats, lons = scattered(rng, lat, lon, CLIENTS)
    numbers = matcher.add_clients([f"c{i}" for i in range(CLIENTS)], lats, lons)
    radius = rng.choice(RADII, CLIENTS)
    narrow = rng.random(CLIENTS) < 0.2
    for metres in set(RADII):
        for wanted, those in (("app/#", ~narrow), ("app/b", narrow)):
            matcher.subscribe_many(numbers[(radius == metres) & those], Subscription(wanted, area=Circle(metres)))
    order = np.argsort(lats)
    found = 0
    for _ in range(ROUNDS):
        movers = rng.choice(CLIENTS, 5_000, replace=False)
        lats[movers], lons[movers] = scattered(rng, lat, lon, len(movers))
        matcher.move_many(numbers[movers], lats[movers], lons[movers])
        order = np.argsort(lats)
        place_lat, place_lon = scattered(rng, lat, lon, EVENTS // ROUNDS)
        topic = rng.integers(0, 2, len(place_lat)).astype(np.int32)
        matches = matcher.match_batch(
            EventBatch(
                published=np.zeros(len(place_lat), np.int64),
                lat=place_lat,
                lon=place_lon,
                topics=("app/a", "app/b"),
                topic=topic,
            )
        )
        reach = np.degrees(max(RADII) * 1.01 / EARTH_RADIUS)
        for i, (event_lat, event_lon) in enumerate(zip(place_lat.tolist(), place_lon.tolist(), strict=True)):
            window: Any = order[
                np.searchsorted(lats[order], event_lat - reach) : np.searchsorted(lats[order], event_lat + reach)
            ]
            near = window[within(event_lat, event_lon, lats[window], lons[window], radius[window])]
            expected = numbers[near[~narrow[near] | (topic[i] == 1)]]
            got = matches.clients[matches.offsets[i] : matches.offsets[i + 1]]
            np.testing.assert_array_equal(np.sort(got), np.sort(expected))
            found += len(got)
    assert found > 10 * EVENTS  # the comparison is about something


def moved(lat: Floats, lon: Floats, metres: Floats, bearing: Floats) -> tuple[Floats, Floats]:
    """Where one arrives going so far in a direction."""
    angle, phi = metres / EARTH_RADIUS, np.radians(lat)
    sine = np.clip(np.sin(phi) * np.cos(angle) + np.cos(phi) * np.sin(angle) * np.cos(bearing), -1, 1)
    turn = np.arctan2(np.sin(bearing) * np.sin(angle) * np.cos(phi), np.cos(angle) - np.sin(phi) * sine)
    return np.degrees(np.arcsin(sine)), (lon + np.degrees(turn) + 180.0) % 360.0 - 180.0


@pytest.mark.parametrize("seed", range(3))
def test_events_just_inside_and_just_outside_circles_of_every_size_at_every_latitude(seed: int) -> None:
    """Where the planar formula of the grid errs most: near the border, far from the centre, far from the equator."""
    rng = np.random.default_rng(seed)
    count = 1_500
    lat = np.concatenate([rng.uniform(-90, 90, count // 2), 90 - 10 ** rng.uniform(-5, 1.5, count // 2)])
    lat[::3] *= -1
    lon = rng.uniform(-180, 180, count)
    radius = 10 ** rng.uniform(-1, 7.2, count)
    matcher = Matcher()
    numbers = matcher.add_clients([f"c{i}" for i in range(count)], lat, lon)
    for number, metres in zip(numbers.tolist(), radius.tolist(), strict=True):
        matcher.subscribe(f"c{number}", Subscription(area=Circle(metres)))
    beside = radius * (1 + rng.choice([-1, 1], count) * 10 ** rng.uniform(-9, -1.5, count))
    place_lat, place_lon = moved(lat, lon, np.minimum(beside, 2e7), rng.uniform(-np.pi, np.pi, count))
    matches = matcher.match_batch(
        EventBatch(
            published=np.zeros(count, np.int64),
            lat=place_lat,
            lon=place_lon,
            topics=("a",),
            topic=np.zeros(count, np.int32),
        )
    )
    for i in range(count):
        expected = np.flatnonzero(within(float(place_lat[i]), float(place_lon[i]), lat, lon, radius))
        got = matches.clients[matches.offsets[i] : matches.offsets[i + 1]]
        np.testing.assert_array_equal(np.sort(got), expected)
    assert len(matches.clients) > 10 * count
