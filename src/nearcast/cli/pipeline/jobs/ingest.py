"""``nearcast pipeline ingest``: what was recorded elsewhere comes into a lake."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from nearcast.cli.pipeline.job import Document, Run, job


@job
def ingest(
    run: Run,
    files: Annotated[list[Path], typer.Argument(help="Files of one format.")],
    source_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="csv, gpx, moving-features, moving-features-csv, gtfs-realtime, tweets (default: as the names end).",
        ),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OURS=THEIRS", help="Of CSV: client=NAME, time=NAME, lat=NAME, lon=NAME; may be repeated."
        ),
    ] = None,
) -> Document:
    """Read GPS traces, vehicle positions or tweets into a lake, and keep aside what cannot be read."""
    from nearcast.pipeline.external import COLUMNS, format_of
    from nearcast.pipeline.external import ingest as read

    columns = {}
    for text in column or []:
        ours, equals, theirs = text.partition("=")
        if ours not in COLUMNS or not equals or not theirs:
            raise typer.BadParameter(f"--column {text}: write OURS=THEIRS, with one of {', '.join(COLUMNS)}")
        columns[ours] = theirs
    chosen = source_format or format_of(files)
    latest = run.now() + run.settings.tables.future
    done = read(run.spark, files, run.lake, latest, source_format=chosen, columns=columns)
    return {"lake": str(run.lake), "format": chosen, **asdict(done)}
