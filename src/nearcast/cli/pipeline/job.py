"""What all jobs share: their options, a session for them, and how their result is shown."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from nearcast.cli.pipeline.progress import task_progress
from nearcast.cli.printing import say_json, tell

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from nearcast.pipeline.settings import PipelineSettings

app = typer.Typer(help="Run a job of the data pipeline on Spark.", no_args_is_help=True)

Document = Mapping[str, Any]
"""What a job found, as JSON."""


class Run:
    """What a job gets: the settings of file and command line together, and a session that starts when it is first asked for."""

    def __init__(self, title: str, settings: PipelineSettings, stack: ExitStack) -> None:
        from nearcast.runtime.live.clock import LiveClock

        self.settings: Final = settings
        self.now: Final = LiveClock().now
        self.started = time.monotonic()
        self._title: Final = title
        self._stack: Final = stack

    @property
    def lake(self) -> Path:
        return self.settings.lake

    @property
    def warehouse(self) -> Path:
        return self.settings.warehouse_folder

    @cached_property
    def spark(self) -> SparkSession:
        """Starting it takes seconds: look first whether the job can be done at all."""
        from nearcast.pipeline.session import opened_session, ui_address

        session = self._stack.enter_context(opened_session(self.settings.spark, f"nearcast {self._title}"))
        address = ui_address(session)
        if address is not None:
            tell(f"Spark UI at {address}")
        self._stack.enter_context(task_progress(session, self._title))
        self.started = time.monotonic()
        return session


def common(
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="Where Spark runs: local[*], spark://HOST:PORT, k8s://..., yarn.")
    ] = None,
    remote: Annotated[str | None, typer.Option(metavar="URL", help="A Spark Connect server: sc://HOST:PORT.")] = None,
    lake: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The broker's lake, or the folder of a recording.")
    ] = None,
    warehouse: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the tables (default: beside the lake).")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Settings file (TOML), see docs/pipeline.md.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
) -> None:
    """Take the options of every job: their declaration is read by ``job``."""


def job(function: Callable[..., Document]) -> Callable[..., Document]:
    """Make a command of a function that takes a ``Run``, and options of its own by name, and gives a document."""
    own = inspect.signature(function, eval_str=True).parameters
    shared = inspect.signature(common, eval_str=True).parameters
    first, *others = own.values()
    parameters = [*others, *shared.values()]

    @functools.wraps(function)
    def command(**given: Any) -> None:
        options = {name: given.pop(name) for name in shared}
        _execute(function, options, given)

    # Typer reads what a command takes from these two.
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    )
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    assert first.name == "run"
    app.command(name=function.__name__.replace("_", "-"))(command)
    return function


def _execute(function: Callable[..., Document], options: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    from nearcast.pipeline.session import spark_failures
    from nearcast.pipeline.settings import PipelineSettings, load

    settings = PipelineSettings() if options["config"] is None else load(options["config"])
    settings = settings.changed(**{name: options[name] for name in ("lake", "warehouse", "master", "remote")})
    with ExitStack() as stack:
        run = Run(function.__name__, settings, stack)
        with spark_failures():
            document = function(run, **given)
        shown = {"job": function.__name__, **document, "seconds": round(time.monotonic() - run.started, 3)}
    if options["as_json"]:
        say_json(shown)
    else:
        typer.echo(_text(shown))


def _text(value: Any, indent: str = "") -> str:
    """A document as people read it: a name and its value on each line, what is inside further to the right."""
    lines = []
    for name, each in value.items():
        label = f"{indent}{str(name).replace('_', ' ')}"
        if isinstance(each, Mapping) and each:
            flat = all(not isinstance(inner, (Mapping, list)) for inner in each.values())
            lines.append(f"{label}: {_row(each)}" if flat else f"{label}\n{_text(each, indent + '  ')}")
        elif isinstance(each, list) and each and isinstance(each[0], Mapping):
            lines += [label, *(f"{indent}  {_row(row)}" for row in each)]
        else:
            lines.append(f"{label}: {_shown(each)}")
    return "\n".join(lines)


def _row(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {_shown(value)}" for name, value in row.items())


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
