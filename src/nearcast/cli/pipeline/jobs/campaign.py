"""``nearcast pipeline campaign``: many simulations, spread over Spark."""

import json
from pathlib import Path
from typing import Annotated

import typer

from nearcast.cli.pipeline.job import Document, Run, job
from nearcast.cli.pipeline.output import replaceable


@job
def campaign(
    run: Run,
    scenarios: Annotated[list[str], typer.Argument(help="Scenario files, or names of examples.")],
    vary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=[VALUE, ...]", help="Values to try, such as 'clients.number=[50, 100]'; may be repeated."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, from 1 on.")] = 3,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for table and figures (default: WAREHOUSE/campaign).")
    ] = None,
    figures: Annotated[bool, typer.Option("--figures", help="Draw recall, precision, delay and traffic.")] = False,
) -> Document:
    """Simulate scenarios x parameters x seeds, each run a task of Spark; the results are one table."""
    from nearcast.experiment.scattered import draw, run_scenario
    from nearcast.pipeline.campaign import campaign as spread_out
    from nearcast.pipeline.campaign import combined, summary

    runs = combined(scenarios, dict(_values(text) for text in vary or []), range(1, seeds + 1))
    folder = out or run.warehouse / "campaign"
    of_runs, of_summary = (replaceable(folder / name) for name in ("runs", "summary"))
    spread_out(run.spark, runs, run_scenario).write.mode("overwrite").parquet(of_runs)
    results = run.spark.read.parquet(of_runs)
    summary(results).write.mode("overwrite").parquet(of_summary)
    over_seeds = [row.asDict() for row in run.spark.read.parquet(of_summary).collect()]
    failures = [
        row.asDict()
        for row in results.where("failure is not null").select("scenario", "changes", "seed", "failure").collect()
    ]
    drawn = [str(folder / "figures" / name) for name in draw(over_seeds, folder / "figures")] if figures else []
    return {"out": str(folder), "runs": len(runs), "failures": failures, "summary": over_seeds, "figures": drawn}


def _values(text: str) -> tuple[str, list[object]]:
    key, equals, written = text.partition("=")
    try:
        values = json.loads(written)
    except ValueError:
        values = None
    if not key or not equals or not isinstance(values, list):
        raise typer.BadParameter(f"--vary {text}: write KEY=[VALUE, ...] in JSON, such as clients.number=[50, 100]")
    return key.strip(), values
