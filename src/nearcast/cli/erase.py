"""``nearcast erase``: nothing of a person is left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from nearcast.cli.printing import say_json, tell
from nearcast.cli.progress import progress_bar

if TYPE_CHECKING:
    from nearcast.broker.erasing.plan import Plan
    from nearcast.broker.settings import BrokerSettings

_LOOK_EVERY: Final = 0.1
_PATIENCE: Final = 30.0
"""Seconds for a running broker to take the plan up."""

Report = Callable[[str, int, int], None]


def erase(
    user: Annotated[str | None, typer.Argument(help="The user, with all its clients.")] = None,
    client: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            help="A client without a user (repeatable); beside a user: ids by which other brokers know it.",
        ),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="The broker's data folder.")] = None,
    config: Annotated[Path | None, typer.Option(help="The broker's settings file, if it has one.")] = None,
    warehouse: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="What jobs have made elsewhere than in LAKE-warehouse (repeatable)."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would go.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Erase a person, while the broker runs or not: all that it wrote, and that says where or what it was.

    Interrupted at any point, it is carried on by the same command; see docs/how-to/erase-a-person.md.
    """
    from nearcast.broker.erasing.plan import Plan, forget_plan
    from nearcast.broker.settings import BrokerSettings, load
    from nearcast.errors import InvalidSettings

    if user is None and not client:
        raise typer.BadParameter("whom? Name a user, or a client that has none (--client ID)", param_hint="USER")
    settings = (BrokerSettings() if config is None else load(config)).changed(data=data)
    if not (settings.data / "journal").is_dir():
        raise InvalidSettings(f"{settings.data} is no data folder of a broker; name it with --data")
    asked = Plan(user=user, clients=tuple(sorted(client or ())), dry=dry_run)
    folders = [settings.lake.with_name(f"{settings.lake.name}-warehouse"), *(warehouse or [])]
    with _shown() as report:
        plan = _carried_out(settings, _begun(settings, asked), report)
        made, streams = _from_jobs(folders, plan, report)
    forget_plan(settings.data)
    counted = {
        "records": plan.counts.records,
        "receivers": plan.counts.receivers,
        "state": plan.counts.state,
        "lake": plan.counts.rows,
        "lake_receivers": plan.counts.rows_receivers,
        "jobs": made,
        "clients": list(plan.clients),
        "streams": [str(path) for path in streams],
    }
    if as_json:
        say_json(counted, one_line=True)
        return
    would = "would go" if dry_run else "erased"
    typer.echo(
        f"{plan.described()}: {would}: {plan.counts.records} records of the journal and {plan.counts.state} rows of its state, "
        f"{plan.counts.rows} rows of the lake, {made} of what jobs have made; "
        f"{plan.counts.receivers} events of others no longer name it"
    )
    for path in streams:
        tell(f"{path}: a stream {'would begin' if dry_run else 'begins'} anew; start its job again")
    if config is not None and user is not None and user in config.read_text(encoding="utf-8"):
        tell(f"{config} still names it; that file is yours to change")


def _begun(settings: BrokerSettings, asked: Plan) -> Plan:
    """The plan, or the one that somebody has begun and not finished; refused, if nobody knows that person."""
    import msgspec

    from nearcast.broker.access.users import read_users
    from nearcast.broker.erasing.plan import known_as, read_plan
    from nearcast.errors import InvalidSettings, UnknownName
    from nearcast.journal.identities import Identities

    earlier = read_plan(settings.data)
    if earlier is not None and not earlier.dry:
        if not earlier.is_same(asked):
            raise InvalidSettings(
                f"{earlier.described()} is being erased from {settings.data}, and it is not finished; "
                "erase it again, to the end, before anybody else"
            )
        return earlier if asked.dry else msgspec.structs.replace(earlier, problem=None)
    with closing(Identities(settings.data / "identities.db")) as identities:
        known = known_as(identities, asked)
    listed = asked.user is not None and asked.user in read_users(settings.passwords)
    if not (listed or known.identities or known.secret or (asked.user is not None and asked.clients)):
        raise UnknownName(
            f"nothing is known of {asked.described()} in {settings.data}; "
            + (
                "nearcast user list shows users; a client without one: --client ID"
                if asked.user
                else "its id is needed as it was"
            )
        )
    return asked


def _carried_out(settings: BrokerSettings, plan: Plan, report: Report) -> Plan:
    from nearcast.broker.erasing.offline import offline
    from nearcast.broker.erasing.plan import write_plan
    from nearcast.errors import FolderInUse
    from nearcast.runtime.live.clock import LiveClock

    if plan.done:
        return plan
    try:
        with offline(settings, LiveClock().now(), report) as erasure:
            return erasure.carry_out(plan)
    except FolderInUse:
        write_plan(settings.data, plan)
        return _awaited(settings, report)


def _awaited(settings: BrokerSettings, report: Report) -> Plan:
    """A broker runs: it finds the plan, and says how far it is."""
    from nearcast.broker.erasing.plan import read_plan, read_progress
    from nearcast.errors import SetupError

    heard = time.monotonic()
    while True:
        plan = read_plan(settings.data)
        if plan is None:
            raise SetupError("the plan has gone: somebody else has finished it, or deleted it; erase again to see")
        if plan.problem is not None:
            raise SetupError(f"the broker could not erase {plan.described()}: {plan.problem}")
        if plan.done:
            return plan
        progress = read_progress(settings.data)
        if progress is not None:
            report(progress.step, progress.done, progress.total)
            heard = time.monotonic()
        elif time.monotonic() - heard > _PATIENCE:
            raise SetupError(
                f"whoever uses {settings.data} does not carry the plan out; it is there all the same: the next broker does"
            )
        time.sleep(_LOOK_EVERY)


def _from_jobs(folders: list[Path], plan: Plan, report: Report) -> tuple[int, list[Path]]:
    subject, rows, streams = plan.subject(), 0, list[Path]()
    for folder in folders:
        if folder.is_dir():
            from nearcast.pipeline.tables.erasing import (
                erase as erase_from,
            )  # takes a while: only if there is something

            cleared = erase_from(
                folder, subject, lambda done, total: report("what jobs have made", done, total), dry=plan.dry
            )
            rows += cleared.erased.records + cleared.erased.receivers
            streams += cleared.streams
    return rows, streams


@contextmanager
def _shown() -> Iterator[Report]:
    with progress_bar("{task.completed}/{task.total}") as bar:
        task = bar.add_task("beginning")
        yield lambda step, done, total: bar.update(task, description=step, completed=done, total=total)
