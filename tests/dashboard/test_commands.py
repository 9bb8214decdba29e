"""Transitions and rules by hand: checked as a whole, carried out at once, or refused with a sentence and nothing changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.broker.talker import talking
from tests.dashboard.looking import WORD, looking, shown
from tests.dashboard.test_doors import RULES, with_users
from tests.waiting import until

import nearcast
from nearcast.broker.server import Server
from nearcast.model.geometry import Point

HERE = Point(49.8728, 8.6512)
GROUND = {"territory": {"south": 49.8, "west": 8.5, "north": 49.9, "east": 8.8}}
CROWD = """
[[schemes.rule]]
when = "subscribers"
above = {above}
dwell = "0s"
scheme = {{ kind = "EGRID", factor = 7 }}
"""


def on_ground() -> dict[str, Any]:
    from nearcast.broker.schemes.settings import TerritoryBox

    return {"schemes": {"territory": TerritoryBox(**GROUND["territory"])}}


async def command(client: httpx.AsyncClient, scheme: str, **parts: Any) -> httpx.Response:
    return await client.post("/dashboard/api/transitions", json={"scheme": scheme, **parts}, headers=WORD)


def sdk(server: Server, name: str) -> Any:
    host, port = server.addresses["mqtt"]
    return nearcast.connect(f"mqtt://{host}:{port}", client_id=name)


def test_a_transition_is_carried_out_told_and_remembered(tmp_path: Path) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        async with sdk(server, "ada") as ada, looking(server) as page, ada.subscribe("traffic/#", within=500):
            await ada.update(lat=HERE.lat, lon=HERE.lon)
            await page.until(lambda page: page.of("tick"))
            answer = await command(client, "EGRID(factor=10)")
            assert answer.status_code == 200, answer.text
            assert answer.json()["scheme"] == "EGRID(factor=10)"
            await page.until(lambda page: page.of("transition"))
            told = page.of("transition")[0]
            assert (told["from"], told["to"], told["by"]) == ("RADIAL", "EGRID(factor=10)", "somebody on this machine")
            await page.until(lambda page: page.kind_of("ada") == ("EGRID(factor=10)", ""))
            await page.until(lambda page: any(each["features"]["features"] for each in page.of("cells")))
            cells = page.of("cells")[-1]
            assert cells["scheme"] == "EGRID(factor=10)"
            await page.until(lambda page: any(_occupied(each) for each in page.of("cells")))
            shown = (await client.get("/dashboard/api/clients/ada")).json()
            assert shown["scheme"] == "EGRID(factor=10)"
            names = {each["properties"]["label"] for each in shown["cells"]["features"]}
            assert shown["cell"] in names
            history = (await client.get("/dashboard/api/plans")).json()["history"]
            assert history[0]["what"] == "to EGRID(factor=10)"

    shown(tmp_path, story, **on_ground())


def _occupied(cells: dict[str, Any]) -> bool:
    return any(each["properties"]["count"] for each in cells["features"]["features"])


@pytest.mark.parametrize(
    ("scheme", "parts", "status"),
    [
        ("NOTHING", {}, 422),
        ("EGRID(factor=0)", {}, 422),
        ("EGRID(colour=blue)", {}, 422),
        ("RADIAL", {"clients": ["nobody"]}, 404),
        ("RADIAL", {"colour": "blue"}, 400),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(
    tmp_path: Path, scheme: str, parts: dict[str, Any], status: int
) -> None:
    async def story(_: Server, client: httpx.AsyncClient) -> None:
        before = (await client.get("/dashboard/api/plans")).json()
        answer = await command(client, scheme, **parts)
        assert (answer.status_code, len(answer.json()["detail"]) > 10) == (status, True)
        assert (await client.get("/dashboard/api/plans")).json() == before

    shown(tmp_path, story)


def test_rules_decide_as_soon_as_they_are_changed(tmp_path: Path) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        live = server.broker.scheming.live

        async def rules(text: str) -> httpx.Response:
            return await client.put("/dashboard/api/rules", json={"text": text}, headers=WORD)

        assert (await client.get("/dashboard/api/rules")).json()["text"] == ""
        async with sdk(server, "ada") as ada, ada.subscribe("traffic/#", within=500):
            await ada.update(lat=HERE.lat, lon=HERE.lon)
            await until(lambda: live.takes_part("ada"))
            answer = await rules(CROWD.format(above=0.5))
            assert answer.status_code == 200, answer.text
            assert "EGRID" in answer.json()["text"]
            assert (await client.get("/dashboard/api/rules")).json() == answer.json()
            await until(lambda: str(live.status().scheme) == "EGRID(factor=7)")
            # What was written can be written back.
            assert (await rules(answer.json()["text"])).json() == answer.json()
            assert (await rules(CROWD.format(above=1000))).status_code == 200
            await until(lambda: str(live.status().scheme) == "RADIAL")  # the rule that held is gone
            assert (await rules("")).json()["text"] == ""

    shown(tmp_path, story, **on_ground())


def test_what_has_happened_says_by_whose_order(tmp_path: Path) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        scheming = server.broker.scheming

        async def runs(scheme: str) -> str:
            await until(lambda: str(scheming.live.status().scheme) == scheme)
            first: dict[str, str] = (await client.get("/dashboard/api/plans")).json()["history"][0]
            assert first["what"] == f"to {scheme}"
            return first["by"]

        rules = await client.put("/dashboard/api/rules", json={"text": CROWD.format(above=0.5)}, headers=WORD)
        assert rules.status_code == 200, rules.text
        async with looking(server) as page:
            await page.until(lambda page: page.of("tick"))
            async with sdk(server, "ada") as ada, ada.subscribe("traffic/#", within=500):
                await ada.update(lat=HERE.lat, lon=HERE.lon)
                assert await runs("EGRID(factor=7)") == "a rule"
                assert (await command(client, "RADIAL")).status_code == 200
                assert await runs("RADIAL") == "somebody on this machine"
                assert (await client.post("/transitions", json={"scheme": "GRID(factor=8)"})).status_code == 200
                assert await runs("GRID(factor=8)") == "a command"
                scheming.carry_out("p-1", "EGRID(factor=9)", None)
                assert await runs("EGRID(factor=9)") == "the plan p-1"
                await page.until(lambda page: len(page.of("transition")) == 4)
                told = [each["by"] for each in page.of("transition")]
                assert told == ["a rule", "somebody on this machine", "a command", "the plan p-1"]

    shown(tmp_path, story, **on_ground())


def test_nobody_deletes_rules_that_it_has_not_read(tmp_path: Path) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        async def change(above: int, version: str | None) -> httpx.Response:
            asked = {"text": CROWD.format(above=above), "version": version}
            return await client.put("/dashboard/api/rules", json=asked, headers=WORD)

        read = (await client.get("/dashboard/api/rules")).json()["version"]
        first = await change(1_000, read)
        assert first.status_code == 200, first.text
        second = await change(2_000, read)
        assert second.status_code == 409
        assert "somebody on this machine" in second.json()["detail"]
        assert (await client.get("/dashboard/api/rules")).json() == first.json()
        assert (await change(2_000, first.json()["version"])).status_code == 200
        assert (await change(3_000, None)).status_code == 200  # a script that wants them whatever held

    shown(tmp_path, story)


def test_one_client_is_moved_whatever_its_name(tmp_path: Path) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        async with (
            sdk(server, "my car, red") as car,
            sdk(server, "bob") as bob,
            looking(server) as page,
            car.subscribe("traffic/#", within=500),
            bob.subscribe("traffic/#", within=500),
        ):
            for each in (car, bob):
                await each.update(lat=HERE.lat, lon=HERE.lon)
            live = server.broker.scheming.live
            await until(lambda: live.takes_part("my car, red") and live.takes_part("bob"))
            await page.until(lambda page: page.of("tick"))
            answer = await command(client, "EGRID(factor=10)", clients=["my car, red"])
            assert answer.status_code == 200, answer.text
            await page.until(lambda page: page.of("transition"))
            [told] = page.of("transition")
            assert (told["from"], told["to"]) == ("RADIAL", "EGRID(factor=10)")
            assert (told["clients"], told["region"]) == (1, None)
            assert str(live.scheme_of("bob")) == "RADIAL"

    shown(tmp_path, story, **on_ground())


@pytest.mark.parametrize(
    "wrong",
    [
        "no toml [",
        "[schemes]\nstart = { kind = 'RADIAL' }",
        CROWD.format(above=1) + CROWD.format(above=1).replace("EGRID", "NOTHING"),
        CROWD.format(above=1) + CROWD.format(above=1).replace("subscribers", "the weather"),
        CROWD.format(above=1).replace("above", "colour"),
        CROWD.format(above=1) * 100,
    ],
)
def test_wrong_rules_change_nothing(tmp_path: Path, wrong: str) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        right = {"text": CROWD.format(above=5)}
        kept = (await client.put("/dashboard/api/rules", json=right, headers=WORD)).json()
        rules = server.broker.scheming.live.rules
        answer = await client.put("/dashboard/api/rules", json={"text": wrong}, headers=WORD)
        assert answer.status_code == 422, answer.text
        assert len(answer.json()["detail"]) > 10
        assert (await client.get("/dashboard/api/rules")).json() == kept
        assert server.broker.scheming.live.rules == rules

    shown(tmp_path, story)


def test_nobody_commands_without_permission_or_from_another_site(tmp_path: Path) -> None:
    with_users(tmp_path)

    async def story(server: Server, client: httpx.AsyncClient) -> None:
        orders: list[tuple[str, str, dict[str, Any]]] = [
            ("POST", "/dashboard/api/transitions", {"scheme": "STE"}),
            ("PUT", "/dashboard/api/rules", {"text": CROWD.format(above=1)}),
        ]
        ada, bob = httpx.BasicAuth("ada", "a long word"), httpx.BasicAuth("bob", "another word")
        for method, route, body in orders:
            assert (await client.request(method, route, json=body, headers=WORD)).status_code == 401
            assert (await client.request(method, route, json=body, headers=WORD, auth=bob)).status_code == 403
            assert (await client.request(method, route, json=body, auth=ada)).status_code == 403
            elsewhere = WORD | {"origin": "https://elsewhere.example"}
            assert (await client.request(method, route, json=body, headers=elsewhere, auth=ada)).status_code == 403
        assert str(server.broker.scheming.live.status().scheme) == "RADIAL"
        assert not server.broker.scheming.live.rules
        for method, route, body in orders:
            assert (await client.request(method, route, json=body, headers=WORD, auth=ada)).status_code == 200
        history = (await client.get("/dashboard/api/plans", auth=ada)).json()["history"]
        assert {each["by"] for each in history} == {"ada"}

    shown(tmp_path, story, access=RULES)


def test_every_route_of_data_is_closed_to_those_who_may_not(tmp_path: Path) -> None:
    with_users(tmp_path)
    routes = (
        *("world", "sessions", "subscriptions", "plans", "rules", "clients/guest-17", "past/extent"),
        *("past?at=2026-01-01T00:00:00Z", "heat", "heat?kind=recall", "explain?event=e&client=guest-17"),
    )

    async def story(server: Server, client: httpx.AsyncClient) -> None:
        async with talking(server, "guest-17", username="bob", password=b"another word"):
            for route in routes:
                for auth, status in ((None, 401), (httpx.BasicAuth("bob", "another word"), 403)):
                    answer = await client.get(f"/dashboard/api/{route}", auth=auth)
                    assert answer.status_code == status, route
                    assert "guest-17" not in answer.text

    shown(tmp_path, story, access=RULES)
