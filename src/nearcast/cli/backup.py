"""``nearcast backup`` and ``nearcast restore``: all that a broker keeps, to another place and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearcast.cli.progress import progress_bar

if TYPE_CHECKING:
    from nearcast.broker.upkeep.manifest import Manifest


def backup(
    target: Annotated[Path, typer.Argument(help="The folder to make; it must not exist yet.")],
    data: Annotated[Path | None, typer.Option(help="The broker's data folder.")] = None,
    config: Annotated[Path | None, typer.Option(help="The broker's settings file, if it has one.")] = None,
    copy: Annotated[
        bool, typer.Option("--copy", help="Copy files of the lake even where a second name for them would do.")
    ] = False,
) -> None:
    """Back up all that a broker keeps, while it runs or not; see docs/how-to/back-up-and-monitor.md."""
    from nearcast.broker.settings import BrokerSettings, load
    from nearcast.broker.upkeep.backup import back_up

    settings = (BrokerSettings() if config is None else load(config)).changed(data=data)
    with _shown("backing up") as told:
        manifest = back_up(settings, target, link=not copy, told=told)
    typer.echo(f"{target}: {_described(manifest)}")


def restore(
    backup: Annotated[Path, typer.Argument(help="The folder that `nearcast backup` made.")],
    data: Annotated[
        Path | None, typer.Option(help="The data folder to make; it must not exist yet, or be empty.")
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Only read the backup, and say whether it is whole.")
    ] = False,
) -> None:
    """Make a data folder of a backup; every file is checked, and nothing is there before all of it is."""
    from nearcast.broker.upkeep import restore as restoring

    if verify == (data is not None):
        raise typer.BadParameter("give the folder to make (--data), or --verify", param_hint="--data")
    with _shown("verifying" if data is None else "restoring") as told:
        manifest = restoring.verify(backup, told) if data is None else restoring.restore(backup, data, told)
    typer.echo(f"{backup if data is None else data}: {_described(manifest)}")


def _described(manifest: Manifest) -> str:
    return (
        f"{len(manifest.files)} files, {manifest.total / 1e6:,.1f} MB, journal up to offset {manifest.journal.end}, "
        f"as of {manifest.begun[:19]}Z"
    )


@contextmanager
def _shown(what: str) -> Iterator[Callable[[int, int], None]]:
    from rich.progress import DownloadColumn, TransferSpeedColumn

    with progress_bar(DownloadColumn(), TransferSpeedColumn()) as bar:
        task = bar.add_task(what)
        yield lambda done, total: bar.update(task, completed=done, total=total)
