"""``nearcast planner``: keys by which plans are signed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def planner(
    name: Annotated[str, typer.Argument(help="What the planner is called in the broker's settings.")],
    key: Annotated[Path, typer.Option(help="The file for the secret key; only its owner may read it.")],
) -> None:
    """Make a key for a planner; what is printed belongs into the settings of brokers that are to carry out its plans."""
    from nearcast.planning.signed import make_key

    signer = make_key(key, name)
    typer.echo(f'[[schemes.planner]]\nname = "{name}"\nkey = "{signer.public()}"')
