"""Plans from outside: what a job found best, carried out once however often it is handed in."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from nearcast.broker.scheme_text import scheme_in
from nearcast.broker.scheming import Scheming
from nearcast.broker.sessions import Sessions
from nearcast.errors import JournalFailed
from nearcast.journal import Journal, Put
from nearcast.model.time import Instant

CARRIED_OUT: Final = "plans carried out"
"""The table of plans, by their ids, with the instant."""


class Planned(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bring everybody, or these clients, to a filter scheme."""

    plan: str
    """Its id: one plan is carried out once."""

    scheme: str
    """As in ``EGRID(factor=10)``."""

    clients: list[str] | None = None
    """Virtual identities; none: everybody."""


@dataclass(slots=True, eq=False, repr=False)
class Plans:
    journal: Journal
    sessions: Sessions
    scheming: Scheming
    now: Callable[[], Instant]
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def carry_out(self, plans: Sequence[Planned]) -> Counter[str]:
        """Those that were not carried out yet, in their order, up to one that cannot be."""
        for each in plans:
            scheme_in(each.scheme)
        async with self._turn:
            known = await asyncio.to_thread(self.journal.known, CARRIED_OUT, [each.plan for each in plans])
            done: dict[str, str] = {}
            try:
                for each in plans:
                    if each.plan not in known | set(done):
                        done[each.plan] = self._carry_out(each)
            finally:
                await self._settled(list(done))
            repeated = len(plans) - len(done)
            return Counter(done.values()) + Counter({"repeated": repeated})

    def _carry_out(self, planned: Planned) -> str:
        """What it changes is on its way to the disk when this returns."""
        clients: list[str] | None = None
        if planned.clients is not None:
            by_identity = self.sessions.by_identity()
            there = [by_identity[each].client for each in planned.clients if each in by_identity]
            # The plan was made of what was known a while ago: who has left since is not its business any more.
            clients = [client for client in there if self.scheming.live.follows(client)]
            if not clients:
                return "nobody"
        self.scheming.carry_out(planned.plan, planned.scheme, clients)
        return "carried out"

    async def _settled(self, plans: Sequence[str]) -> None:
        """That they are done is on disk, behind what they did."""
        written: asyncio.Future[JournalFailed | None] = asyncio.get_running_loop().create_future()

        def then(failed: JournalFailed | None) -> None:
            if not written.done():
                written.set_result(failed)

        at = self.now().to_bytes(8, "big")
        self.journal.write(puts=[Put(CARRIED_OUT, plan, at) for plan in plans], then=then)
        failed = await asyncio.shield(written)
        if failed is not None:
            raise failed
