"""``nearcast pipeline forward``: a broker's journal goes to Kafka."""

from pathlib import Path
from typing import Annotated

import typer

from nearcast.cli.pipeline.job import Document, Run, job
from nearcast.cli.pipeline.journal import (
    BatchRowsOption,
    BrokerOption,
    OnceOption,
    SecondsOption,
    follow,
    journal_tables,
    to_topics,
)
from nearcast.pipeline.limits import MOST_ROWS


@job
def forward(
    run: Run,
    broker: BrokerOption = None,
    table: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A table of the journal; may be repeated (default: all).")
    ] = None,
    once: OnceOption = False,
    seconds: SecondsOption = None,
    batch_rows: BatchRowsOption = MOST_ROWS,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Remember there how far it came (default: WAREHOUSE/forwarded).")
    ] = None,
) -> Document:
    """Send what a broker records to Kafka, each row once: a topic for each table."""
    from nearcast.pipeline.session import limit_bytes
    from nearcast.pipeline.source.options import READABLE

    run.settings.kafka.client()  # complains if there is none
    limit_bytes(run.spark)
    tables, _ = journal_tables(run, broker, *(table or READABLE), once=once, batch_rows=batch_rows)
    follow(to_topics(run, tables), out or run.warehouse / "forwarded", once=once, seconds=seconds)
    return {"broker": broker, "topics": [f"{run.settings.kafka.prefix}{name}" for name in tables]}
