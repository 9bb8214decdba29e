"""All checks, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from nearcast.broker.settings import BrokerSettings, Port, load
from nearcast.broker.upkeep.doctor import kept, machine, secrets
from nearcast.broker.upkeep.doctor.audit import audit
from nearcast.broker.upkeep.doctor.findings import Finding, note, ok, problem
from nearcast.broker.upkeep.doctor.lake import lake
from nearcast.errors import InvalidInput

Check = Callable[[], Iterator[Finding]]
_ODD: Final = "look at it by hand, or tell the makers of nearcast"


def examine(
    config: Path | None,
    data: Path | None,
    *,
    port: Port | None = None,
    http_port: Port | None = None,
    quick: bool = False,
    further: tuple[tuple[str, Check], ...] = (),
    told: Callable[[str], None] = lambda _area: None,
) -> list[Finding]:
    """Everything that was looked at.  ``further``: checks of rooms above this one; ``told`` hears what is looked at."""
    try:
        settings = (BrokerSettings() if config is None else load(config)).changed(
            data=data, port=port, http_port=http_port
        )
        for part in (settings.schemes.initial, settings.schemes.ground, settings.schemes.transition_rules):
            part()
    except (InvalidInput, OSError) as error:
        return [
            problem("settings", line, "mend the file: a broker would not start with it")
            for line in str(error).splitlines()
        ]
    found = [ok("settings", "read" if config else "there is no file; these are the defaults")]
    running = machine.holder(settings.data)
    found.append(
        note("broker", f"process {running} works on {settings.data}" if running else f"none works on {settings.data}")
    )
    checks: tuple[tuple[str, Check], ...] = (
        ("disk", partial(machine.disk, settings)),
        ("clock", lambda: machine.clock(kept.newest(settings.data))),
        ("ports", partial(machine.ports, settings, running)),
        ("certificates", partial(secrets.certificates, settings)),
        ("users", partial(secrets.users, settings)),
        ("journal", partial(kept.journal, settings.data, quick=quick)),
        ("identities", partial(kept.identities, settings.data, quick=quick)),
        ("audit", partial(audit, settings.data, quick=quick)),
        ("lake", lambda: lake(settings.lake, lambda: kept.exported(settings.data), quick=quick)),
        *further,
    )
    for area, check in checks:
        told(area)
        try:
            found += check()
        except Exception as error:  # noqa: BLE001 - whatever it is, the others are looked at all the same
            found.append(problem(area, f"it could not be looked at: {type(error).__name__}: {error}", _ODD))
    return found
