"""``nearcast pipeline retain``: old days go."""

from typing import Annotated

import typer

from nearcast.cli.pipeline.formats import check_format, follow_format
from nearcast.cli.pipeline.job import Document, Run, job


@job
def retain(
    run: Run,
    age: Annotated[
        str,
        typer.Option(metavar="DURATION", help="Days before this age go, such as 90d (default: as the settings say)."),
    ] = "",
) -> Document:
    """Delete the days from silver, aside and gold that are older than they may be; the lake is the broker's business."""
    from nearcast.model.time import to_text
    from nearcast.pipeline.tables import Warehouse, clean
    from nearcast.pipeline.tables import retain as drop
    from nearcast.settings_files import Duration

    kept = Duration.of(age) if age else run.settings.tables.retention
    warehouse = Warehouse(run.warehouse)
    warehouse.check()
    check_format(run.settings)
    oldest = run.now() - kept
    dropped = {name: {"rows": drop(warehouse, name, oldest)} for name in warehouse.tables()}
    follow_format(run.settings)
    return {
        "warehouse": str(run.warehouse),
        "since": to_text(oldest)[:10],
        "dropped": dropped,
        "deleted": clean(warehouse, run.settings.tables.grace),
    }
