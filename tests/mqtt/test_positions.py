"""Positions, contexts and reserved topics."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.strategies import names, values

from nearcast.errors import InvalidContext, InvalidInput, InvalidPosition, InvalidTopic
from nearcast.model.geometry import Point, distance
from nearcast.mqtt.names import Reserved, ReservedTopic, reserved
from nearcast.mqtt.positions import (
    ContextReport,
    PositionReport,
    compact_position,
    context_in,
    context_payload,
    point_in,
    point_text,
    position_in,
)

points = st.builds(Point, st.floats(-90, 90), st.floats(-180, 180))
HERE = Point(49.8728, 8.6512)


@given(points)
def test_a_point_as_text_keeps_every_digit(point: Point) -> None:
    assert point_in(point_text(point)) == point
    assert position_in(point_text(point).encode()) == PositionReport(point)


@given(points, st.none() | st.floats(0, 655), st.none() | st.floats(0, 359.99))
def test_the_compact_form_keeps_a_position_to_a_centimetre(
    point: Point, speed: float | None, heading: float | None
) -> None:
    payload = compact_position(PositionReport(point, speed, heading))
    back = position_in(payload)
    assert back is not None
    assert distance(back.point, point) < 0.02
    if speed is None or heading is None:
        assert (len(payload), back.speed, back.heading) == (9, None, None)
    else:
        assert len(payload) == 13
        assert back.speed == pytest.approx(speed, abs=0.005001)
        assert back.heading == pytest.approx(heading, abs=0.005001)


def test_the_compact_form_is_the_one_of_the_contract() -> None:
    assert compact_position(PositionReport(HERE)) == struct.pack(">Bii", 1, 498_728_000, 86_512_000)
    moving = compact_position(PositionReport(HERE, 1.5, 90))
    assert moving == struct.pack(">BiiHH", 1, 498_728_000, 86_512_000, 150, 9_000)


def test_a_heading_that_rounds_to_a_full_turn_is_north() -> None:
    report = position_in(compact_position(PositionReport(HERE, 1, 359.999)))
    assert report is not None
    assert report.heading == 0


@pytest.mark.parametrize(
    ("payload", "report"),
    [
        (b"", None),
        (b"49.8728,8.6512", PositionReport(HERE)),
        (b" 49.8728 , 8.6512\n", PositionReport(HERE)),
        (b'{"type": "Point", "coordinates": [8.6512, 49.8728]}', PositionReport(HERE)),
        (b'{"type": "Point", "coordinates": [8.6512, 49.8728, 144]}', PositionReport(HERE)),
        (
            b' {"type": "Feature", "geometry": {"type": "Point", "coordinates": [8.6512, 49.8728]}, "properties": {"speed": 2, "heading": 90}}',
            PositionReport(HERE, 2.0, 90.0),
        ),
        (
            b'{"type": "Feature", "properties": null, "geometry": {"type": "Point", "coordinates": [8.6512, 49.8728]}}',
            PositionReport(HERE),
        ),
    ],
)
def test_every_form_of_a_position_is_read(payload: bytes, report: PositionReport | None) -> None:
    assert position_in(payload) == report


@pytest.mark.parametrize(
    "payload",
    [
        b"49.8728",
        b"49.8728;8.6512",
        b"91,0",
        b"0,181",
        b"nan,0",
        b"1_0,2",
        b"here",
        b"\x01",
        b"\x01" + b"\x00" * 9,
        b"\x01\x7f\xff\xff\xff\x00\x00\x00\x00",
        b"\x02\xff\xff",
        b"{",
        b"{" * 9_000,
        b'{"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]}, "properties": {"speed": 1%s}}'
        % (b"0" * 400),
        b"{}",
        b'{"type": "LineString", "coordinates": [[1, 2]]}',
        b'{"type": "Point", "coordinates": ["a", 2]}',
        b'{"type": "Point", "coordinates": [1]}',
        b'{"type": "Feature", "geometry": null}',
        b'{"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]}, "properties": {"heading": 360}}',
        b'{"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]}, "properties": {"speed": -1}}',
        b'{"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]}, "properties": {"heading": true}}',
    ],
    ids=lambda payload: payload[:40].decode("ascii", "replace"),
)
def test_what_is_no_position_is_refused(payload: bytes) -> None:
    with pytest.raises(InvalidPosition):
        position_in(payload)


@given(st.binary(max_size=30))
def test_any_payload_is_read_or_refused(payload: bytes) -> None:
    for reader in (position_in, context_in):
        try:
            reader(payload)
        except InvalidInput:
            continue


@given(st.dictionaries(names, values, max_size=4), st.none() | points)
def test_a_context_comes_back_as_it_was(attributes: dict[str, Any], position: Point | None) -> None:
    report = ContextReport(attributes, position)
    assert context_in(context_payload(report)) == report


def test_a_context_is_written_by_hand_as_plain_json() -> None:
    payload = {"speed": 12.5, "transport": {"path": "/vehicle/car"}, "type": "taxi", "skills": ["first aid", "french"]}
    report = context_in(json.dumps(payload).encode())
    assert report is not None
    assert report.position is None
    assert report.attributes["type"] == "taxi"
    assert report.attributes["skills"] == frozenset({"first aid", "french"})
    assert str(report.attributes["transport"]) == "/vehicle/car"


def test_geometries_of_a_context_are_points_and_areas() -> None:
    square = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}
    payload = {"destination": {"type": "Point", "coordinates": [8.6512, 49.8728]}, "district": square}
    report = context_in(json.dumps(payload).encode())
    assert report is not None
    assert report.attributes["destination"] == HERE
    assert type(report.attributes["district"]).__name__ == "Polygon"


def test_an_empty_payload_deregisters_a_context() -> None:
    assert context_in(b"") is None


@pytest.mark.parametrize(
    "payload",
    [
        b"[]",
        b"5",
        b"\xff",
        b'{"a": null}',
        b'{"a": {"b": 1}}',
        b'{"a": [1]}',
        b'{"": 1}',
        b'{"a": 1e999}',
        b'{"a": {"area": 500}}',
        b'{"type": "Feature", "properties": [1]}',
    ],
)
def test_what_is_no_context_is_refused(payload: bytes) -> None:
    with pytest.raises(InvalidContext):
        context_in(payload)


@pytest.mark.parametrize("kind", ReservedTopic)
def test_every_reserved_topic_is_recognized(kind: ReservedTopic) -> None:
    if kind.value.endswith("/"):
        assert reserved(kind.about("a/b")) == Reserved(kind, "a/b")
        with pytest.raises(InvalidTopic):
            reserved(kind.topic)
    else:
        assert reserved(kind.topic) == Reserved(kind)
        with pytest.raises(InvalidTopic):
            reserved(kind.topic + "/more")


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1))
def test_a_filter_in_a_topic_holds_no_wildcard_and_comes_back(topic_filter: str) -> None:
    for kind in (ReservedTopic.MORE, ReservedTopic.ENOUGH):
        topic = kind.about(topic_filter)
        assert "+" not in topic
        assert "#" not in topic
        assert reserved(topic) == Reserved(kind, topic_filter)


def test_other_topics_are_not_reserved() -> None:
    for topic in ("a", "$SYS/uptime", "$near/a=1/b", "nearcast/position", "$nearcast"):
        assert reserved(topic) is None
    with pytest.raises(InvalidTopic, match=r"\$nearcast/position"):
        reserved("$nearcast/postion")
