"""``nearcast pipeline JOB``: jobs on Spark, from a laptop to a cluster.

Each module of ``jobs`` is a job: a function with the decorator ``job``.  Adding a module adds a job.
"""

from importlib import import_module
from pkgutil import iter_modules

from nearcast.cli.pipeline import jobs
from nearcast.cli.pipeline.job import app

for found in sorted(iter_modules(jobs.__path__), key=lambda module: module.name):
    import_module(f"{jobs.__name__}.{found.name}")

__all__ = ["app"]
