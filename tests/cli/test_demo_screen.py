"""The demo on a terminal: it fits, and leaves the terminal as it was."""

import io
import re
import signal
from collections.abc import Iterator
from types import FrameType

import pytest
from rich.console import Console

from nearcast.cli.demo import show as showing
from nearcast.cli.demo.analyst import Analyst, MadePlan, Observation, Spot
from nearcast.cli.demo.broker import LADDER, BrokerStatus, DemoBroker
from nearcast.cli.demo.places import point_at
from nearcast.cli.demo.play import Play
from nearcast.cli.demo.show import Wishes
from nearcast.cli.demo.stories import Story
from nearcast.cli.demo.streets import Streets
from nearcast.cli.demo.view import CityView, story_panel
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.explanation import explain
from nearcast.model.geometry import Point
from nearcast.model.history import History
from nearcast.model.subscription import Subscription

PEOPLE = 60


def screen(width: int, height: int) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=width, height=height, color_system="truecolor")


def printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.fixture
def play(streets: Streets) -> Play:
    """In the middle of it: people, an event that somebody has heard, a transition, news."""
    broker = DemoBroker(PEOPLE)
    broker._ports["mqtt"] = 1
    play = Play(broker, streets, PEOPLE, 10.0, Analyst())
    assert play.pipeline is not None
    points = (Spot(point_at(-10, -40), 20.0, 300.0), Spot(point_at(330, -230), 3.0, 100.0))
    play.pipeline.observed = Observation(Spot(point_at(-20, -40), 9), points)
    play.pipeline.plan = MadePlan("plan", "RADIAL", "EGRID(factor=24)", play.pipeline.observed)
    for person in range(PEOPLE // 2):
        play.city.enter(person)
        play.witness.confirm(play.witness.reports(person, *play.city.where(person)))
        play.witness.listens(person)
    play.witness.published(play.witness.publishes("event", 0, *play.city.where(0)))
    play.witness.gets(1, "event")
    for scheme in (*LADDER, *reversed(LADDER)):
        status = BrokerStatus(scheme, 30, 20, 2, 3, 1, 1_000_000, 1_000_000)
        play.meter.read(status, play.crowd.statistics(), play.witness.statistics())
        play._tell("something has happened that takes a lot of words to tell, more than most terminals have room for")
    return play


@pytest.mark.parametrize(("width", "height"), [(80, 24), (150, 45), (60, 16)])
def test_the_city_fits_the_terminal(width: int, height: int, play: Play) -> None:
    console = screen(width, height)
    lines = console.render_lines(CityView(play), console.options.update_height(height), pad=False)
    assert len(lines) <= height
    assert all(sum(segment.cell_length for segment in line) <= width for line in lines)


def test_an_ordinary_terminal_shows_what_it_is_about(play: Play) -> None:
    console = screen(80, 24)
    console.print(CityView(play), height=24)
    shown = re.sub(r"\x1b\[[\d;]*m", "", printed(console))
    for words in ("market", "EGRID(factor=12) filters", "27 of 30 follow it", "published", "delivered", "dropped",
                  "context messages", "to people", "from people", "lost", "bytes per delivery", "→ RADIAL",
                  "Spark 9 people in the densest 100 m, near the market; 2 attraction points",
                  "planned RADIAL at 2 attraction points"):  # fmt: skip
        assert words in shown


def test_a_story_fits_a_small_terminal(play: Play) -> None:
    history, here = History(), Point(49.87, 8.65)
    history.moved("you", 1, here)
    history.subscribed("you", 1, Subscription("traffic/#", where="severity >= 3", area=Circle(300)))
    event = Event("jam", "traffic/jam", 2, {"severity": 5}, place=Point(49.88, 8.65))
    story = Story(
        title="Around me",
        said=("you subscribe", "to traffic/#", "within 300 m"),
        answer=("one", "two", "three"),
        explanation=explain(history, event, "you", 2),
        holds=True,
        around=(0.0, 0.0, 500.0),
        bright=((10.0, 10.0),),
        circles=((0.0, 0.0, 300.0),),
        marks=((0.0, 0.0, "you"),),
    )
    lines = screen(80, 24).render_lines(story_panel(1, story, play.city, 80), pad=False)
    assert len(lines) <= 24


class _Leaving(io.StringIO):
    """The screen of somebody who presses Ctrl-C as soon as the second day is shown."""

    days = 0

    def write(self, text: str, /) -> int:
        self.days += text.count("\x1b[?1049h")
        if self.days == 2:
            self.days += 1
            signal.raise_signal(signal.SIGINT)
        return super().write(text)


@pytest.fixture
def _foreign_handler() -> Iterator[None]:
    """As PySpark leaves one behind in a process where it has run."""

    def at_once(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, at_once)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_foreign_handler")
def test_one_day_follows_the_other_until_ctrl_c_and_the_stories_are_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(file=_Leaving(), force_terminal=True, width=80, height=24, color_system="truecolor")
    monkeypatch.setattr(showing, "Console", lambda: console)
    for name, seconds in (("READING", 0.0), ("DAY", 5.0), ("LATER_DAY", 60.0)):
        monkeypatch.setattr(showing, name, seconds)
    showing.show(Wishes(people=30, spark=False, browser=False))
    shown = printed(console)
    assert shown.count("\x1b[?1049h") == shown.count("\x1b[?1049l") == 2
    assert shown.count("1. Around me") == 1
    assert "nothing is left of it" in shown


def test_watching_ends_with_the_stories_and_leaves_the_terminal_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    console = screen(80, 24)
    monkeypatch.setattr(showing, "Console", lambda: console)
    monkeypatch.setattr(showing, "READING", 0.0)
    showing.show(Wishes(people=30, seconds=5.0, spark=False, browser=False))
    shown = printed(console)
    moments = ["starting a broker", "\x1b[?1049h", "\x1b[?1049l", "Around me", "0 lost, 0 doubled"]
    assert [shown.rindex(words) for words in moments] == sorted(shown.rindex(words) for words in moments)
