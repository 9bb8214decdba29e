"""Plans by authorised planners: nothing unsigned, foreign, expired, altered or meant for another broker is carried out."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.broker.talker import broker
from tests.broker.test_http import asking
from tests.clocks import HandClock

from nearcast.broker.access.users import add_user
from nearcast.broker.schemes.planners import Planners
from nearcast.broker.schemes.plans import Planned
from nearcast.broker.schemes.settings import PlannerSettings
from nearcast.broker.server import Server
from nearcast.broker.settings import RuleSettings
from nearcast.errors import Denied, InvalidSettings
from nearcast.planning.signed import Signer, make_key, signer_in

SPARK = Signer("spark", b"s" * 32, "darmstadt")
TOWN = {"circle": 5_000, "at": [8.65, 49.87]}
REGION = {"name": "luisenplatz", "lat": 49.87, "lon": 8, "radius": 200}
HERE = REGION | {"lon": 8.65}
PLAN: dict[str, Any] = {"plan": "p-1", "scheme": "EGRID(factor=10)"}
HOUR = 3_600_000_000


def planners(clock: HandClock | None = None, **may: Any) -> Planners:
    settings = PlannerSettings(name="spark", key=SPARK.public(), **may)
    return Planners((settings,), "darmstadt", (clock or HandClock()).now)


def planned(plan: dict[str, Any]) -> Planned:
    return msgspec.json.decode(msgspec.json.encode(plan), type=Planned)


def refusal(who: Planners, plan: dict[str, Any]) -> str:
    with pytest.raises(Denied) as refused:
        who.check(planned(plan))
    return str(refused.value)


@given(
    factor=st.integers(1, 500),
    lat=st.floats(-85, 85) | st.integers(-85, 85),
    radius=st.floats(1, 1e6) | st.integers(1, 1_000_000),
    name=st.text(max_size=20),
    elsewhere=st.none() | st.just("RADIAL"),
)
def test_what_a_planner_signed_is_believed_and_nothing_else(
    factor: int, lat: float, radius: float, name: str, elsewhere: str | None
) -> None:
    clock = HandClock()
    region = {"name": name, "lat": lat, "lon": 1, "radius": radius}
    plan = {"plan": name, "scheme": f"EGRID(factor={factor})", "regions": [region], "elsewhere": elsewhere}
    signed = SPARK.signed(plan, clock.now())
    who = planners(clock)
    who.check(planned(signed))
    for altered in (
        signed | {"plan": name + "x"},
        signed | {"scheme": f"EGRID(factor={factor + 1})"},
        signed | {"regions": [region | {"radius": radius + 1}]},
        signed | {"regions": None},
        signed | {"elsewhere": "EGRID(factor=3)"},
        signed | {"gateways": "on"},
        signed | {"clients": ["someone"]},
        *(
            signed | {"signature": signed["signature"] | {part: signed["signature"][part] + HOUR}}
            for part in ("issued", "expires")
        ),
        signed | {"signature": signed["signature"] | {"audience": "frankfurt"}},
    ):
        assert "signature is wrong" in refusal(who, altered)
    assert who.statistics().refused == 10


def test_strangers_other_brokers_and_other_times_are_refused() -> None:
    clock = HandClock()
    who = planners(clock)
    assert "not signed" in refusal(who, PLAN)
    assert "signature is wrong" in refusal(who, Signer("spark", b"e" * 32, "darmstadt").signed(PLAN, clock.now()))
    assert "no planner 'eve'" in refusal(who, Signer("eve", b"e" * 32, "darmstadt").signed(PLAN, clock.now()))
    assert "another broker" in refusal(who, Signer("spark", b"s" * 32, "frankfurt").signed(PLAN, clock.now()))
    assert "in the future" in refusal(who, SPARK.signed(PLAN, clock.now() + 2 * 60_000_000))
    assert "more than a day" in refusal(who, SPARK.signed(PLAN, clock.now(), 25 * HOUR))
    signed = SPARK.signed(PLAN, clock.now())
    who.check(planned(signed))
    clock.time += 10 * 60_000_000
    assert "expired" in refusal(who, signed)
    broken = signed | {"signature": signed["signature"] | {"value": "%%%"}}
    assert "signature is wrong" in refusal(who, broken)


@pytest.mark.parametrize(
    ("may", "plan", "problem"),
    [
        ({"schemes": ["RADIAL"]}, PLAN, "may not plan EGRID"),
        ({"schemes": ["EGRID"]}, PLAN | {"regions": [HERE], "elsewhere": "RADIAL"}, "may not plan RADIAL"),
        ({"schemes": ["EGRID"]}, PLAN, None),
        ({"gateways": False}, PLAN | {"regions": [HERE], "gateways": "on"}, "gateways"),
        ({"within": TOWN}, PLAN, "not for everybody"),
        ({"within": TOWN}, PLAN | {"clients": ["x"]}, "not for everybody"),
        ({"within": TOWN}, PLAN | {"regions": [HERE], "elsewhere": "RADIAL"}, "not for everybody"),
        ({"within": TOWN}, PLAN | {"regions": [HERE, REGION]}, "not within its area"),
        ({"within": TOWN}, PLAN | {"regions": [HERE | {"radius": 6_000}]}, "not within its area"),
        ({"within": TOWN}, PLAN | {"regions": [HERE]}, None),
    ],
)
def test_a_planner_plans_what_it_may(may: dict[str, Any], plan: dict[str, Any], problem: str | None) -> None:
    clock = HandClock()
    who = planners(clock, **may)
    signed = SPARK.signed(plan, clock.now())
    if problem is None:
        who.check(planned(signed))
    else:
        assert problem in refusal(who, signed)


def test_without_planners_whoever_may_plan_is_believed() -> None:
    Planners((), "", HandClock().now).check(planned(PLAN))


def test_keys_are_made_once_and_read_without_being_quoted(tmp_path: Path) -> None:
    path = tmp_path / "spark.key"
    made = make_key(path, "spark")
    assert path.stat().st_mode & 0o777 == 0o600
    assert signer_in(path, "darmstadt").public() == made.public()
    assert made.public() not in path.read_text()
    with pytest.raises(InvalidSettings, match="not overwritten"):
        make_key(path, "spark")
    secret = json.loads(path.read_text())["secret"]
    for broken in (b'{"planner": "spark", "secret": "' + secret[:-8].encode() + b'"}', b"{", b"\xff"):
        path.write_bytes(broken)
        with pytest.raises(InvalidSettings, match="no key of a planner") as refused:
            signer_in(path)
        assert secret[:8] not in str(refused.value)
    assert secret not in repr(made)
    for key in ("", "x", "AAAA"):
        with pytest.raises(InvalidSettings, match="no public key"):
            PlannerSettings(name="spark", key=key)


def test_by_http_signed_once_and_by_whom_may_hand_in(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for user in ("job", "root", "guest"):
        add_user(tmp_path / "users", user, user)
    rules = (
        RuleSettings(users=("job",), hand_in=True),
        RuleSettings(users=("root",), plans=True),
        RuleSettings(users=("guest",), subscribe=("#",)),
    )

    async def story(server: Server) -> None:
        now = server.broker.clock.now()
        signed = SPARK.signed(PLAN, now)
        async with asking(server) as client:

            async def post(path: str, body: Any, user: str) -> Any:
                return await client.post(path, json=body, auth=(user, user))

            for user in ("guest", "job", "root"):
                assert (await post("/plans", [PLAN], user)).status_code == 403
            assert (await post("/plans", [signed], "guest")).status_code == 403
            # One that is not to be believed takes the others with it.
            both = [signed, PLAN | {"plan": "p-2"}]
            assert (await post("/plans", both, "job")).status_code == 403
            assert str(server.broker.scheming.live.status().scheme) == "RADIAL"
            assert (await post("/plans", [signed], "job")).json() == {"carried out": 1}
            assert str(server.broker.scheming.live.status().scheme) == "EGRID(factor=10)"
            assert (await post("/transitions", {"scheme": "RADIAL"}, "root")).status_code == 200
            # Handed in again, it is done already; and who hands in cannot command.
            assert (await post("/plans", [signed], "job")).json() == {"repeated": 1}
            assert str(server.broker.scheming.live.status().scheme) == "RADIAL"
            assert (await post("/transitions", {"scheme": "EGRID"}, "job")).status_code == 403
            assert (await client.get("/journal/extent", auth=("job", "job"))).status_code == 200
            assert (await client.get("/journal/extent", auth=("guest", "guest"))).status_code == 403

    logging.getLogger("nearcast").propagate = True
    with caplog.at_level(logging.WARNING):
        broker(
            tmp_path,
            story,
            access={"rules": rules, "anonymous": "never"},
            listen={"http_port": "any"},
            schemes={"planners": (PlannerSettings(name="spark", key=SPARK.public()),), "audience": "darmstadt"},
        )
    assert "a plan was refused: plan 'p-1': it is not signed" in caplog.text
