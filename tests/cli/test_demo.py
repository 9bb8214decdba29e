"""The demo shows what it says: answers that equal the definition, stories that come out as counted, a view that fits."""

import io
import re
import time
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from nearcast.cli import main
from nearcast.cli.demo import show as showing
from nearcast.cli.demo.canvas import Canvas
from nearcast.cli.demo.city import City
from nearcast.cli.demo.stories import around_me, stories
from nearcast.cli.demo.tally import Tally
from nearcast.cli.demo.view import CityView, story_panel

PEOPLE = 300
SMALL = ["demo", "--people", str(PEOPLE)]


@pytest.fixture(scope="module")
def lived() -> tuple[City, Tally]:
    """A small city after ten minutes."""
    city, tally = City(PEOPLE), Tally()
    while city.steps < showing.TEN_MINUTES:
        tally.advance(city)
    return city, tally


def screen(width: int, height: int) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=width, height=height, color_system="truecolor")


@pytest.mark.parametrize("arguments", [[*SMALL, "--headless"], SMALL], ids=["asked for", "no terminal"])
def test_headless_says_what_happened_and_ends(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    events, deliveries = re.findall(r"([\d,]+) (?:events|deliveries)", printed)
    assert int(deliveries.replace(",", "")) > int(events.replace(",", "")) > 1_000
    equal, checked = map(int, re.findall(r"(\d+) of (\d+) equal", printed)[0])
    assert equal == checked >= 200
    assert len(re.findall(r"^\d\. ", printed, re.MULTILINE)) == 3
    assert "\x1b" not in printed
    assert printed.isascii()


def test_an_answer_that_differs_from_the_definition_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("nearcast.cli.demo.tally.receivers", lambda *_: frozenset({"nobody"}))
    assert main([*SMALL, "--headless"]) == 1
    assert "differ from the definition" in capsys.readouterr().err


def test_every_checked_event_equals_the_definition(lived: tuple[City, Tally]) -> None:
    _, tally = lived
    assert tally.checked == tally.equal == showing.TEN_MINUTES
    assert tally.told, "the ambulance is heard"


def test_stories_come_out_as_counted_and_their_explanations_agree(lived: tuple[City, Tally]) -> None:
    told = list(stories(lived[0]))
    assert all(story.holds for story in told)
    nobody, heading, were_here = (story.receivers for story in told)
    assert not nobody
    assert 0 < len(heading) < PEOPLE
    assert 0 < len(were_here) < PEOPLE
    assert [story.explanation.holds for story in told] == [False, False, True]


def test_around_me_takes_what_is_near_and_severe(lived: tuple[City, Tally]) -> None:
    story = around_me(lived[0])
    assert [line.endswith(": delivered") for line in story.answer] == [True, False, False]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (150, 45), (60, 16)])
def test_the_city_fits_the_terminal(width: int, height: int, lived: tuple[City, Tally]) -> None:
    console = screen(width, height)
    lines = console.render_lines(CityView(*lived), console.options.update_height(height), pad=False)
    assert len(lines) <= height
    assert all(sum(segment.cell_length for segment in line) <= width for line in lines)


def test_a_story_fits_a_small_terminal(lived: tuple[City, Tally]) -> None:
    city, _ = lived
    console = screen(80, 24)
    for number, story in enumerate(stories(city), 1):
        lines = console.render_lines(story_panel(number, story, city, 80), pad=False)
        assert len(lines) <= 24


def test_watching_ends_with_the_stories_and_leaves_the_terminal_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    console = screen(80, 24)
    monkeypatch.setattr(showing, "Console", lambda: console)
    monkeypatch.setattr(showing, "READING", 0.0)
    monkeypatch.setattr(showing, "FRAME", 0.0)
    showing.show(PEOPLE, seconds=0.2)
    assert isinstance(console.file, io.StringIO)
    printed = console.file.getvalue()
    assert printed.index("\x1b[?1049h") < printed.index("\x1b[?1049l") < printed.index("Around me")


def test_interruption_leaves_the_terminal_as_it_was(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    console = screen(80, 24)
    monkeypatch.setattr(showing, "Console", lambda: console)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(showing, "time", SimpleNamespace(monotonic=time.monotonic, sleep=interrupted))
    assert main(SMALL) == 130
    assert capsys.readouterr().err == "nearcast: interrupted\n"
    assert isinstance(console.file, io.StringIO)
    assert "\x1b[?1049l" in console.file.getvalue()


def test_a_canvas_draws_what_lies_inside_round_and_to_scale() -> None:
    canvas = Canvas(10, 5, -10, -10, 10, 10)
    canvas.dots([0.0, 100.0], [0.0, 0.0], "red")
    assert sum(line.plain.count("⠀") for line in canvas.lines()) == 49
    large = Canvas(40, 20, -10, -10, 10, 10)
    large.circle(0, 0, 8, "red")
    drawn = np.array([[letter != "⠀" for letter in line.plain] for line in large.lines()])
    columns, rows = drawn.any(axis=0).sum(), drawn.any(axis=1).sum()
    assert abs(columns - 2 * rows) <= 2, "a character is twice as high as it is wide"
    large.text(8, 0, "over the edge", "bold")
    assert large.lines()[10].plain.endswith("over")
