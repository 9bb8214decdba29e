"""``nearcast demo``: the product at work, in a browser and in a terminal.

``broker`` runs a real ``nearcast serve`` with its dashboard; ``places`` and ``streets`` are the ground, ``city`` moves people about on it, and
``person`` connects each of them over MQTT.  ``devices`` are an ambulance and taxis with proximities, ``visits`` a jam and newcomers.  ``adhoc``
is another demo, of processes without any broker, and ``stadium`` one of a crowd that keeps what it publishes (``told``: what their processes share).  ``analysis`` is an embedded Spark that reads the broker, ``analyst`` who asks it, ``pipeline`` what it finds
and plans meanwhile.  ``witness`` knows where everybody is and so what everybody must get; ``meter`` counts what it costs, ``play`` has people
come and go, ``stories`` tells some stories, ``canvas`` and ``view`` draw, and ``summary`` says what came of it.
"""

import shutil
import sys
from typing import Annotated, Final

import typer

from nearcast.cli.demo.adhoc import adhoc
from nearcast.cli.demo.stadium import crowd

SMALLEST: Final = (60, 16)
"""Columns and lines that the moving city needs."""

app = typer.Typer(invoke_without_command=True)
app.command()(adhoc)
app.command()(crowd)


@app.callback()
def demo(
    context: typer.Context,
    headless: Annotated[
        bool, typer.Option("--headless", help="Print what happens and a short summary instead of a moving city.")
    ] = False,
    seconds: Annotated[
        float | None,
        typer.Option(min=5, help="How long people come and go before the stories; then it ends (default: on and on)."),
    ] = None,
    people: Annotated[int, typer.Option(min=20, help="How many people there are when it is most crowded.")] = 300,
    spark: Annotated[bool, typer.Option(help="Run the data pipeline beside the broker.")] = True,
    browser: Annotated[bool, typer.Option(help="Open the live map, if there is a display.")] = True,
    http_port: Annotated[
        int | None, typer.Option(min=1, max=65_535, help="Port of the live map (default: any that is free).")
    ] = None,
) -> None:
    """Show nearcast working: a broker with its live map, a city of people on MQTT, filter schemes that change, Spark that plans, and four stories."""
    if context.invoked_subcommand is not None:
        return
    from nearcast.cli.demo.show import Wishes, show, summarize

    wishes = Wishes(people, seconds, spark, browser, http_port)
    if headless or not _drawable():
        summarize(wishes)
    else:
        show(wishes)


def _drawable() -> bool:
    """Braille needs UTF-8, and a map some room."""
    if not (sys.stdout.isatty() and sys.stdout.encoding.lower().startswith("utf")):
        return False
    columns, lines = shutil.get_terminal_size()
    if columns < SMALLEST[0] or lines < SMALLEST[1]:
        typer.echo(
            f"this terminal has {columns} x {lines} characters, too few for a map ({SMALLEST[0]} x {SMALLEST[1]}): plain lines instead"
        )
        return False
    return True
