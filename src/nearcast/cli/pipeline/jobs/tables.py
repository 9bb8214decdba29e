"""``nearcast pipeline tables``: bronze to silver to gold."""

from nearcast.cli.pipeline.formats import check_format, follow_format
from nearcast.cli.pipeline.job import Document, Run, job


@job
def tables(run: Run) -> Document:
    """Clean what is new in the lake (silver) and measure it (gold)."""
    from nearcast.pipeline.tables import Warehouse, check_lake, measure_all, refine_all

    check_lake(run.lake)
    check_format(run.settings)
    warehouse = Warehouse(run.warehouse)
    latest = run.now() + run.settings.tables.future
    refined = refine_all(run.spark, warehouse, run.lake, latest)
    days = measure_all(run.spark, warehouse)
    follow_format(run.settings)
    return {
        "lake": str(run.lake),
        "warehouse": str(run.warehouse),
        "silver": {each.table: each.to_json() for each in refined if each.bronze},
        "gold": {name: {"days_computed": number} for name, number in days.items()},
    }
