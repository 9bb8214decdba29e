"""``nearcast doctor``: is a broker well, and would it start again?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from nearcast.cli.printing import console, say_json
from nearcast.cli.progress import progress_bar
from nearcast.cli.serve import port_option

if TYPE_CHECKING:
    from nearcast.broker.upkeep.doctor.findings import Finding

STATUS: Final = {"ok": 0, "note": 0, "warning": 1, "problem": 2}
"""As monitoring programs expect it."""

_COLOURS: Final = {"ok": "green", "note": "dim", "warning": "yellow", "problem": "bold red"}


def doctor(
    data: Annotated[Path | None, typer.Option(help="The broker's data folder.")] = None,
    config: Annotated[Path | None, typer.Option(help="The broker's settings file, if it has one.")] = None,
    port: Annotated[str | None, typer.Option(help="Port for MQTT, if the broker was started with one.")] = None,
    http_port: Annotated[str | None, typer.Option(help="Port for HTTP, if the broker was started with one.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Do not read everything: newest records, heads of files.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
) -> None:
    """Look at settings, disk, clock, ports, certificates and all data, of a broker that runs or does not.

    Nothing is changed, and a running broker is not disturbed. The exit status is 0 if all is well, 1 if there are warnings, 2 if
    there are problems.
    """
    from nearcast.broker.upkeep.doctor.examination import examine
    from nearcast.broker.upkeep.doctor.findings import worst

    with progress_bar() as bar:
        task = bar.add_task("", total=None)
        found = examine(
            config,
            data,
            port=port_option("--port", port),
            http_port=port_option("--http-port", http_port),
            quick=quick,
            further=(("java", _java),),
            told=lambda area: bar.update(task, description=area),
        )
    if json:
        say_json({"verdict": worst(found), "findings": found})
    else:
        _show(found)
    raise typer.Exit(STATUS[worst(found)])


def _show(found: list[Finding]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for each in found:
        said = each.what if not each.advice or each.severity == "ok" else f"{each.what}\n→ {each.advice}"
        table.add_row(Text(each.severity, style=_COLOURS[each.severity]), each.area, Text(said))
    console().print(table)


def _java() -> Iterator[Finding]:
    from nearcast.broker.upkeep.doctor.findings import note, ok
    from nearcast.errors import SetupError
    from nearcast.pipeline.java import find_java

    try:
        yield ok("java", f"Spark will use {find_java()}")
    except SetupError as error:
        yield note("java", " ".join(str(error).split()), "only Spark's jobs need it")
