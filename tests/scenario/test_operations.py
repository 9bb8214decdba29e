"""Logs of operations: what a line may say, what is refused and how, and that writing and reading are inverse."""

import math
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nearcast.errors import InvalidTrace
from nearcast.model.area import Circle
from nearcast.model.geometry import Point
from nearcast.scenario.operations import COLUMNS, LogWriter, Operation, read_log, write_log

BOTH_FORMS = pytest.mark.parametrize("name", ["log.csv", "log.jsonl"])


def log(folder: Path, text: str, name: str = "log.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def complaint(path: Path) -> str:
    with pytest.raises(InvalidTrace) as refused:
        read_log(path)
    return str(refused.value)


def test_a_log_of_values_says_who_does_what_and_when(tmp_path: Path) -> None:
    path = log(
        tmp_path,
        "time,client,operation,id,topic,lat,lon,local,payload,attributes,tags,radius,where\n"
        "0,ada,subscribe,near,market/#,,,,,,,150,price < 5\n"
        '1.5,bob,publish,e1,market/fruit,49.87,8.65,,128,"{""price"": 3, ""ripe"": true}","[""red""]",,\n'
        "2,bob,publish,,market/fruit,,,true,,,,,\n"
        "9.25,ada,unsubscribe,near,,,,,,,,,\n",
    )
    subscribe, publish, local, unsubscribe = read_log(path)
    assert (subscribe.client, subscribe.microseconds, unsubscribe.microseconds) == ("ada", 0, 9_250_000)
    subscription = subscribe.subscription()
    assert (subscription.id, subscription.topic, subscription.area) == ("near", "market/#", Circle(150.0))
    event = publish.event("unused", 5, None)
    assert (event.id, event.place, event.published) == ("e1", Point(49.87, 8.65), 5)
    assert (dict(event.attributes), event.tags, len(event.payload)) == (
        {"price": 3, "ripe": True},
        frozenset({"red"}),
        128,
    )
    assert local.event("bob/1", 5, Point(1.0, 2.0)).place == Point(1.0, 2.0)
    assert local.event("bob/1", 5, Point(1.0, 2.0)).id == "bob/1"


def test_json_lines_say_the_same(tmp_path: Path) -> None:
    path = log(
        tmp_path,
        '{"time": 0, "client": "ada", "operation": "subscribe", "topic": "a", "radius": 150}\n\n'
        '{"time": 1.5, "client": "bob", "operation": "publish", "topic": "a", "tags": ["red"]}\n',
        "log.jsonl",
    )
    assert read_log(path) == (
        Operation(0.0, "ada", "subscribe", topic="a", radius=150.0),
        Operation(1.5, "bob", "publish", topic="a", tags=("red",)),
    )


def test_operations_come_in_order_of_time_and_otherwise_in_that_of_the_file(tmp_path: Path) -> None:
    lines = ["3,c,publish,x", "1,a,publish,x", "3,b,publish,x", "0,d,publish,x"]
    path = log(tmp_path, "time,client,operation,topic\n" + "\n".join(lines))
    assert [operation.client for operation in read_log(path)] == ["d", "a", "c", "b"]


REFUSED = {
    "1,a,publish,,,,": "a topic has at least one character",
    "-1,a,publish,,x,,": "time is -1.0; give seconds since the start of the run",
    "nan,a,publish,,x,,": "time is nan; give seconds since the start of the run",
    "soon,a,publish,,x,,": "Expected `float`, got `str` - at `$.time`",
    "1,,publish,,x,,": "Object missing required field `client`",
    "1,a,publsh,,x,,": "Invalid enum value 'publsh' - at `$.operation`",
    "1,a,publish,,x,49,": "a place needs both lat and lon",
    "1,a,publish,,x,99,8": "latitude 99.0 is outside [-90, 90] degrees",
    "1,a,publish,,x/#,,": "the topic 'x/#' holds a wildcard",
    "1,a,subscribe,,x,49,8": "lat means nothing to 'subscribe'; leave it out",
    "1,a,unsubscribe,s,,,": "'a' has no subscription 's' then",
    "1,a,publish,,x": "it does not have as many cells as the heading",
    "1,a,publish,,x,,,9": "it does not have as many cells as the heading",
}


@pytest.mark.parametrize(("line", "expected"), REFUSED.items())
def test_a_mistake_is_named_with_its_file_and_line(tmp_path: Path, line: str, expected: str) -> None:
    path = log(tmp_path, f"time,client,operation,id,topic,lat,lon\n0,a,publish,,x,,\n{line}\n")
    assert complaint(path).startswith(f"log.csv, line 3: {expected}")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ('"operation": "publish", "topic": "x", "local": true, "lat": 1, "lon": 2', "a local event happens where"),
        ('"operation": "publish", "topic": "x", "payload": -1', "payload is -1; give 0 to 1000000 bytes"),
        ('"operation": "publish", "topic": "x", "radius": 5', "radius means nothing to 'publish'; leave it out"),
        ('"operation": "publish", "topic": "x", "tags": "red"', "Expected `array`, got `str`"),
        ('"operation": "publish", "topic": "x", "tme": 5', "Object contains unknown field `tme`"),
        ('"operation": "subscribe", "topic": "x", "radius": -5', "radius must be finite and not negative, not -5.0"),
        ('"operation": "subscribe", "topic": "x", "where": "price <"', ""),
        ('"operation": "subscribe", "topic": "x', "Input data was truncated"),
    ],
)
def test_mistakes_in_json_lines_are_named_too(tmp_path: Path, fields: str, expected: str) -> None:
    path = log(tmp_path, f'{{"time": 1, "client": "a", {fields}}}\n', "log.jsonl")
    assert complaint(path).startswith(f"log.jsonl, line 1: {expected}")


def test_all_mistakes_are_reported_at_once_but_not_thousands(tmp_path: Path) -> None:
    path = log(tmp_path, "time,client,operation,topic\n" + "-1,a,publish,x\n" * 50)
    lines = complaint(path).splitlines()
    assert len(lines) == 21
    assert lines[1].startswith("log.csv, line 3:")
    assert lines[-1] == "log.csv: and 30 more"


def test_an_event_is_published_once(tmp_path: Path) -> None:
    path = log(tmp_path, "time,client,operation,id,topic\n2,a,publish,e,x\n1,b,publish,e,x\n")
    assert complaint(path) == "log.csv, line 2: event 'e' was published already, in line 3"


def test_where_a_folder_is_no_log_is_begun(tmp_path: Path) -> None:
    (tmp_path / "log.csv").mkdir()
    with pytest.raises(InvalidTrace, match="cannot be written: it is a folder"):
        LogWriter(tmp_path / "log.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]


def test_files_that_are_no_logs_are_refused(tmp_path: Path) -> None:
    assert complaint(tmp_path / "none.csv").startswith("none.csv: cannot be read")
    assert complaint(log(tmp_path, "", "log.txt")) == "log.txt: a log of operations ends in .csv or .jsonl"
    misspelt = log(tmp_path, "time,cleint,operation\n")
    assert complaint(misspelt) == "log.csv, line 1: there is no column 'cleint'; did you mean 'client'?"
    unclosed = log(tmp_path, 'time,client,operation,topic\n1,"a,publish,x\n')
    assert complaint(unclosed).startswith("log.csv, line 2: unexpected end of data")


seconds = st.integers(0, 10**12).map(lambda microseconds: microseconds / 10**6)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0+#"), min_size=1, max_size=5)
places = st.tuples(st.floats(-90, 90), st.floats(-180, 180))
scalars = st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9) | st.text(max_size=5)
publications = st.builds(
    lambda place, **parts: Operation(**parts, lat=place and place[0], lon=place and place[1]),
    place=st.none() | places,
    time=seconds,
    client=texts,
    operation=st.just("publish"),
    topic=texts,
    payload=st.integers(0, 1000),
    attributes=st.dictionaries(st.sampled_from(["price", "colour"]), scalars, max_size=2),
    tags=st.lists(st.sampled_from(["red", "ripe"]), unique=True).map(tuple),
)
subscriptions = st.builds(
    Operation,
    time=seconds,
    client=texts,
    operation=st.just("subscribe"),
    id=st.text("abc", max_size=3),
    topic=texts,
    radius=st.none() | st.floats(0, 1e6),
    where=st.sampled_from(["", "price < 5", "colour = 'r,g\"b'"]),
)


@BOTH_FORMS
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(operations=st.lists(publications | subscriptions, max_size=5))
def test_what_is_written_reads_as_the_same_operations(tmp_path: Path, name: str, operations: list[Operation]) -> None:
    write_log(tmp_path / name, operations)
    assert read_log(tmp_path / name) == tuple(sorted(operations, key=lambda operation: operation.time))


def test_there_is_a_column_for_each_part() -> None:
    assert COLUMNS[:3] == ("time", "client", "operation")
    assert math.isclose(Operation(0.1 + 0.2, "a", "publish", topic="x").microseconds, 300_000)
