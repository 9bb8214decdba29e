"""``nearcast user``: who may connect with a password."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Users of a broker and their passwords.", no_args_is_help=True)

Data = Annotated[Path, typer.Option(help="The broker's data folder (its file `users` is changed).")]
Config = Annotated[Path | None, typer.Option(help="The broker's settings file, if it names another file of users.")]


@app.command()
def add(name: str, data: Data = Path("nearcast-data"), config: Config = None) -> None:
    """Add a user, or give one a new password; it is read from the terminal, or from standard input."""
    from nearcast.broker.access.users import add_user

    if sys.stdin.isatty():
        password = typer.prompt("Password", hide_input=True, confirmation_prompt=True)
    else:
        password = sys.stdin.readline().rstrip("\n")
    new = add_user(_file(data, config), name, password)
    typer.echo(f"{name}: {'added' if new else 'has a new password'}")


@app.command()
def remove(name: str, data: Data = Path("nearcast-data"), config: Config = None) -> None:
    """Remove a user; connections that are open stay open."""
    from nearcast.broker.access.users import remove_user

    remove_user(_file(data, config), name)
    typer.echo(f"{name}: removed")


@app.command("list")
def list_users(data: Data = Path("nearcast-data"), config: Config = None) -> None:
    """All users."""
    from nearcast.broker.access.users import user_names

    for name in user_names(_file(data, config)):
        typer.echo(name)


def _file(data: Path, config: Path | None) -> Path:
    if config is None:
        return data / "users"
    from nearcast.broker.settings import load

    return load(config).passwords
