"""Who is let in: the broker's own users and rules, and nothing that a browser brings along by itself."""

from __future__ import annotations

import asyncio
import base64
import re
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from tests.broker.access.minting import Issuer
from tests.broker.talker import talking
from tests.dashboard.looking import WORD, asking, looking, shown
from tests.waiting import until
from websockets.exceptions import ConnectionClosed, InvalidStatus

from nearcast.broker.access.users import add_user, remove_user
from nearcast.broker.server import Server
from nearcast.broker.settings import RuleSettings
from nearcast.dashboard import doors, live
from nearcast.dashboard.doors import ATTEMPTS, COOKIE, MOST_LOGINS_OF_ONE

DATA = ("/dashboard/api/world", "/dashboard/api/sessions")
RULES: dict[str, Any] = {
    "rules": (
        RuleSettings(name="operators", users=("ada",), plans=True),
        RuleSettings(name="everybody", users=("*",), publish=("#",), subscribe=("#",)),
    ),
    "anonymous": "never",
}


def with_users(folder: Path) -> None:
    add_user(folder / "users", "ada", "a long word")
    add_user(folder / "users", "bob", "another word")


async def log_in(client: httpx.AsyncClient, user: str = "ada", word: str = "a long word") -> httpx.Response:
    return await client.post("/dashboard/login", json={"user": user, "password": word}, headers=WORD)


async def refused(server: Server, **options: Any) -> int:
    with pytest.raises(InvalidStatus) as told:
        async with looking(server, **options):
            pass
    return told.value.response.status_code


def test_the_page_is_for_everybody_and_what_it_shows_is_not(tmp_path: Path) -> None:
    with_users(tmp_path)

    async def story(server: Server, client: httpx.AsyncClient) -> None:
        for short in ("/", "/dashboard"):
            assert (await client.get(short)).headers["location"] == "/dashboard/"
        assert (await client.get("/dashboard/")).status_code == 200
        assert (await client.get("/dashboard/api/me")).json() == {"user": None, "may_see": False, "may_command": False}
        async with talking(server, "guest-17", username="bob", password=b"another word"):
            for route in DATA:
                answer = await client.get(route)
                assert answer.status_code == 401, route
                assert "www-authenticate" not in answer.headers
                assert "guest-17" not in answer.text
            assert await refused(server) == 403

    shown(tmp_path, story, access=RULES)


def test_logging_in_and_out(tmp_path: Path) -> None:
    with_users(tmp_path)

    async def story(server: Server, client: httpx.AsyncClient) -> None:
        answer = await log_in(client)
        assert answer.status_code == 204
        told = answer.headers["set-cookie"].lower()
        assert "httponly" in told
        assert "samesite=strict" in told
        assert "path=/dashboard" in told
        assert (await client.get("/dashboard/api/me")).json() == {"user": "ada", "may_see": True, "may_command": True}
        for route in DATA:
            assert (await client.get(route)).status_code == 200
        cookie = {"cookie": f"{COOKIE}={client.cookies[COOKIE]}"}
        async with looking(server, additional_headers=cookie) as page:
            await page.until(lambda page: page.of("tick"))
        assert (await client.post("/dashboard/logout", headers=WORD)).status_code == 204
        assert (await client.get(DATA[0], headers=cookie)).status_code == 401
        assert await refused(server, additional_headers=cookie) == 403

    shown(tmp_path, story, access=RULES)


def test_somebody_without_the_permission_is_told_so(tmp_path: Path) -> None:
    with_users(tmp_path)

    async def story(server: Server, client: httpx.AsyncClient) -> None:
        assert (await log_in(client, "bob", "another word")).status_code == 204
        assert (await client.get("/dashboard/api/me")).json() == {"user": "bob", "may_see": False, "may_command": False}
        for route in DATA:
            assert (await client.get(route)).status_code == 403
        cookie = {"cookie": f"{COOKIE}={client.cookies[COOKIE]}"}
        assert await refused(server, additional_headers=cookie) == 403

    shown(tmp_path, story, access=RULES)


def test_a_login_ends_with_the_password_and_with_the_user(tmp_path: Path) -> None:
    with_users(tmp_path)

    async def story(_: Server, client: httpx.AsyncClient) -> None:
        await log_in(client)
        add_user(tmp_path / "users", "ada", "a new word")
        assert (await client.get(DATA[0])).status_code == 401
        await log_in(client, "ada", "a new word")
        assert (await client.get(DATA[0])).status_code == 200
        remove_user(tmp_path / "users", "ada")
        assert (await client.get(DATA[0])).status_code == 401

    shown(tmp_path, story, access=RULES)


def test_a_login_expires(tmp_path: Path) -> None:
    with_users(tmp_path)

    async def story(server: Server, client: httpx.AsyncClient) -> None:
        await log_in(client)
        assert (await client.get(DATA[0])).status_code == 200
        cookie = {"cookie": f"{COOKIE}={client.cookies[COOKIE]}"}  # a browser would have forgotten it by then
        begun, now = server.broker.clock.now(), server.broker.clock.now
        await until(lambda: now() - begun > 3_000_000)
        client.cookies.clear()
        assert (await client.get(DATA[0], headers=cookie)).status_code == 401

    shown(tmp_path, story, access=RULES, dashboard={"stay": 3_000_000})


def test_wrong_passwords_are_slowed_down(tmp_path: Path) -> None:
    with_users(tmp_path)

    async def story(_: Server, client: httpx.AsyncClient) -> None:
        for _attempt in range(ATTEMPTS):
            assert (await log_in(client, "ada", "wrong")).status_code == 401
        for _slow_machine in range(ATTEMPTS):  # every few seconds one more is looked at
            if (again := await log_in(client, "ada", "wrong")).status_code == 429:
                break
        assert again.status_code == 429
        assert (await log_in(client)).status_code == 429  # nor is the right one looked at
        basic = await client.get(DATA[0], auth=("ada", "wrong"))
        assert basic.status_code == 429

    shown(tmp_path, story, access=RULES)


@pytest.mark.parametrize("route", ["/dashboard/login", "/dashboard/logout"])
def test_what_another_site_may_have_sent_is_refused(tmp_path: Path, route: str) -> None:
    with_users(tmp_path)

    async def story(server: Server, client: httpx.AsyncClient) -> None:
        body = {"user": "ada", "password": "a long word"}
        assert (await client.post(route, json=body)).status_code == 403
        elsewhere = {"origin": "https://elsewhere.example"}
        assert (await client.post(route, json=body, headers=WORD | elsewhere)).status_code == 403
        here = {"origin": str(client.base_url).rstrip("/")}
        assert (await client.post(route, json=body, headers=WORD | here)).status_code == 204

    shown(tmp_path, story, access=RULES)


def test_a_page_of_another_site_gets_no_live_feed(tmp_path: Path) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        assert await refused(server, origin="https://elsewhere.example") == 403
        async with looking(server, origin=str(client.base_url).rstrip("/")) as page:
            await page.until(lambda page: page.of("tick"))

    shown(tmp_path, story)


def test_this_machine_needs_no_password_but_its_own_name(tmp_path: Path) -> None:
    """A page whose name somebody had resolve to this machine asks in the name of whoever opened it."""

    async def story(server: Server, client: httpx.AsyncClient) -> None:
        port = server.addresses["http"][1]
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"):
            assert (await client.get(DATA[0], headers={"host": host})).status_code == 200
        for host in (f"elsewhere.example:{port}", "elsewhere.example", "127.0.0.1.elsewhere.example", "["):
            for nothing in (
                {},
                {"authorization": "Bearer"},
                {"authorization": "Basic Og=="},
            ):  # a page may send these, too
                assert (await client.get(DATA[0], headers={"host": host, **nothing})).status_code in {400, 401}

    shown(tmp_path, story)


def test_what_a_token_was_exchanged_for_holds_no_longer_than_the_token(tmp_path: Path) -> None:
    with_users(tmp_path)
    issuer = Issuer()

    async def story(server: Server, client: httpx.AsyncClient) -> None:
        now = server.broker.clock.now() / 1_000_000
        word = issuer.token("ada", exp=int(now) + 60, nbf=int(now) - 60, iat=int(now) - 60)
        answer = await log_in(client, word=word)
        assert answer.is_success
        (age,) = re.findall(r"max-age=(\d+)", answer.headers["set-cookie"].lower())
        assert 0 < int(age) <= 60 + 30  # its leeway included

    shown(tmp_path, story, access={**RULES, "jwt": issuer.settings(tmp_path)})


def test_scripts_may_use_basic(tmp_path: Path) -> None:
    with_users(tmp_path)

    async def story(server: Server, _: httpx.AsyncClient) -> None:
        async with asking(server, auth=("ada", "a long word")) as client:
            assert (await client.get(DATA[0])).status_code == 200
        async with asking(server, auth=("bob", "another word")) as client:
            assert (await client.get(DATA[0])).status_code == 403
        async with asking(server, auth=("ada", "wrong")) as client:
            assert (await client.get(DATA[0])).status_code == 401

    shown(tmp_path, story, access=RULES)


@pytest.mark.parametrize(
    "path",
    ["/dashboard/", "/dashboard/api/me", "/dashboard/api/world", "/dashboard/nothing.js"],
)
def test_every_answer_tells_the_browser_to_be_careful(tmp_path: Path, path: str) -> None:
    async def story(_: Server, client: httpx.AsyncClient) -> None:
        headers = (await client.get(path)).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == ("no-cache" if path == "/dashboard/" else "no-store")

    shown(tmp_path, story)


@pytest.mark.parametrize(
    "name", ["../application.py", "%2e%2e/application.py", "..%2fdoors.py", "index.html%00", "a.py"]
)
def test_nothing_but_the_page_is_served(tmp_path: Path, name: str) -> None:
    async def story(_: Server, client: httpx.AsyncClient) -> None:
        answer = await client.get(f"/dashboard/{name}")
        assert answer.status_code == 404
        assert "import" not in answer.text

    shown(tmp_path, story)


def test_a_page_that_has_not_changed_is_not_sent_again(tmp_path: Path) -> None:
    async def story(_: Server, client: httpx.AsyncClient) -> None:
        first = await client.get("/dashboard/")
        again = await client.get("/dashboard/", headers={"if-none-match": first.headers["etag"]})
        assert (first.status_code, again.status_code) == (200, 304)
        assert not again.content

    shown(tmp_path, story)


def test_large_bodies_and_too_many_viewers_are_refused(tmp_path: Path) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        body = msgspec.json.encode({"user": "ada", "password": "x" * 300_000})
        answer = await client.post(
            "/dashboard/login", content=body, headers=WORD | {"content-type": "application/json"}
        )
        assert answer.status_code == 413
        async with looking(server) as first, looking(server) as second:
            await first.until(lambda page: page.of("tick"))
            await second.until(lambda page: page.of("tick"))
            async with looking(server) as further:  # and says so itself: test_live_feed.py
                await further.connection.wait_closed()
                assert further.connection.close_code == 4429

    shown(tmp_path, story, dashboard={"viewers": 2})


def test_wrong_passwords_at_the_same_time_are_slowed_down_as_well(tmp_path: Path) -> None:
    with_users(tmp_path)

    async def story(server: Server, client: httpx.AsyncClient) -> None:
        answers = await asyncio.gather(*(log_in(client, "ada", f"wrong {number}") for number in range(4 * ATTEMPTS)))
        assert Counter(each.status_code for each in answers) == {401: ATTEMPTS, 429: 3 * ATTEMPTS}
        assert server.broker.access.statistics().passwords.verified == ATTEMPTS

    shown(tmp_path, story, access=RULES)


def test_right_passwords_at_the_same_time_are_no_failures(tmp_path: Path) -> None:
    with_users(tmp_path)

    async def story(_: Server, client: httpx.AsyncClient) -> None:
        for _round in range(3):
            answers = await asyncio.gather(*(log_in(client) for _ in range(ATTEMPTS)))
            assert {each.status_code for each in answers} == {204}

    shown(tmp_path, story, access=RULES)


def test_a_cookie_is_found_among_odd_ones_of_others(tmp_path: Path) -> None:
    with_users(tmp_path)

    async def story(_: Server, client: httpx.AsyncClient) -> None:
        await log_in(client)
        own = f"{COOKIE}={client.cookies[COOKIE]}"
        client.cookies.clear()
        for odd in ('prefs={"theme": "dark"}', "=;;", "a b=c d", "\x80=\xff"):
            for cookies in (f"{odd}; {own}", f"{own}; {odd}"):
                answer = await client.get(DATA[0], headers=[(b"cookie", cookies.encode("latin-1"))])
                assert answer.status_code == 200, cookies

    shown(tmp_path, story, access=RULES)


def test_nobody_logs_others_out_by_logging_in_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_users(tmp_path)
    most = MOST_LOGINS_OF_ONE + 5
    monkeypatch.setattr(doors, "MOST_LOGINS", most)

    async def story(_: Server, client: httpx.AsyncClient) -> None:
        await log_in(client)
        own = {"cookie": f"{COOKIE}={client.cookies[COOKIE]}"}
        for _login in range(most + 1):
            assert (await log_in(client, "bob", "another word")).status_code == 204
        client.cookies.clear()
        assert (await client.get(DATA[0], headers=own)).status_code == 200

    shown(tmp_path, story, access=RULES)


@pytest.mark.parametrize("ended", ["log-out", "removed", "removed, by basic", "password"])
def test_a_live_feed_ends_with_the_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended: str) -> None:
    with_users(tmp_path)
    monkeypatch.setattr(live, "AGAIN", 0.1)

    async def story(server: Server, client: httpx.AsyncClient) -> None:
        await log_in(client)
        basic = f"Basic {base64.b64encode(b'ada:a long word').decode()}"
        own = {"authorization": basic} if "basic" in ended else {"cookie": f"{COOKIE}={client.cookies[COOKIE]}"}
        async with looking(server, additional_headers=own) as page:
            await page.until(lambda page: len(page.of("tick")) > 1)
            if ended == "log-out":
                assert (await client.post("/dashboard/logout", headers=WORD)).status_code == 204
            elif ended == "password":
                add_user(tmp_path / "users", "ada", "a new word")
            else:
                remove_user(tmp_path / "users", "ada")
            with pytest.raises(ConnectionClosed):
                await page.until(lambda _: False)
            assert page.connection.close_code == live.LOGGED_OUT

    shown(tmp_path, story, access=RULES)
