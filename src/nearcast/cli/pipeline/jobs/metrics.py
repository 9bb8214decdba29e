"""``nearcast pipeline metrics``: the headline numbers of what was recorded."""

from typing import Annotated

import typer

from nearcast.cli.pipeline.job import Document, Run, job


@job
def metrics(
    run: Run,
    workload: Annotated[str | None, typer.Option(help="Only events that this workload made, such as AR.")] = None,
) -> Document:
    """Measure recall, precision, delay and traffic of a lake or a recording, as docs/metrics.md defines them."""
    from nearcast.pipeline.metrics import run_metrics
    from nearcast.pipeline.tables import about, check_lake, read_lake

    check_lake(run.lake)
    measured = run_metrics(read_lake(run.spark, run.lake), about=about(run.lake), workload=workload)
    return {"lake": str(run.lake), "metrics": measured.to_json()}
