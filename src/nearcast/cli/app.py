"""The command itself: its options, and the one place where errors become exit statuses.

Exit status 0 is success, 1 a failure with one line on stderr, 2 wrong usage, 130 an interruption, 143 a SIGTERM; those of
``nearcast doctor`` are a verdict.
Everything that takes time to import is imported inside the commands, so that ``--version`` and ``--help`` answer at once.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer

from nearcast.cli import bench, demo, experiment, federation, pipeline, user
from nearcast.cli.audit import audit
from nearcast.cli.backup import backup, restore
from nearcast.cli.doctor import doctor
from nearcast.cli.erase import erase
from nearcast.cli.explain import explain
from nearcast.cli.planner import planner
from nearcast.cli.printing import tell
from nearcast.cli.pub import pub
from nearcast.cli.serve import serve
from nearcast.cli.simulate import simulate
from nearcast.cli.sub import sub
from nearcast.cli.transition import transition
from nearcast.cli.watch import watch
from nearcast.errors import NearcastError

FAILURE, INTERRUPTED, TERMINATED = 1, 130, 143

app = typer.Typer(
    name="nearcast",
    help="Delivers messages to whoever is, was or will be in the right place and the right context.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(bench.app, name="bench")
app.add_typer(demo.app, name="demo")
app.add_typer(experiment.app, name="experiment")
app.add_typer(federation.app, name="federation")
app.add_typer(user.app, name="user")
app.add_typer(pipeline.app, name="pipeline")
app.command()(serve)
app.command()(erase)
app.command()(backup)
app.command()(restore)
app.command()(doctor)
app.command()(transition)
app.command()(planner)
app.command()(audit)
app.command()(explain)
app.command()(simulate)
app.command()(pub)
app.command()(sub)
app.command()(watch)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"nearcast {version('nearcast')}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of a failure.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and leave.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Options of all commands. They are listed here for --help; ``main`` takes --debug out before parsing."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and give its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    # Taken out here, so that it may stand anywhere: people add it at the end of the line that just failed.
    debug = "--debug" in given
    given = [argument for argument in given if argument != "--debug"]
    try:
        with _ending_properly():
            status = app(given, prog_name="nearcast", standalone_mode=False)
            sys.stdout.flush()
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)  # of the command that was called wrongly
        command = context.command_path if context else "nearcast"
        return _complain(f"{error.format_message()} (see {command} --help)", error.exit_code)
    except typer.Abort:
        status = INTERRUPTED
    except KeyboardInterrupt:
        status = INTERRUPTED
    except BrokenPipeError:
        # The reader left (`nearcast ... | head`): nothing to say, and nothing may be flushed at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE
    except Exception as error:
        if debug:
            raise
        return _complain(_describe(error), FAILURE)
    if status == INTERRUPTED:
        return _complain("interrupted", INTERRUPTED)
    return status if isinstance(status, int) else 0


@contextmanager
def _ending_properly() -> Iterator[None]:
    """SIGTERM unwinds the stack as Ctrl-C does, so that nothing that a command has started outlives it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _describe(error: Exception) -> str:
    if isinstance(error, NearcastError):
        return str(error)
    # Not raised on purpose: its kind says as much as its message, and whoever reports it needs the rest.
    return " ".join(f"{type(error).__name__}: {error} (--debug shows where)".split())


def _complain(message: str, status: int) -> int:
    """Say it on stderr, one line for each problem: a file may have several."""
    for line in message.splitlines() or [""]:
        tell(" ".join(("nearcast:", *line.split())))
    return status
