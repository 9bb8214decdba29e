"""``nearcast pub``, ``sub`` and ``watch`` against a real broker."""

import io
import json
import sys

import pytest
from tests.served import ServedBroker

import nearcast
from nearcast import Circle, Path, Point
from nearcast.cli import main
from nearcast.cli.sub import line
from nearcast.cli.watch_picture import Picture
from nearcast.model.event import Event

LONG = 60.0
HERE = Point(49.87, 8.65)
Output = pytest.CaptureFixture[str]


def succeed(output: Output, *arguments: str) -> str:
    output.readouterr()
    status = main(arguments)
    printed, complaints = output.readouterr()
    assert (status, complaints) == (0, "")
    return printed


def test_pub_says_everything_that_an_event_may_say(broker: ServedBroker, capsys: Output) -> None:
    options = [
        "--place=49.87,8.65",
        "--reach=800",
        "-a",
        "severity=4",
        "-a",
        "kind=/jam",
        "--tag=slow",
        "--lifetime=5m",
    ]
    with nearcast.connect_sync(broker.url, schemes=False) as me, me.subscribe("cli/jam") as events:
        me.update(lat=HERE.lat, lon=HERE.lon, role="/driver")
        published = succeed(
            capsys, "pub", "cli/jam", "stop", f"--url={broker.url}", *options, "--to=under(role, '/driver')"
        )
        event = events.next(LONG)
    assert (event.id, event.payload, event.place, event.reach) == (published.strip(), b"stop", HERE, Circle(800, HERE))
    assert event.attributes == {"severity": 4, "kind": Path.parse("/jam")}
    assert event.tags == {"slow"}
    assert event.lifetime is not None
    assert event.to is not None


def test_what_one_command_publishes_another_prints(
    broker: ServedBroker, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"--url={broker.url}"
    published = succeed(capsys, "pub", "cli/news", "first", url, "--place=49.87,8.65", "-a", "severity=4").strip()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff")))
    assert json.loads(succeed(capsys, "pub", "cli/news", "-", url, "--id=mine", "--json")) == {
        "id": "mine",
        "topic": "cli/news",
    }
    first, second = json.loads(succeed(capsys, "sub", "cli/news", url, "--since=-1h", "--count=2", "--json"))
    for event in (first, second):
        assert event.pop("published").endswith("Z")
    assert first == {
        "id": published,
        "topic": "cli/news",
        "place": {"lat": 49.87, "lon": 8.65},
        "attributes": {"severity": 4},
        "payload": "first",
    }
    assert second == {"id": "mine", "topic": "cli/news", "payload_base64": "/w=="}
    lines = succeed(capsys, "sub", "cli/news", url, "--since=-1h", "--until=now", "--where=severity >= 3").splitlines()
    assert [each.split("  ", 1)[1] for each in lines] == ["cli/news  at 49.87,8.65  severity=4  first"]
    near = ["--at=49.87,8.65", "--within=100"]
    assert len(succeed(capsys, "sub", "cli/news", url, "--since=-1h", "--until=now", *near).splitlines()) == 2
    far = ["--at=0,0", "--within=100"]
    assert len(succeed(capsys, "sub", "cli/news", url, "--since=-1h", "--until=now", *far).splitlines()) == 1


def test_sub_ends_when_nothing_comes(broker: ServedBroker, capsys: Output) -> None:
    assert json.loads(succeed(capsys, "sub", "cli/nothing", f"--url={broker.url}", "--wait=0.1", "--json")) == []


def test_watch_prints_pictures_and_ends(broker: ServedBroker, capsys: Output) -> None:
    url = f"--url={broker.url}"
    succeed(capsys, "pub", "watched/spot", "hello", url, "--place=1,1")
    with nearcast.connect_sync(broker.url, schemes=False) as me:
        assert len(list(me.subscribe("watched/#", since="-1h", until="now"))) == 1
    picture = succeed(capsys, "watch", "watched/#", url, "--since=-1h", "--at=1,1", "--headless=2")
    assert "watched/#: 1 events" in picture
    assert "watched/spot  at 1.0,1.0  hello" in picture


@pytest.mark.parametrize(
    "arguments",
    [
        ["pub"],
        ["pub", "a", "--place=here"],
        ["pub", "a", "--qos=3"],
        ["pub", "a", "--attribute=severity"],
        ["sub"],
        ["sub", "a", "--within=large"],
        ["sub", "a", "--count=0"],
        ["watch", "--at=north"],
    ],
)
def test_wrong_usage_is_status_2(arguments: list[str], capsys: Output) -> None:
    assert main([*arguments, "--url=mqtt://127.0.0.1:1"]) == 2
    assert capsys.readouterr().err.startswith("nearcast: ")


@pytest.mark.parametrize(
    "arguments", [["pub", "a"], ["sub", "a"], ["watch"], ["pub", "a/#"], ["sub", "a", "--where=x >"]]
)
def test_failure_is_status_1_with_one_line(arguments: list[str], capsys: Output) -> None:
    status = main([*arguments, "--url=mqtt://127.0.0.1:1"])
    printed, complaints = capsys.readouterr()
    assert (status, printed, complaints.count("\n")) == (1, "", 1)
    assert complaints.startswith("nearcast: ")


def test_a_line_is_one_line_and_steers_no_terminal() -> None:
    event = Event("e", "a/b", 0, {"text": "two\nlines"}, ["t"], b"\x1b[2Jclear\nme\xff", place=Point(1, 2))
    assert line(event) == (r"1970-01-01T00:00:00Z  a/b  at 1.0,2.0  text=two\nlines  #t  \x1b[2Jclear\nme\\xff")


def test_the_map_has_north_up_and_me_in_the_middle() -> None:
    picture = Picture("#", 1000, Point(50, 8), me=True)
    assert picture.cell(Point(50, 8), 81, 41) == (40, 20)
    north, east = picture.cell(Point(50.005, 8), 81, 41), picture.cell(Point(50, 8.008), 81, 41)
    assert north is not None
    assert east is not None
    assert (north[0], east[1]) == (40, 20)
    assert north[1] < 20
    assert east[0] > 40
    assert picture.cell(Point(51, 8), 81, 41) is None


def test_the_map_counts_what_lies_together() -> None:
    picture = Picture("#", 1000)
    for number in range(3):
        picture.add(Event(str(number), "a", 0, place=Point(50, 8)), now=0)
    picture.add(Event("far", "a", 0, place=Point(51, 8)), now=0)
    picture.add(Event("nowhere", "a", 0), now=0)
    assert picture.cells(11, 5, now=0) == {(5, 2): (3, True)}
    assert picture.cells(11, 5, now=60_000_000) == {(5, 2): (3, False)}
    assert (picture.count, picture.unplaced, picture.rate(0), picture.rate(60_000_000)) == (5, 1, 0.5, 0)
