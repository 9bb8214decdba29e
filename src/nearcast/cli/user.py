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

    new = add_user(_file(data, config), name, _password())
    typer.echo(f"{name}: {'added' if new else 'has a new password'}")


@app.command()
def rotate(name: str, data: Data = Path("nearcast-data"), config: Config = None) -> None:
    """Give a user a new password; the old one holds no more, and its connections end, to log in again."""
    from nearcast.broker.access.users import add_user

    add_user(_file(data, config), name, _password(), existing=True)
    typer.echo(f"{name}: has a new password")


@app.command()
def revoke(name: str, data: Data = Path("nearcast-data"), config: Config = None) -> None:
    """Let a user in no more, by password, certificate or token; its connections end, its sessions stay until they expire."""
    from nearcast.broker.access.users import revoke_user

    known = revoke_user(_file(data, config), name)
    typer.echo(
        f"{name}: revoked"
        + ("" if known else " (it had no password; certificates and tokens of that name are refused)")
    )


@app.command()
def remove(name: str, data: Data = Path("nearcast-data"), config: Config = None) -> None:
    """Remove a user's password; connections that it opened end.  What is recorded of it stays: see `nearcast erase`."""
    from nearcast.broker.access.users import remove_user

    remove_user(_file(data, config), name)
    typer.echo(f"{name}: removed")


@app.command("list")
def list_users(data: Data = Path("nearcast-data"), config: Config = None) -> None:
    """All users."""
    from nearcast.broker.access.users import REVOKED, read_users

    for name, stored in sorted(read_users(_file(data, config)).items()):
        typer.echo(f"{name} (revoked)" if stored == REVOKED else name)


def _password() -> str:
    if sys.stdin.isatty():
        return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True))
    return sys.stdin.readline().rstrip("\n")


def _file(data: Path, config: Path | None) -> Path:
    if config is None:
        return data / "users"
    from nearcast.broker.settings import load

    return load(config).passwords
