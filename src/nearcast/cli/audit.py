"""``nearcast audit``: who addressed, observed or commanded whom."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nearcast.cli.printing import say_json


def audit(
    data: Annotated[
        Path, typer.Option(help="The broker's data folder; whoever may read it may read the audit log.")
    ] = Path("nearcast-data"),
    identity: Annotated[
        str | None, typer.Option(help="Only what this virtual identity did, or what was done to it.")
    ] = None,
    user: Annotated[str | None, typer.Option(help="The same by user name, as long as it is known who that is.")] = None,
    did: Annotated[str | None, typer.Option(help="Only addressed, observed, commanded or lost.")] = None,
    since: Annotated[str | None, typer.Option(help="As in -2h, or RFC 3339.")] = None,
    verify: Annotated[bool, typer.Option("--verify", help="See whether anything was changed or is missing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Read a broker's audit log, or verify that nobody has changed it; the broker may be running."""
    import msgspec

    from nearcast.broker.audit.audit import FOLDER
    from nearcast.broker.audit.chain import TABLE, about, entries, known_in, shown, verified
    from nearcast.journal import reading
    from nearcast.journal.database import FILE
    from nearcast.model.time import to_text
    from nearcast.runtime.live.clock import LiveClock

    folder = data / FOLDER
    if verify:
        known = known_in(reading.load(data / "journal" / FILE, TABLE))
        found = verified(folder, known.head, known.broken)
        typer.echo(
            f"entries {found.first} to {found.head.n} in {found.files} files: nothing was changed, nothing is missing"
        )
        if found.lost:
            typer.echo(f"{found.lost} entries were left out by the broker, since the disk did not keep up")
        typer.echo(f"head {found.head.hash}")
        return
    wanted = None if user is None else _identities(data, user)
    begin = None if since is None else _instant(since, LiveClock().now())
    for entry, digest, *_ in entries(folder):
        if did is not None and entry.did != did:
            continue
        if begin is not None and entry.time < begin:
            continue
        if identity is not None and not about(identity, entry):
            continue
        if wanted is not None and not any(about(each, entry) for each in wanted):
            continue
        if as_json:
            say_json({**msgspec.to_builtins(entry), "hash": digest}, one_line=True)
        else:
            whom = f" {len(entry.whom)}: {', '.join(entry.whom)}" if entry.whom else ""
            typer.echo(f"{entry.n} {to_text(entry.time)} {entry.by or '-'} {' '.join(shown(entry))}{whom}")


def _identities(data: Path, user: str) -> list[str]:
    """All under which that user was recorded."""
    from nearcast.journal.identities import Identities

    identities = Identities(data / "identities.db")
    try:
        return [identities.of(who) for who in identities.clients() if who.partition("\0")[0] == user]
    finally:
        identities.close()


def _instant(text: str, now: int) -> int:
    from nearcast.mqtt.requests import subscription_request

    since = subscription_request("#", [("nc-since", text)]).subscription(now).frame.since
    return 0 if since is None else since
