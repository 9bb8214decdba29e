"""``nearcast demo``: the product at work, in a terminal.

``broker`` runs a real ``nearcast serve``; ``city`` moves people about, and ``person`` connects each of them over MQTT.
``adhoc`` is another demo, of processes without any broker, and ``stadium`` one of a crowd that keeps what it publishes. ``analysis`` is an embedded Spark that reads the broker, ``analyst`` who asks it, ``pipeline`` what it finds and plans meanwhile.
``witness`` knows where everybody is and so what everybody must get; ``meter`` counts what it costs, ``play`` has people come
and go, ``stories`` tells some stories, ``canvas`` and ``view`` draw, and ``summary`` says what came of it.
"""

import sys
from typing import Annotated

import typer

from nearcast.cli.demo.adhoc import adhoc
from nearcast.cli.demo.stadium import crowd

app = typer.Typer(invoke_without_command=True)
app.command()(adhoc)
app.command()(crowd)


@app.callback()
def demo(
    context: typer.Context,
    headless: Annotated[
        bool, typer.Option("--headless", help="Print what happens and a short summary instead of a moving city.")
    ] = False,
    seconds: Annotated[float, typer.Option(min=5, help="How long people come and go before the stories.")] = 40.0,
    people: Annotated[int, typer.Option(min=20, help="How many people there are when it is most crowded.")] = 300,
    spark: Annotated[bool, typer.Option(help="Run the data pipeline beside the broker.")] = True,
) -> None:
    """Show nearcast working: a broker, a city of people on MQTT, filter schemes that change, Spark that plans, and four stories."""
    if context.invoked_subcommand is not None:
        return
    from nearcast.cli.demo.show import show, summarize

    drawable = sys.stdout.isatty() and sys.stdout.encoding.lower().startswith("utf")
    if headless or not drawable:
        summarize(people, seconds, spark=spark)
    else:
        show(people, seconds, spark=spark)
