"""``nearcast bench``: nearcast and its peers side by side, one command for each benchmark."""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer

from nearcast.cli.printing import console, tell

if TYPE_CHECKING:
    from nearcast.benchmark.report import Report

app = typer.Typer(help="Measure nearcast and its peers side by side.")

Quick = Annotated[bool, typer.Option("--quick", help="A smaller run, under a minute.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Peers = Annotated[bool, typer.Option(help="Also measure the peers that are installed.")]


PLAIN = {
    "radio": "Simulate 802.11 among people in a city: nearcast and ns-3, their answers compared and their speed.",
    "routing": "Ask a router's table behind which neighbours a message is wanted, and scan the same entries one by one.",
    "overlay": "Simulate 1,000 routers and 10,000 people who walk, and say how much faster than the clock that is.",
    "dashboard": "Put the broker under load while ten pages look at its dashboard and while nobody does, in turns.",
    "pipeline": "Match millions of events on Spark, as of their time: nearcast, cell joins in columns and pandas, sedonadb.",
}
"""Benchmarks without options of their own: the module of that name, and what it does."""


@app.callback()
def bench() -> None:
    """Measure nearcast and its peers side by side."""


def _plain(name: str) -> Callable[..., None]:
    def command(quick: Quick = False, as_json: AsJson = False, peers: Peers = True) -> None:
        _show(import_module(f"nearcast.benchmark.{name}").run, quick=quick, peers=peers, as_json=as_json)

    return command


for _name, _about in PLAIN.items():
    app.command(_name, help=_about)(_plain(_name))


@app.command()
def match(
    clients: Annotated[int | None, typer.Option(min=1_000, help="How many clients there are.")] = None,
    quick: Quick = False,
    as_json: AsJson = False,
    peers: Peers = True,
) -> None:
    """Find the receivers of events among moving clients: nearcast, its peers and the bare-kernel bound."""
    from nearcast.benchmark.match import run

    _show(run, clients, quick=quick, peers=peers, as_json=as_json)


@app.command()
def broker(
    course: Annotated[
        list[str] | None, typer.Option(help="Only this course: streams, useful, durable, idle or fences (repeatable).")
    ] = None,
    quick: Quick = False,
    as_json: AsJson = False,
    peers: Peers = True,
) -> None:
    """Put the broker under load: nearcast, Mosquitto, amqtt, NATS, Redis and Tile38, each on a core of its own."""
    from nearcast.benchmark.broker import run
    from nearcast.benchmark.broker_courses import COURSES

    if unknown := [name for name in course or () if name not in COURSES]:
        raise typer.BadParameter(f"there is no course {unknown[0]!r}, only {', '.join(COURSES)}", param_hint="--course")
    _show(run, course or (), quick=quick, peers=peers, as_json=as_json)


@app.command()
def federation(
    brokers: Annotated[int | None, typer.Option(min=2, help="How many brokers there are.")] = None,
    people: Annotated[int | None, typer.Option(min=1, help="How many clients roam between them.")] = None,
    seconds: Annotated[float | None, typer.Option(min=1.0, help="How long one is killed every ten seconds.")] = None,
    replicate: Annotated[bool, typer.Option(help="Acknowledge only what a neighbour has stored as well.")] = False,
    quick: Quick = False,
    as_json: AsJson = False,
) -> None:
    """Kill a broker of a federation every ten seconds while people roam: what is lost, doubled, and how long it takes to heal."""
    from dataclasses import replace

    from nearcast.benchmark.federation import QUICK, Campaign, run

    given = {"brokers": brokers, "people": people, "seconds": seconds}
    chosen = {key: value for key, value in given.items() if value is not None}
    campaign = replace(QUICK if quick else Campaign(), replicate=replicate, **chosen)  # type: ignore[arg-type]
    _show(lambda **options: run(campaign=campaign, **options), quick=quick, peers=False, as_json=as_json)


def _show(run: Callable[..., "Report"], *own: object, quick: bool, peers: bool, as_json: bool) -> None:
    report = run(*own, quick=quick, peers=peers, progress=tell)
    if as_json:
        typer.echo(report.to_json())
    else:
        report.print(console())
