"""``nearcast simulate``: run a scenario and keep a record of all that happens in it."""

import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearcast.cli.printing import console, say_json
from nearcast.cli.progress import progress_bar

if TYPE_CHECKING:
    from nearcast.scenario.simulation import RunSummary


def simulate(
    scenario: Annotated[str, typer.Argument(help="A scenario file (TOML), or the name of an example (--list).")] = "",
    seed: Annotated[int, typer.Option(help="Another seed is another run; the same one repeats it.")] = 1,
    out: Annotated[Path | None, typer.Option(help="Folder for the records; without it they are only counted.")] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an earlier recording in that folder.")
    ] = False,
    log: Annotated[
        Path | None,
        typer.Option(help="Write what applications do to this .csv or .jsonl file; a workload of kind log replays it."),
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Change one value, such as clients.number=50; may be repeated."
        ),
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Print the whole scenario, explained, and do not run it.")
    ] = False,
    listing: Annotated[bool, typer.Option("--list", help="List the examples that come with nearcast.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
) -> None:
    """Simulate people who move, their networks and their messages."""
    from nearcast.scenario.reading import examples, read

    if listing:
        known = {name: read(name).run.title for name in examples()}
        if as_json:
            say_json(known)
        else:
            typer.echo("\n".join(f"{name:16} {title}" for name, title in known.items()))
        return
    if not scenario:
        raise typer.BadParameter("name a scenario file, or an example; --list shows what there is")
    wanted = read(scenario, _changes(change or []))
    if show:
        from nearcast.scenario.writing import to_toml

        if as_json:
            say_json(tomllib.loads(to_toml(wanted)))
        else:
            typer.echo(to_toml(wanted, explained=True), nl=False)
        return
    from nearcast.scenario.simulation import simulate as run

    with _progress_bar(wanted.run.title, wanted.run.duration) as progress:
        summary = run(wanted, seed, out=out, overwrite=overwrite, log=log, progress=progress)
    if as_json:
        say_json(summary.to_json())
    else:
        _print(summary)


def _changes(texts: list[str]) -> dict[str, object]:
    from nearcast.scenario.reading import value_of

    changes = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise typer.BadParameter(f"--set {text}: write KEY=VALUE, such as clients.number=50")
        changes[key.strip()] = value_of(value.strip())
    return changes


@contextmanager
def _progress_bar(title: str, seconds: float) -> Iterator[Callable[[float, float], None]]:
    """On stderr: how far it is, in simulated time, and how much faster than life."""
    from rich.markup import escape
    from rich.progress import TimeRemainingColumn

    far = "{task.completed:.0f} of {task.total:.0f} s simulated"
    with progress_bar(far, "{task.fields[speed]}", TimeRemainingColumn()) as bar:
        task = bar.add_task(escape(title), total=seconds, speed="")

        def progress(done: float, total: float) -> None:
            elapsed = bar.tasks[0].elapsed or 0.0
            bar.update(task, completed=done, total=total, speed=f"{done / elapsed:.1f} x real time" if elapsed else "")

        yield progress


def _print(summary: "RunSummary") -> None:
    from rich.markup import escape
    from rich.table import Table

    shown = console()
    speed = summary.speed["simulated_seconds_per_second"]
    shown.print(
        f"[bold]{escape(summary.title)}[/bold], seed {summary.seed}: {summary.simulated_seconds:g} s simulated, {speed:,.1f} x real time"
    )
    counts = Table("count", "value")
    counts.columns[1].justify = "right"
    for name, value in summary.counts.items():
        counts.add_row(name.replace("_", " "), f"{value:,}")
    tables = Table("records", "rows", "SHA-256 of the content")
    tables.columns[1].justify = "right"
    for name, table in summary.tables.items():
        tables.add_row(name, f"{table['rows']:,}", f"{table['sha256'][:16]}…")
    shown.print(counts, tables)
    if summary.records:
        shown.print(f"recorded in {escape(summary.records)}")
