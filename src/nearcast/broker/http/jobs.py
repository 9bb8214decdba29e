"""What jobs hand in: answers to questions about the past, and plans."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from litestar import Request, post
from litestar.di import NamedDependency
from litestar.params import JSONBody

from nearcast.broker.answer_rows import answers_in
from nearcast.broker.core import Broker
from nearcast.broker.http.authentication import CLIENT, principal_of
from nearcast.broker.schemes.plans import Planned

MOST_BYTES: Final = 16 * 1024 * 1024


@post(
    "/notifications",
    status_code=200,
    tags=["operations"],
    summary="Deliver events of the past to clients",
    request_max_body_size=MOST_BYTES,
)
async def notifications(request: Request[Any, Any, Any], broker: NamedDependency[Broker]) -> dict[str, int]:
    """An Arrow stream of rows as `records.answers` has them; a key that was seen to before is `repeated`, and nothing more happens.

    Answered when all of it is on disk: what became of how many.
    """
    (await principal_of(broker.access, request)).check_hand_in()
    answers = await asyncio.to_thread(answers_in, await request.body())
    return dict(await broker.answering.give(answers))


@post("/plans", status_code=200, tags=["operations"], summary="Carry out plans")
async def plans(
    request: Request[Any, Any, Any], broker: NamedDependency[Broker], data: JSONBody[list[Planned]]
) -> dict[str, int]:
    """Each once, by its id; answered when that is on disk: what became of how many."""
    principal = await principal_of(broker.access, request)
    principal.check_hand_in(signed=bool(broker.plans.planners))
    outcome = dict(await broker.plans.carry_out(data))
    by = broker.identity_of(principal.user, CLIENT)
    for each in data:
        planner = "" if each.signature is None else f" of planner {each.signature.planner}"
        broker.audit.commanded(by, f"plan {each.plan!r:.60}{planner}")
    return outcome
