"""What was recorded elsewhere becomes rows of the record tables; what cannot be read is kept aside as it came, with the reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.pipeline.frames import rows_of
from tests.pipeline.tables.lakes import LATEST

from nearcast.errors import InvalidTrace
from nearcast.journal.lake import mark_exported
from nearcast.model.time import instant
from nearcast.pipeline.external import (
    External,
    format_of,
    ingest,
    read_csv,
    read_gpx,
    read_gtfs_realtime,
    read_moving_features,
    read_moving_features_csv,
    read_tweets,
)
from nearcast.pipeline.tables import Warehouse, read_lake, refine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT = instant("2026-03-16T12:00:00.25Z")
TEXT = "2026-03-16T12:00:00.25Z"


def reports(found: External) -> list[tuple[Any, ...]]:
    assert found.table == "reports"
    rows = rows_of(found.rows)
    assert all(row["offset"] is None for row in rows)
    return sorted((row["client"], row["time"], row["lat"], row["lon"]) for row in rows)


def reasons(found: External) -> list[str]:
    return sorted(row["reason"] for row in rows_of(found.aside))


def file(folder: Path, name: str, text: str | bytes) -> list[str]:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return [str(path)]


def test_csv(spark: SparkSession, tmp_path: Path) -> None:
    lines = f"""vehicle,when,speed,y,x
bus 1,{TEXT},3,49.87,8.65
bus 2,1773662400.25,3,49.88,8.66
bus 3,2026-03-16T13:00:00.25+01:00,3,-49.88,8.66
bus 1,yesterday,3,49.87,8.65
bus 1,2026-03-16T12:00:00,3,49.87,8.65
bus 1,{TEXT},3,north,8.65
bus 1,{TEXT},3,149.87,8.65
bus 1,{TEXT},3,,8.65
,{TEXT},3,49.87,8.65
bus 1,2030-01-01T00:00:00Z,3,49.87,8.65
"""
    columns = {"client": "vehicle", "time": "when", "lat": "y", "lon": "x"}
    found = read_csv(spark, file(tmp_path, "trace.csv", lines), LATEST, columns)
    assert reports(found) == [("bus 1", AT, 49.87, 8.65), ("bus 2", AT, 49.88, 8.66), ("bus 3", AT, -49.88, 8.66)]
    assert reasons(found) == [
        "client is missing",
        "lat 'north' cannot be read",
        "lat is above 90",
        "lat or lon is missing",
        "time '2026-03-16T12:00:00' cannot be read",
        "time 'yesterday' cannot be read",
        "time is in the future",
    ]
    [bad] = [row for row in rows_of(found.aside) if "north" in row["reason"]]
    assert json.loads(bad["raw"]) == {"vehicle": "bus 1", "when": TEXT, "speed": "3", "y": "north", "x": "8.65"}
    assert bad["file"] == "trace.csv"


def test_csv_without_a_column_says_which_there_are(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(InvalidTrace, match=r"no column id, lat, lon, only time, y; say which is which: --column"):
        read_csv(spark, file(tmp_path, "t.csv", "time,y\n1,2\n"), LATEST)


def test_gpx(spark: SparkSession, tmp_path: Path) -> None:
    text = f"""<?xml version="1.0"?>
<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1"><wpt lat="1" lon="1"/>
<trk><name>ada</name>
 <trkseg><trkpt lat="49.87" lon="8.65"><ele>1</ele><time>{TEXT}</time></trkpt></trkseg>
 <trkseg><trkpt lat="49.88" lon="8.65"><time>{TEXT}</time></trkpt>
  <trkpt lat="x" lon="8.65"><time>{TEXT}</time></trkpt><trkpt lat="49.8" lon="8.65"/><trkpt lon="8.65"/></trkseg></trk>
<trk><trkseg><trkpt lat="49.89" lon="8.65"><time>{TEXT}</time></trkpt></trkseg></trk>
<trk><name>nowhere</name></trk>
</gpx>"""
    found = read_gpx(spark, file(tmp_path, "walk.gpx", text), LATEST)
    assert reports(found) == [
        ("ada", AT, 49.87, 8.65),
        ("ada", AT, 49.88, 8.65),
        ("walk", AT, 49.89, 8.65),
    ]
    assert reasons(found) == [
        "lat 'x' cannot be read",
        "lat or lon is missing",
        "the track has no points",
        "time is missing",
    ]


def moving_point(*, name: str = "ada", lat: float = 49.87, **more: Any) -> dict[str, Any]:
    fixes = {"type": "MovingPoint", "datetimes": [TEXT], "coordinates": [[8.65, lat, 120.0]]}
    return {"type": "Feature", "id": name, "temporalGeometry": {**fixes, **more}}


def test_moving_features(spark: SparkSession, tmp_path: Path) -> None:
    line = {"type": "LineString", "coordinates": [[8.65, 49.87], [8.65, 49.88]]}
    prism = moving_point()["temporalGeometry"]
    features = [
        moving_point(),
        {"type": "Feature", "id": 7, "geometry": line, "properties": {"datetimes": [TEXT, "soon"]}},
        {
            "type": "Feature",
            "id": "p",
            "temporalGeometry": {"type": "MovingGeometryCollection", "prisms": [prism, prism]},
        },
        moving_point(name="short", coordinates=[]),
        {"type": "Feature", "id": "still"},
        {**moving_point(name="utm"), "crs": {"type": "Name", "properties": {"name": "urn:ogc:def:crs:EPSG::32632"}}},
    ]
    paths = file(tmp_path, "many.json", json.dumps({"type": "FeatureCollection", "features": features}))
    paths += file(tmp_path, "one.json", json.dumps(moving_point(name="alone")))
    paths += file(tmp_path, "bare.json", json.dumps(prism))
    paths += file(tmp_path, "torn.json", '{"type": "Feature", ')
    found = read_moving_features(spark, paths, LATEST)
    names = ["7", "ada", "alone", "bare", "p", "p"]
    assert reports(found) == [(name, AT, 49.87, 8.65) for name in names]
    assert reasons(found) == [
        "coordinates are in urn:ogc:def:crs:EPSG::32632, not in CRS84",
        "is no JSON object",
        "lat or lon is missing",
        "there are no fixes; give datetimes and coordinates",
        "time 'soon' cannot be read",
    ]


def header(system: str = "urn:ogc:def:crs:CRS:1.3:84", unit: str = ",sec", more: str = " 2D,") -> str:
    bounds = f"@stboundedby, {system},{more} 8 49, 9 50, 2026-03-16T12:00:00Z, 2026-03-16T13:00:00Z{unit}"
    return f"{bounds}\n@columns, mfidref, trajectory, state,xsd:token\n@foliation,Time\n"


def test_moving_features_as_csv(spark: SparkSession, tmp_path: Path) -> None:
    lines = """# a leg of three points, two legs that meet, and one of a single point
ada, 0.25, 10.25, 8.65 49.87 8.66 49.88 8.67 49.89, walking
"bob, jr",1,2,8.65 49.87 8.66 49.88
"bob, jr",2,3,8.66 49.88 8.66 49.88

cyd,4,4,8.65 49.87
ada,soon,10,8.65 49.87 8.66 49.88
ada,0,later,8.65 49.87
ada,0,1,8.65 north
ada,0,1,8.65 149.87
ada,0,1,8.65 49.87 8.66
ada,0,1
,0,1,8.65 49.87
"""
    paths = file(tmp_path, "walks.csv", header() + lines)
    found = read_moving_features_csv(spark, paths, LATEST)
    second = 1_000_000
    zero = AT - second // 4
    assert reports(found) == [
        ("ada", AT, 49.87, 8.65),
        ("ada", AT + 5 * second, 49.88, 8.66),
        ("ada", AT + 10 * second, 49.89, 8.67),
        ("bob, jr", zero + second, 49.87, 8.65),
        ("bob, jr", zero + 2 * second, 49.88, 8.66),
        ("bob, jr", zero + 2 * second, 49.88, 8.66),
        ("bob, jr", zero + 3 * second, 49.88, 8.66),
        ("cyd", zero + 4 * second, 49.87, 8.65),
    ]
    assert reasons(found) == [
        "client is missing",
        "is no line of mfidref, start, end, trajectory",
        "lat 'north' cannot be read",
        "lat is above 90",
        "the trajectory has no 2 coordinates for each point",
        "time 'later' cannot be read",
        "time 'soon' cannot be read",
        "time 'soon' cannot be read",
    ]
    [bad] = [row for row in rows_of(found.aside) if "north" in row["reason"]]
    assert (bad["file"], bad["raw"]) == ("walks.csv", "ada,0,1,8.65 north")


def test_each_file_of_moving_features_as_csv_has_its_own_header(spark: SparkSession, tmp_path: Path) -> None:
    leg, wgs = "8.65 49.87\n", "urn:x-ogc:def:crs:EPSG:6.6:4326"
    texts = {
        "minutes": header(unit=",minute") + f"m,1.5,2,{leg}",
        "absolute": header(unit=",absolute") + f"a,{TEXT},{TEXT},{leg}",
        "default": header(unit="", more="") + f"d,0.25,1,{leg}",
        "turned": header(wgs, more=" 3D,") + "t,0.25,1,49.87 8.65 120.0\n",
        "bare": f"b,0,1,{leg}",
        "gauss": header("urn:ogc:def:crs:EPSG::31467") + f"g,0,1,{leg}",
        "weeks": header(unit=",week") + f"w,0,1,{leg}",
        "columns": header().replace("mfidref, trajectory", "x, y") + f"c,0,1,{leg}",
        "begin": header().replace("2026-03-16T12:00:00Z", "noon") + f"n,0,1,{leg}",
    }
    paths = [path for name, text in texts.items() for path in file(tmp_path, f"{name}.mfcsv", text)]
    found = read_moving_features_csv(spark, paths, LATEST)
    minutes = AT - 250_000 + 90_000_000
    assert reports(found) == [
        ("a", AT, 49.87, 8.65), ("d", AT, 49.87, 8.65), ("m", minutes, 49.87, 8.65), ("t", AT, 49.87, 8.65),
    ]  # fmt: skip
    assert reasons(found) == [
        "coordinates are in urn:ogc:def:crs:EPSG::31467, not in CRS84 or EPSG:4326",
        "the file has no line @columns,mfidref,trajectory",
        "the file has no line @stboundedby",
        "times are in week, not in sec, minute or absolute",
        "times count from noon, which is no instant",
    ]


def test_a_csv_file_says_by_its_first_letter_whether_it_is_of_moving_features(tmp_path: Path) -> None:
    [ours], [theirs] = (file(tmp_path, name, text) for name, text in (("a.csv", "id,time\n"), ("b.csv", header())))
    assert [format_of([Path(path)]) for path in (ours, theirs)] == ["csv", "moving-features-csv"]
    assert format_of([Path(ours), Path(theirs)]) == "csv", "which then says what it lacks"


def test_gtfs_realtime(spark: SparkSession, tmp_path: Path) -> None:
    from google.transit import gtfs_realtime_pb2

    feed: Any = gtfs_realtime_pb2.FeedMessage()
    feed.header.gtfs_realtime_version = "2.0"
    feed.header.timestamp = AT // 1_000_000
    for name, lat, lon in (("bus 1", 49.9, 8.65), ("", -33.75, 151.125), ("lost", 149.0, 8.0)):
        entity = feed.entity.add(id=f"entity {name}")
        entity.vehicle.vehicle.id = name
        entity.vehicle.position.latitude, entity.vehicle.position.longitude = lat, lon
    feed.entity[1].vehicle.timestamp = AT // 1_000_000 - 5
    feed.entity.add(id="delay").trip_update.trip.trip_id = "t"
    feed.entity.add(id="nowhere").vehicle.vehicle.id = "dark"
    paths = file(tmp_path, "feed.pb", feed.SerializeToString()) + file(tmp_path, "torn.pb", b"\xff\xfe junk")
    found = read_gtfs_realtime(spark, paths, LATEST)
    seconds = AT // 1_000_000 * 1_000_000
    assert reports(found) == [("bus 1", seconds, 49.9, 8.65), ("entity ", seconds - 5_000_000, -33.75, 151.125)]
    unreadable, *others = sorted(reasons(found), key=lambda text: not text.startswith("is no GTFS"))
    assert unreadable.startswith("is no GTFS-realtime feed")
    assert others == ["lat is above 90", "lat or lon is missing"]


def test_tweets(spark: SparkSession, tmp_path: Path) -> None:
    point = {"type": "Point", "coordinates": [8.65, 49.87]}
    user = {"screen_name": "ada", "id_str": "1"}
    hashtags = {"hashtags": [{"text": "jam"}, {"text": "A5"}]}
    lines = [
        {"id_str": "1", "created_at": TEXT, "text": "Stau!", "user": user, "coordinates": point, "entities": hashtags},
        {"id": 2, "created_at": "Mon Mar 16 12:00:00 +0000 2026", "full_text": "grün", "author_id": "9", "lang": "de"},
        {"id_str": "3", "created_at": TEXT, "text": "", "user": user, "geo": {"coordinates": [49.87, 8.65]}},
        {"created_at": TEXT, "text": "who?"},
        {"id_str": "5", "created_at": "now", "text": "when?"},
    ]
    text = "\n".join(json.dumps(line) for line in lines) + "\n{torn\n"
    found = read_tweets(spark, file(tmp_path, "some.jsonl", text), LATEST)
    assert found.table == "events"
    by_id = {row["event"]: row for row in rows_of(found.rows)}
    assert sorted(by_id) == ["1", "2", "3"]
    first, second, third = by_id["1"], by_id["2"], by_id["3"]
    assert (first["time"], first["publisher"], first["topic"], first["lat"], first["lon"]) == (
        AT,
        "ada",
        "tweets",
        49.87,
        8.65,
    )
    assert (first["payload"], first["bytes"], first["tags"], first["receivers"]) == (b"Stau!", 5, ["jam", "A5"], None)
    assert (second["time"], second["bytes"], second["attributes"]) == (AT - 250_000, 5, '{"lang":"de"}')
    assert (second["lat"], second["publisher"], third["lat"], third["lon"]) == (None, "9", 49.87, 8.65)
    assert reasons(found) == ["event is missing", "is no JSON object", "time 'now' cannot be read"]


def test_the_same_source_twice_is_in_the_lake_once(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"id,time,lat,lon\nada,{TEXT},49.87,8.65\nada,0,49.87,8.65\nada,{TEXT},lost,8.65\n")
    lake, warehouse = tmp_path / "lake", Warehouse(tmp_path / "warehouse")
    for _ in range(2):
        done = ingest(spark, [path], lake, LATEST)
        assert (done.table, done.rows, done.aside) == ("reports", 2, 1)
        assert done.reasons == {"lat 'lost' cannot be read": 1}
        assert read_lake(spark, lake)["reports"].count() == 2
        found = refine(spark, warehouse, lake, "reports", LATEST)
        assert (found.bronze, found.silver) == (2, 2)
    path.write_text(path.read_text() + f"bob,{TEXT},49.87,8.65\n")
    ingest(spark, [path], lake, LATEST)
    found = refine(spark, warehouse, lake, "reports", LATEST)
    assert (found.bronze, found.silver, found.duplicates) == (5, 3, 2), "a longer trace adds what is new"


def test_the_lake_of_a_broker_is_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,time,lat,lon\n")
    mark_exported(tmp_path / "lake", 5)
    with pytest.raises(InvalidTrace, match="give what comes from elsewhere a lake of its own"):
        ingest(spark, [path], tmp_path / "lake", LATEST)


@pytest.mark.parametrize("read", [read_csv, read_gpx, read_moving_features, read_moving_features_csv, read_tweets])
def test_no_python_per_row(
    spark: SparkSession, tmp_path: Path, read: Callable[[SparkSession, list[str], int], External]
) -> None:
    found = read(spark, file(tmp_path, "some", "id,time,lat,lon\n"), LATEST)
    for frame in (found.rows, found.aside):
        assert "Python" not in frame._jdf.queryExecution().executedPlan().toString()
