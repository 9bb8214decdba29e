"""Traces: what was recorded is what moves, in all formats; and what cannot be read says where and why."""

import csv
import json
import math
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.simulation.mobility.measures import jumps, speed

from nearcast.errors import InvalidInput, InvalidTrace
from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS, instant, to_text
from nearcast.runtime.legs import Leg
from nearcast.runtime.simulation.mobility.traces.reading import read_traces
from nearcast.runtime.simulation.mobility.traces.track import Replay, Traces, Track
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.schedules import Stays

ORIGIN = Point(49.8728, 8.6512)
PLANE = Plane(ORIGIN)
NOON = instant("2026-11-15T12:00:00Z")

Fix = tuple[int, float, float]
"""Microseconds, latitude, longitude."""

RECORDED: dict[str, list[Fix]] = {
    "ada": [(NOON, 49.87, 8.65), (NOON + 10_000_000, 49.871, 8.651), (NOON + 12_500_000, 49.871, 8.652)],
    "bob": [(NOON + 5_000_000, 49.88, 8.64), (NOON + 65_000_000, 49.88, 8.64)],
}


def write_csv(path: Path, recorded: dict[str, list[Fix]], time: Callable[[int], str] = to_text) -> None:
    rows = sorted((at, name, lat, lon) for name, fixes in recorded.items() for at, lat, lon in fixes)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["time", "battery", "id", "lon", "lat"])
        writer.writerows([time(at), "full", name, lon, lat] for at, name, lat, lon in rows)


def write_gpx(path: Path, recorded: dict[str, list[Fix]]) -> None:
    tracks = "".join(
        f"<trk><name>{name}</name><trkseg>"
        + "".join(
            f'<trkpt lat="{lat}" lon="{lon}">\n<ele>7</ele><time>{to_text(at)}</time></trkpt>' for at, lat, lon in fixes
        )
        + "</trkseg></trk>"
        for name, fixes in recorded.items()
    )
    path.write_text(
        f'<?xml version="1.0"?>\n<gpx xmlns="http://www.topografix.com/GPX/1/1" version="1.1">{tracks}</gpx>'
    )


def moving_point(fixes: list[Fix], **more: object) -> dict[str, object]:
    return {
        "type": "MovingPoint",
        "datetimes": [to_text(at) for at, _, _ in fixes],
        "coordinates": [[lon, lat, 100.0] for _, lat, lon in fixes],
        **more,
    }


def write_prism(path: Path, recorded: dict[str, list[Fix]]) -> None:
    features = [{"type": "Feature", "id": name, "temporalGeometry": moving_point(f)} for name, f in recorded.items()]
    crs = {"type": "Name", "properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}}
    path.write_text(json.dumps({"type": "FeatureCollection", "crs": crs, "features": features}))


def write_trajectories(path: Path, recorded: dict[str, list[Fix]]) -> None:
    features = [
        {
            "type": "Feature",
            "id": name,
            "geometry": {"type": "LineString", "coordinates": [[lon, lat] for _, lat, lon in fixes]},
            "properties": {"datetimes": [to_text(at) for at, _, _ in fixes]},
        }
        for name, fixes in recorded.items()
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))


FORMATS: dict[str, tuple[str, Callable[[Path, dict[str, list[Fix]]], None]]] = {
    "csv": ("a.csv", write_csv),
    "csv in seconds": (
        "a.csv",
        lambda path, recorded: write_csv(path, recorded, lambda at: f"{at / MICROSECONDS:.6f}"),
    ),
    "gpx": ("a.gpx", write_gpx),
    "prism": ("a.json", write_prism),
    "trajectories": ("a.mfjson", write_trajectories),
}


def legs_of(replay: Replay, start: int = 0) -> list[Leg]:
    return list(replay(Random(0), start))


def at(legs: list[Leg], time: int) -> tuple[float, float]:
    """Where somebody is at an instant; after the last leg, where that ended."""
    return next((leg for leg in legs if leg.until > time), legs[-1]).at(time)


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_tells_the_same(kind: str, tmp_path: Path) -> None:
    name, write = FORMATS[kind]
    write(tmp_path / name, RECORDED)
    traces = read_traces(tmp_path / name)
    assert (traces.first, traces.last) == (NOON, NOON + 65_000_000)
    assert {
        track.name: list(zip(track.times, track.lat, track.lon, strict=True)) for track in traces.tracks
    } == RECORDED
    assert not any(track.gaps.any() or track.step for track in traces.tracks)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_replay_passes_through_each_fix_at_its_time(kind: str, tmp_path: Path) -> None:
    name, write = FORMATS[kind]
    write(tmp_path / name, RECORDED)
    start = 1_000
    for replay in read_traces(tmp_path / name).replays(PLANE):
        legs = legs_of(replay, start)
        assert legs[0].start == start
        assert max(jumps(legs), default=0.0) < 1e-9
        for time, lat, lon in RECORDED[replay.name]:
            assert at(legs, time - NOON + start) == pytest.approx(PLANE.to_xy(Point(lat, lon)), abs=1e-6)


fixes = st.lists(
    st.tuples(st.integers(1, 10**9), st.floats(-0.05, 0.05), st.floats(-0.05, 0.05)), min_size=1, max_size=40
)


def track_of(steps: list[tuple[int, float, float]], name: str = "ada") -> Track:
    times = np.cumsum([step for step, _, _ in steps])
    lat = np.array([ORIGIN.lat + lat for _, lat, _ in steps])
    lon = np.array([ORIGIN.lon + lon for _, _, lon in steps])
    return Track(name, times, lat, lon, np.zeros(len(steps) - 1, np.bool_))


@given(fixes, st.integers(0, 2**50), st.data())
def test_any_trace_is_replayed_from_any_instant_on(
    steps: list[tuple[int, float, float]], start: int, data: st.DataObject
) -> None:
    track = track_of(steps)
    begin = data.draw(st.sampled_from(track.times.tolist()) | st.integers(0, int(track.times[-1]) + 10))
    (replay,) = Traces((track,)).replays(PLANE, begin=begin)
    legs = legs_of(replay, start)
    assert legs[0].start == start
    assert max(jumps(legs), default=0.0) < 1e-6
    for time, x, y in zip(replay.times.tolist(), replay.x, replay.y, strict=True):
        if time >= 0:
            assert at(legs, start + time) == pytest.approx((x, y), abs=1e-6)
    # Between two fixes, evenly.
    for time in data.draw(st.lists(st.integers(0, max(0, int(replay.times[-1]))), max_size=5)):
        expected = np.interp(time, replay.times, replay.x), np.interp(time, replay.times, replay.y)
        assert at(legs, start + time) == pytest.approx(expected, abs=1e-6)


def test_long_traces_are_replayed_piece_by_piece() -> None:
    count = 5_000
    track = track_of([(1_000_000, math.sin(step) / 100, math.cos(step) / 100) for step in range(count)])
    (replay,) = Traces((track,)).replays(PLANE)
    legs = legs_of(replay)
    assert len(legs) == count - 1
    assert max(jumps(legs)) < 1e-9


def test_the_run_starts_with_the_first_fix_of_all_unless_told_otherwise(tmp_path: Path) -> None:
    write_csv(tmp_path / "a.csv", RECORDED)
    traces = read_traces(tmp_path / "a.csv")
    ada, bob = traces.replays(PLANE)
    assert (ada.stays, bob.stays) == (((0.0, 12.5),), ((5.0, 65.0),))
    # Before the first fix and after the last one stands; the host may be away then.
    assert legs_of(bob)[0] == Leg(0, 5_000_000, *map(float, (bob.x[0], bob.y[0])))
    ada, bob = traces.replays(PLANE, begin=NOON + 11_000_000)
    assert (ada.stays, bob.stays) == (((0.0, 1.5),), ((0.0, 54.0),))
    assert [(leg.start, leg.until) for leg in legs_of(ada, 7)] == [(7, 1_500_007)]
    ada, _ = traces.replays(PLANE, begin=NOON + 20_000_000)
    assert ada.stays == ()
    assert [speed(leg) for leg in legs_of(ada)] == [0.0]
    changes = Stays(tuple(replay.stays for replay in traces.replays(PLANE)))(Random(0), 0, 2)
    assert [(change.time, change.host, change.action.value) for change in changes] == [
        (0, 0, "join"),
        (5_000_000, 1, "join"),
        (12_500_000, 0, "leave"),
        (65_000_000, 1, "leave"),
    ]


def test_in_a_gap_one_goes_on_or_holds() -> None:
    track = track_of([(1, 0.0, 0.0), (10_000_000, 0.001, 0.0), (60_000_000, 0.002, 0.0), (10_000_000, 0.003, 0.0)])
    traces = Traces((track,))
    going = legs_of(traces.replays(PLANE, longest=30.0)[0])
    assert max(jumps(going)) < 1e-6
    holding = legs_of(traces.replays(PLANE, longest=30.0, in_gaps="hold")[0])
    assert [speed(leg) > 0 for leg in holding] == [True, False, True]
    # And is there at once when the next fix says so: a thousandth of a degree.
    assert list(jumps(holding)) == pytest.approx([0.0, 111.2], abs=0.1)
    assert holding[2] == pytest.approx(going[2])


def test_between_two_segments_of_a_track_the_receiver_was_off(tmp_path: Path) -> None:
    path = tmp_path / "a.gpx"
    write_gpx(path, {"ada": RECORDED["ada"]})
    text = path.read_text()
    last = text.rindex("<trkpt")
    path.write_text(text[:last] + "</trkseg><trkseg>" + text[last:])
    traces = read_traces(path)
    assert traces.tracks[0].gaps.tolist() == [False, True]
    assert [speed(leg) > 0 for leg in legs_of(traces.replays(PLANE, in_gaps="hold")[0])] == [True, False]


def test_tracks_without_a_name_get_a_number(tmp_path: Path) -> None:
    path = tmp_path / "a.gpx"
    write_gpx(path, {"": RECORDED["ada"], "x": RECORDED["bob"]})
    path.write_text(path.read_text().replace("</gpx>", "<trk><name>empty</name></trk></gpx>").replace(">x<", "><"))
    assert [track.name for track in read_traces(path).tracks] == ["track 1", "track 2"]
    path.write_text(path.read_text().replace("<name></name>", "<name>x</name>"))
    assert [track.name for track in read_traces(path).tracks] == ["x", "x 2"]


@pytest.mark.parametrize(
    ("interpolation", "gaps", "step"), [("Linear", False, False), ("Step", False, True), ("Discrete", True, False)]
)
def test_interpolation_is_as_the_file_says(interpolation: str, gaps: bool, step: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(moving_point(RECORDED["ada"], interpolation=interpolation)))
    (track,) = read_traces(path).tracks
    assert (track.name, track.gaps.tolist(), track.step) == ("feature 1", [gaps, gaps], step)
    moves = [speed(leg) > 0 for leg in legs_of(Traces((track,)).replays(PLANE)[0])]
    assert moves == [not step, not step]


def test_the_prisms_of_a_feature_are_one_track_with_gaps(tmp_path: Path) -> None:
    later = [(time + 100_000_000, lat, lon) for time, lat, lon in RECORDED["ada"]]
    geometry = {"type": "MovingGeometryCollection", "prisms": [moving_point(RECORDED["ada"]), moving_point(later)]}
    (tmp_path / "a.json").write_text(json.dumps({"type": "Feature", "id": 7, "temporalGeometry": geometry}))
    (track,) = read_traces(tmp_path / "a.json").tracks
    assert track.name == "7"
    assert track.gaps.tolist() == [False, False, True, False, False]


@pytest.mark.parametrize(
    "times",
    [
        ("2026-11-15T12:00:00Z", "2026-11-15T13:00:01.5+01:00", "2026-11-15T12:00:03.000001Z"),
        ("2026-11-15T12:00:00Z", "2026-11-15t12:00:01.5z", "2026-11-15 12:00:03.0000012345678Z"),
    ],
)
def test_times_may_be_written_in_any_way_of_the_standard(times: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,time,lat,lon\n" + "".join(f"a,{time},1,2\n" for time in times))
    (track,) = read_traces(tmp_path / "a.csv").tracks
    assert (track.times - NOON).tolist() == [0, 1_500_000, 3_000_001]


def test_the_centre_is_in_the_middle_even_across_the_date_line() -> None:
    lons = np.array([179.9, -179.9])
    traces = Traces((Track("a", np.array([1, 2]), np.array([10.0, 12.0]), lons, np.array([False])),))
    assert traces.centre.lat == 11.0
    assert abs(traces.centre.lon) == pytest.approx(180.0)


HEADER = "id,time,lat,lon\n"
GPX = '<gpx xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>\n{}\n</trkseg></trk></gpx>'
POINT = '<trkpt lat="1" lon="2"><time>2026-11-15T12:00:0{}Z</time></trkpt>'


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("a.csv", "", r"line 1: no single column id, time, lat, lon in an empty file"),
        ("a.csv", "id,time,lat\na,1,2\n", r"line 1: no single column lon in id, time, lat"),
        ("a.csv", HEADER, r"no fix"),
        ("a.csv", HEADER + "a,0,1,2\n\na,x,1,2\n", r"line 4: 'x' is not an RFC 3339 instant"),
        ("a.csv", HEADER + "a,0,1,2\na,1,north,2\n", r"line 3: lat 'north' is not a number"),
        ("a.csv", HEADER + "a,0,1,2\na,1,,2\n", r"line 3: lat is missing"),
        ("a.csv", HEADER + "a,0,1,2\n,1,1,2\n", r"line 3: id is missing"),
        ("a.csv", HEADER + "a,0,1,2\na,,1,2\n", r"line 3: time is missing"),
        ("a.csv", HEADER + "a,0,1,2\na,1,1\n", r"line 3: 3 values for 4 columns"),
        ("a.csv", HEADER + "a,0,1,2\na,1,91,2\n", r"line 3: latitude 91, longitude 2 is no place"),
        ("a.csv", HEADER + "a,0,1,2\na,1,1,nan\n", r"line 3: latitude 1, longitude nan is no place"),
        ("a.csv", HEADER + "a,5,1,2\nb,1,1,2\nb,2,1,2\na,5,1,2\n", r"line 5: this fix of 'a' is not later"),
        ("a.csv", HEADER + "a,5,1,2\na,inf,1,2\n", r"line 3: inf s is beyond"),
        ("a.csv", HEADER + "a,1700000000000,1,2\n", r"line 2: 1.7e\+12 s is beyond the year 9999"),
        ("a.csv", HEADER + "a,2026-11-15T12:00:00,1,2\n", r"line 2: .* is not an RFC 3339 instant"),
        ("a.csv", HEADER + "a,1,1,2\na,2026-11-15T12:00:00Z,1,2\n", r"some times are seconds and some are RFC 3339"),
        ("a.gpx", "<gpx>", r"line 1: no element found"),
        ("a.gpx", "<kml/>", r"of kml, not of gpx"),
        ("a.gpx", "<gpx><wpt lat='1' lon='2'/></gpx>", r"no track with points"),
        ("a.gpx", GPX.format("<trkpt lat='1'/>"), r"line 2: a trkpt has no lon"),
        ("a.gpx", GPX.format("<trkpt lat='1' lon='east'/>"), r"line 2: lon 'east' is not a number"),
        ("a.gpx", GPX.format("<trkpt lat='1' lon='2'/>"), r"line 2: a trkpt has no time"),
        ("a.gpx", GPX.format(POINT.format("x")), r"line 2: '2026-11-15T12:00:0xZ' is not"),
        ("a.gpx", GPX.format(POINT.format(2) + "\n" + POINT.format(1)), r"line 3: this fix of 'track 1' is not later"),
        ("a.gpx", GPX.format(POINT.format(1) + POINT.format(2).replace('"1"', '"-91"')), r"line 2: latitude -91"),
        ("a.gpx", GPX.format(POINT.format(1).replace("</trkpt>", "<time/></trkpt>")), r"line 2: a trkpt has two times"),
        ("a.gpx", "<!DOCTYPE gpx [<!ENTITY a 'aaaa'>]><gpx>&a;</gpx>", r"line 1: a document type"),
        ("a.json", "{", r"is no JSON"),
        ("a.json", "[" * 100_000, r"is no JSON"),
        ("a.json", "[]", r"type is None"),
        ("a.json", '{"type": "Point"}', r"type is 'Point'; give a Feature"),
        ("a.json", '{"type": "FeatureCollection", "features": []}', r"no features"),
        ("a.json", '{"type": "FeatureCollection", "features": [3]}', r"features\[0\] is no Feature"),
        ("a.json", '{"type": "Feature"}', r"neither a temporalGeometry nor a LineString"),
        ("a.json", '{"type": "Feature", "geometry": {"type": "LineString"}}', r"no times"),
        ("a.json", '{"type": "Feature", "temporalGeometry": {"type": "MovingPolygon"}}', r"'MovingPolygon' cannot be"),
        ("a.json", '{"type": "MovingGeometryCollection", "prisms": []}', r"no prisms"),
        (
            "a.json",
            '{"type": "MovingPoint", "datetimes": [1], "coordinates": []}',
            r"Expected `str`, got `int`.*RFC 3339",
        ),
        ("a.json", '{"type": "MovingPoint", "datetimes": [], "coordinates": []}', r"0 datetimes for 0 coordinates"),
        ("a.txt", "", r"no known format"),
        ("missing.csv", None, r"cannot be read: No such file"),
        ("missing.gpx", None, r"cannot be read: No such file"),
        ("missing.json", None, r"cannot be read: No such file"),
    ],
)
def test_what_cannot_be_read_says_where_and_why(name: str, text: str | None, complaint: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(InvalidTrace, match=complaint) as error:
        read_traces(tmp_path / name)
    assert name in str(error.value)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"interpolation": "Cubic"}, r"'Cubic' cannot be replayed"),
        ({"crs": {"type": "Name", "properties": {"name": "EPSG:3857"}}}, r"coordinates are in 'EPSG:3857'"),
        ({"coordinates": [[1.0], [1.0, 2.0], [1.0, 2.0]]}, r"coordinates\[0\]: \[1.0\] is no place"),
        ({"coordinates": [[1.0, 2.0]]}, r"3 datetimes for 1 coordinates"),
        ({"coordinates": [[1.0, 2.0], [1.0, 99.0], [1.0, 2.0]]}, r"fix \[1\]: latitude 99"),
        ({"datetimes": ["2026-11-15T12:00:00Z", "noon", "one"]}, r"fix \[1\]: 'noon' is not"),
        ({"datetimes": ["2026-11-15T12:00:00Z"] * 3}, r"fix \[1\]: this fix of '' is not later"),
    ],
)
def test_moving_points_that_cannot_be(change: dict[str, object], complaint: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(moving_point(RECORDED["ada"]) | change))
    with pytest.raises(InvalidTrace, match=complaint):
        read_traces(tmp_path / "a.json")


def test_options_that_cannot_be() -> None:
    traces = Traces((track_of([(1, 0.0, 0.0)]),))
    with pytest.raises(InvalidInput, match="'interpolate' or 'hold'"):
        traces.replays(PLANE, in_gaps="guess")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="give more than 0"):
        traces.replays(PLANE, longest=0.0)
