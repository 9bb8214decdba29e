"""Reports that say when and how exactly, over MQTT: late ones and duplicates move nobody, wrong clocks are told."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from mqtt5 import PubAckReasonCode
from tests.broker.talker import broker, serving, talking
from tests.broker.talker import run as run_scenario

from nearcast.broker.server import Server
from nearcast.errors import InvalidPosition
from nearcast.journal import LateReportEntry
from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS, instant, to_text
from nearcast.mqtt.positions import PositionReport, compact_position, position_in

POSITION = "$nearcast/position"


def feature(lat: float, **properties: object) -> bytes:
    point = {"type": "Point", "coordinates": [8.65, lat]}
    return json.dumps({"type": "Feature", "geometry": point, "properties": properties}).encode()


def test_a_late_report_is_recorded_and_moves_nobody(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        presence = server.broker.presence
        now = server.broker.clock.now()
        early, late = to_text(now - 60 * MICROSECONDS), to_text(now - 90 * MICROSECONDS)
        async with talking(server, "ada") as ada:
            for lat, time in ((49.87, early), (49.88, late), (49.88, late), (49.87, early)):
                answer = await ada.tell(POSITION, feature(lat, time=time, accuracy=4))
                assert answer.reason_code == PubAckReasonCode.SUCCESS
            assert presence.position("ada") == Point(49.87, 8.65)
            ada.publish(POSITION, feature(49.89, time=late))  # the same with quality 0
            await ada.tell(POSITION, feature(49.90, time=early))
            assert presence.position("ada") == Point(49.90, 8.65)
            statistics = presence.statistics()
            assert (statistics.reports, statistics.late, statistics.duplicates) == (2, 2, 2)
            recorded = [
                record for chunk in server.broker.journal.read(0, kinds=(LateReportEntry,)) for _, record in chunk
            ]
            assert [(each.lat, each.fixed) for each in recorded if isinstance(each, LateReportEntry)] == [
                (49.88, instant(late)),
                (49.89, instant(late)),
            ]

    broker(tmp_path, scenario)


def test_a_clock_that_is_wrong_is_told_so(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "ada") as ada:
            ahead = to_text(server.broker.clock.now() + 3600 * MICROSECONDS)
            answer = await ada.tell(POSITION, feature(49.87, time=ahead))
            assert answer.reason_code == PubAckReasonCode.PAYLOAD_FORMAT_INVALID
            assert "set the client's clock" in (answer.reason_str or "")
            await ada.subscribe("$nearcast/problems")
            ada.publish(POSITION, feature(49.87, time=ahead))
            assert b"ahead of the broker's clock" in (await ada.heard()).payload
            assert server.broker.presence.position("ada") is None

    broker(tmp_path, scenario)


def test_the_order_of_times_outlives_a_restart_and_ends_when_the_position_is_forgotten(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as server, talking(server, "ada", session_expiry_interval=600) as ada:
            now = server.broker.clock.now()
            await ada.tell(POSITION, feature(49.87, time=to_text(now)))
        again = {"session_expiry_interval": 600, "clean_start": False}
        async with serving(tmp_path) as server, talking(server, "ada", **again) as ada:
            await ada.tell(POSITION, feature(49.88, time=to_text(now - 1)))
            assert server.broker.presence.position("ada") == Point(49.87, 8.65)
            await ada.tell(POSITION, b"")
            await ada.tell(POSITION, feature(49.88, time=to_text(now - 1)))
            assert server.broker.presence.position("ada") == Point(49.88, 8.65)

    run_scenario(scenario())


def test_a_late_report_that_comes_again_after_a_fall_is_recorded_once(tmp_path: Path) -> None:
    durable: dict[str, Any] = {"session_expiry_interval": 600, "clean_start": False}

    async def scenario() -> None:
        async with serving(tmp_path / "first") as server, talking(server, "ada", **durable) as ada:
            now = server.broker.clock.now()
            late = feature(49.88, time=to_text(now - MICROSECONDS))
            await ada.tell(POSITION, feature(49.87, time=to_text(now)))
            await ada.tell(POSITION, late)
            assert server.broker.presence.statistics().late == 1
            shutil.copytree(tmp_path / "first", tmp_path / "second")  # as a fall leaves it
        async with serving(tmp_path / "second") as server, talking(server, "ada", **durable) as ada:
            await ada.tell(POSITION, late)
            statistics = server.broker.presence.statistics()
            assert (statistics.late, statistics.duplicates) == (0, 1)

    run_scenario(scenario())


def test_a_row_that_an_earlier_version_has_written_still_knows_the_newest_fix(tmp_path: Path) -> None:
    async def scenario() -> None:
        durable: dict[str, Any] = {"session_expiry_interval": 600, "clean_start": False}
        async with serving(tmp_path) as server, talking(server, "ada", **durable) as ada:
            now = server.broker.clock.now()
            await ada.tell(POSITION, feature(49.87, time=to_text(now)))
            broker = server.broker
            row = msgspec.msgpack.decode(broker.presence.packed(broker.sessions.all["ada"]))
            broker.presence._take("ada", msgspec.msgpack.encode(row[:7]))  # as it was before there were more
            for lat in (49.87, 49.88):
                await ada.tell(POSITION, feature(lat, time=to_text(now)))
            assert broker.presence.statistics().duplicates == 1
            assert broker.presence.position("ada") == Point(49.88, 8.65)

    run_scenario(scenario())


NOON = instant("2026-11-15T12:00:00Z")


@pytest.mark.parametrize(
    ("report", "size"),
    [
        (PositionReport(Point(49.87, 8.65), time=NOON), 19),
        (PositionReport(Point(49.87, 8.65), accuracy=3.5), 19),
        (PositionReport(Point(-49.87, -8.65), 1.5, 270.25, NOON, 12.5), 23),
    ],
)
def test_the_compact_form_says_all_of_it(report: PositionReport, size: int) -> None:
    payload = compact_position(report)
    assert len(payload) == size
    assert position_in(payload) == report


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        (b"\x02" + bytes(17), "19 or 23 bytes, not 18"),
        (feature(49.87, time="yesterday"), "time says when.*RFC 3339"),
        (feature(49.87, time=True), "time says when"),
        (feature(49.87, time=[1]), "time says when"),
        (feature(49.87, accuracy=-1), "accuracy must be finite and not negative"),
        (b"\x02" + bytes(8) + b"\xff" * 8 + bytes(2), "beyond the year 9999"),
    ],
)
def test_what_cannot_be_read_says_why(payload: bytes, problem: str) -> None:
    with pytest.raises(InvalidPosition, match=problem):
        position_in(payload)
