"""The package as one file, for executors that do not have it: ``python -m nearcast.pipeline.package nearcast.zip``.

``spark-submit --archives nearcast.zip#packages --conf spark.executorEnv.PYTHONPATH=packages ...`` sends it along and has every executor
unpack it: kernels keep their machine code beside their source, which a file within a zip file (``--py-files``) has no place for.
What nearcast needs (numpy, numba, pyarrow, ...) must be in the Python of the executors (``PYSPARK_PYTHON``).
"""

import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

_PACKAGE = Path(__file__).parents[1]


def write_package(target: Path) -> Path:
    """Write the zip file; the same package gives the same bytes."""
    with ZipFile(target, "w", ZIP_DEFLATED) as archive:
        for path in sorted(_PACKAGE.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                name = Path(_PACKAGE.name) / path.relative_to(_PACKAGE)
                # A fixed date: that of the file says when it was checked out, not what is in it.
                archive.writestr(ZipInfo(str(name), (1980, 1, 1, 0, 0, 0)), path.read_bytes(), ZIP_DEFLATED)
    return target


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m nearcast.pipeline.package FILE.zip")
    print(write_package(Path(sys.argv[1])), file=sys.stderr)
