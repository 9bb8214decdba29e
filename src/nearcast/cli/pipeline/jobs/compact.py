"""``nearcast pipeline compact``: small files become large ones."""

from dataclasses import asdict

from nearcast.cli.pipeline.formats import check_format, follow_format
from nearcast.cli.pipeline.job import Document, Run, job


@job
def compact(run: Run) -> Document:
    """Put the small files of the tables together, and delete files that are no longer part of any."""
    from nearcast.pipeline.tables import Warehouse, clean, tables_of_silver
    from nearcast.pipeline.tables import compact as put_together

    warehouse = Warehouse(run.warehouse)
    warehouse.check()
    check_format(run.settings)
    size = run.settings.tables.file_size
    done = {name: asdict(put_together(run.spark, warehouse, name, size)) for name in tables_of_silver(warehouse)}
    follow_format(run.settings)
    return {"warehouse": str(run.warehouse), "tables": done, "deleted": clean(warehouse, run.settings.tables.grace)}
