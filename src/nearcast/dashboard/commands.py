"""Transitions and rules, by hand; and what was done so far.

Everything is checked before anything changes.  Rules that were changed here hold until the broker is started again: then those of its settings
file do, which nobody but its owner writes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from nearcast.broker.core import Broker
from nearcast.broker.erasing.plan import Plan
from nearcast.broker.schemes.settings import SchemeRuleSettings, SchemeTable
from nearcast.dashboard.contract import Happened, PlansShown, Region, Rules
from nearcast.dissemination.handed_broker import TransitionDone
from nearcast.errors import ChangedMeanwhile, InvalidSettings
from nearcast.model.time import Instant, to_text
from nearcast.settings_files import Section, parse_settings

REMEMBERED: Final = 200
MOST_RULES: Final = 64
ERASED: Final = "somebody who was erased"
RULE: Final = "a rule"


class _SchemesOnly(Section, frozen=True, kw_only=True):
    rules: tuple[SchemeRuleSettings, ...] = msgspec.field(default=(), name="rule")


class _RulesOnly(Section, frozen=True, kw_only=True):
    """All that a text of rules may hold."""

    schemes: _SchemesOnly = _SchemesOnly()


class Commands:
    """One for each broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker: Final = broker
        self._rules = tuple(broker.settings.schemes.rules)
        self._done = deque[Happened](maxlen=REMEMBERED)
        self._asked = deque[tuple[Instant, str]](maxlen=REMEMBERED)

    # Transitions

    async def transition(self, scheme: str, clients: list[str] | None, user: str | None) -> PlansShown:
        """``InvalidInput``, ``UnknownName`` or ``TransitionFailed``: then nothing has changed."""
        live, moved = self._broker.scheming.live, asyncio.Event()
        live.check(scheme)
        with self._credited(user):
            live.transition(scheme, clients)
        self._audit(user, f"transition to {scheme}")
        live.when_moved(moved.set)
        await moved.wait()
        return self.shown()

    def by(self, done: TransitionDone) -> str:
        """Who asked for it, if it was somebody here; otherwise by what order it was done, if there was any."""
        region = None if done.region is None else "a plan"  # carried out before: somebody has come to its region
        return next((user for asked, user in self._asked if asked == done.time), done.order or region or RULE)

    def purge(self, plan: Plan) -> None:
        """Who was erased has done what it did, but nobody is told its name any more."""
        if plan.user is None:
            return
        asked = ((at, ERASED if user == plan.user else user) for at, user in self._asked)
        done = (msgspec.structs.replace(each, by=ERASED) if each.by == plan.user else each for each in self._done)
        self._asked, self._done = deque(asked, REMEMBERED), deque(done, REMEMBERED)

    @contextmanager
    def _credited(self, user: str | None) -> Iterator[None]:
        """What is done meanwhile, and nothing else that happens around that time, was asked for by that user."""
        live = self._broker.scheming.live
        before = live.transitions
        yield
        new = live.transitions - before
        if new:
            self._asked.extend((done.time, _name(user)) for done in live.status().latest[-new:])

    def _audit(self, user: str | None, what: str) -> None:
        self._broker.audit.commanded(self._broker.identity_of(user, "dashboard"), what)

    # Rules

    def rules(self) -> Rules:
        text = "\n".join(_written(rule) for rule in self._rules)
        return Rules(text, sha256(text.encode()).hexdigest()[:16])

    def change_rules(self, text: str, user: str | None, version: str | None = None) -> Rules:
        """All of them at once; ``InvalidInput`` says what is wrong with the first that cannot be, and then nothing has changed.

        ``ChangedMeanwhile``: they were made from others than hold now.
        """
        if version is not None and version != self.rules().version:
            who = next((each.by for each in reversed(self._done)), None)
            raise ChangedMeanwhile(
                f"the rules were changed meanwhile{f' by {who}' if who else ''}, and yours would delete theirs: read them again, and change those"
            )
        wanted = parse_settings(text, _RulesOnly, "rules", Path()).schemes.rules
        if len(wanted) > MOST_RULES:
            raise InvalidSettings(f"{len(wanted)} rules are too many; there may be {MOST_RULES}")
        now = self._broker.clock.now()
        with self._credited(user):
            self._broker.scheming.live.change_rules([rule.rule() for rule in wanted])
        self._audit(user, f"{len(wanted)} rules")
        self._rules = wanted
        self._done.append(Happened(to_text(now), f"{len(wanted)} rules hold now", _name(user), None))
        return self.rules()

    # What there is

    def shown(self) -> PlansShown:
        broker = self._broker
        status = broker.scheming.live.status()
        done = [
            Happened(
                to_text(each.time),
                f"to {each.scheme}" + (f", {each.region}" if each.region else ""),
                self.by(each),
                None if each.everybody else each.clients,
            )
            for each in status.latest
        ]
        regions = [
            Region(
                each.zone.name,
                each.zone.center.lat,
                each.zone.center.lon,
                each.zone.radius,
                str(each.scheme),
                each.plan,
            )
            for each in status.regions
        ]
        return PlansShown(
            str(status.scheme),
            {str(spec): count for spec, count in status.groups.items()},
            status.waiting,
            regions,
            {name: switch.on for name, switch in broker.plans.gateways.items()},
            self.rules(),
            sorted([*done, *self._done], key=lambda each: each.at, reverse=True),
        )


def _name(user: str | None) -> str:
    return "somebody on this machine" if user is None else user


def _written(rule: SchemeRuleSettings) -> str:
    """A rule as it stands in a settings file."""
    lines = ["[[schemes.rule]]", f"when = {_value(rule.when)}"]
    given: Mapping[str, float | None] = {"above": rule.above, "below": rule.below, "back_at": rule.back_at}
    lines += [f"{name} = {_value(value)}" for name, value in given.items() if value is not None]
    lines += [f"dwell = {_value(str(rule.dwell))}", f"scheme = {_table(rule.scheme)}"]
    return "\n".join(lines) + "\n"


def _table(table: SchemeTable) -> str:
    return "{ " + ", ".join(f"{name} = {_value(value)}" for name, value in table.items()) + " }"


def _value(value: bool | float | str) -> str:
    """As TOML has it; its basic strings are those of JSON."""
    return msgspec.json.encode(value).decode()
