"""Other people's data, commands and forged plans by HTTP and the dashboard, by those who may nothing."""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from tests.broker.attack.attacking import KNOWN, PATIENCE, STRANGERS, Attack, Outcome, Target

REFUSALS: Final = frozenset({401, 403, 429})
JSON: Final = {"Content-Type": "application/json"}
CHANGES: Final = JSON | {"X-Nearcast": "1"}
"""The dashboard's own header: so that it is the rights which refuse, and not the guard against other sites' pages."""

EVENT: Final = {"specversion": "1.0", "id": "1", "source": "x", "type": "honest/x", "data": "evil"}


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    refusals: frozenset[int] = REFUSALS
    there: bool = True
    """Whether there is what is asked for; else it is told to nobody but those who may ask that there is not."""

    @property
    def kind(self) -> str:
        return f"http {self.method} {self.path}"


REQUESTS: Final = (
    Asked("GET", "/status"),
    Asked("GET", "/transitions"),
    Asked("GET", "/journal?first=0"),
    Asked("GET", "/journal/extent"),
    Asked("GET", "/journal/stretches?first=0&last=1000"),
    Asked("GET", "/events?topic=%23"),
    Asked("GET", "/explain?event=planted&client=honest-listener", there=False),
    Asked("GET", "/dashboard/api/sessions"),
    Asked("GET", "/dashboard/api/subscriptions"),
    Asked("GET", "/dashboard/api/client?name=..", there=False),
    Asked("GET", "/dashboard/api/past/extent"),
    Asked("GET", "/dashboard/api/heat"),
    Asked("PUT", "/dashboard/api/rules", {"text": ""}, CHANGES),
    Asked("POST", "/dashboard/api/transitions", {"scheme": "RADIAL"}, CHANGES),
    Asked("POST", "/transitions", {"scheme": "EGRID"}, JSON),
    Asked("POST", "/reload"),
    Asked("POST", "/events", EVENT, {"Content-Type": "application/cloudevents+json"}),
)
FOR_NOBODY: Final = (
    Asked("GET", "/dashboard/%2e%2e/%2e%2e/etc/passwd", refusals=REFUSALS | {404}),
    Asked("POST", "/plans", [{"plan": "x", "scheme": "EGRID"}], JSON),
)
"""Even for root: there are planners."""


def basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


async def ask(
    target: Target, asked: Asked, who: dict[str, str], addresses: tuple[str, ...] = STRANGERS
) -> tuple[int, bytes]:
    reader, writer = await target.connection("http", addresses)
    try:
        body = b"" if asked.body is None else json.dumps(asked.body).encode()
        headers = {"Host": "x", "Connection": "close", "Content-Length": str(len(body))} | asked.headers | who
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"{asked.method} {asked.path} HTTP/1.1\r\n{head}\r\n".encode() + body)
        answer = await asyncio.wait_for(reader.read(), PATIENCE)
    finally:
        writer.transport.abort()
    if not answer:
        raise ConnectionResetError("no answer")
    return int(answer.split(maxsplit=2)[1]), answer.partition(b"\r\n\r\n")[2]


async def refused(target: Target, asked: Asked, who: dict[str, str], addresses: tuple[str, ...]) -> Outcome:
    status, _ = await ask(target, asked, who, addresses)
    return Outcome(status not in asked.refusals, str(status))


async def replayed(target: Target) -> Outcome:
    """A plan that was overheard, with the stolen password of the job: nothing happens a second time."""
    seen = Asked("POST", "/plans", [target.plans["seen"]], JSON)
    status, body = await ask(target, seen, basic("job", "job"), KNOWN)
    nothing = status in REFUSALS or (status == 200 and json.loads(body) == {"repeated": 1})
    return Outcome(not nothing, "repeated" if status == 200 else str(status))


def attacks(target: Target) -> list[Attack]:
    guess = basic("root", "guess")
    strangers: list[tuple[str, dict[str, str]]] = [
        ("nobody", {}),
        ("nobody, forwarded", {"X-Forwarded-For": "127.0.0.1"}),
        ("guess", guess),
        ("guess, forwarded", guess | {"X-Forwarded-For": "10.0.0.1"}),
        *((kind, {"Authorization": f"Bearer {token}"}) for kind, token in target.tokens.items()),
    ]
    mallory = basic("mallory", "mallory")
    found = []
    wanted = (*REQUESTS, *FOR_NOBODY, Asked("POST", "/plans", [target.plans["forged"]], JSON), Asked("GET", "/metrics"))
    for number, asked in enumerate(wanted):
        # Who somebody pretends to be is looked at before what is asked for: each is asked for by three of them, in turn.
        for name, who in (strangers[(3 * number + each) % len(strangers)] for each in range(3)):
            run = partial(refused, asked=asked, who=who, addresses=STRANGERS)
            found.append(Attack(f"{asked.kind} by {name}", run))
        if asked.path != "/metrics":  # hers to see
            run = partial(refused, asked=asked, who=mallory, addresses=KNOWN)
            found.append(Attack(f"{asked.kind} by mallory", run, None if 404 in asked.refusals else "403"))
    altered = target.plans["seen"] | {"scheme": "RADIAL"}
    for name, plan in (("forged", target.plans["forged"]), ("altered", altered)):
        run = partial(refused, asked=Asked("POST", "/plans", [plan], JSON), who=basic("job", "job"), addresses=KNOWN)
        found.append(Attack(f"plan: {name}, by the job", run, "403"))
    found.append(Attack("plan: replayed by the job", replayed, "repeated"))
    return found


async def check_controls(target: Target, password: str) -> None:
    """The same requests by root are answered, and the plan by the job is carried out."""
    root = basic("root", password)
    planted = EVENT | {"id": "planted", "type": "evil/planted"}
    wanted = Asked("POST", "/events", planted, {"Content-Type": "application/cloudevents+json"})
    status, body = await ask(target, wanted, root, KNOWN)
    assert status == 201, body
    for asked in REQUESTS:
        status, body = await ask(target, asked, root, KNOWN)
        assert (status < 300) if asked.there else (status == 404), (asked, status, body)
    seen = Asked("POST", "/plans", [target.plans["seen"]], JSON)
    status, body = await ask(target, seen, basic("job", "job"), KNOWN)
    assert (status, json.loads(body)) == (200, {"carried out": 1})
