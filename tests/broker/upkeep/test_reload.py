"""New settings for a broker that runs: clients stay connected and go on receiving, and it is said what holds from now on."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
from mqtt5 import PubAckPacket, PubAckReasonCode, PublishPacket, SubAckReasonCode
from tests.broker.access.minting import AUDIENCE, ISSUER, Issuer
from tests.broker.talker import Talker, run, talking
from tests.served import ServedBroker, served
from tests.waiting import until

from nearcast.broker.access.certificates import fingerprint, make_certificate
from nearcast.broker.access.users import add_user

PASSWORD = "".join(sorted("correct horse"))
LIMITS = "[limits]\nsubscriptions_per_client = {}\nloopback = true\npositions_per_second = {}\nburst = '1s'\n"


def rule(name: str, **values: Any) -> str:
    lines = [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    return "\n".join((f'[[access.rule]]\nname = "{name}"', *lines, ""))


OPERATOR = rule("operator", users=["operator"], publish=["#"], subscribe=["#"], plans=True)
READER = rule("reader", users=["ada"], subscribe=["news/#", "secrets/#", "$nearcast/problems"])
LESS = rule("reader", users=["ada"], subscribe=["news/#", "$nearcast/problems"])
WRITER = rule("writer", users=["bob"], publish=["news/#", "secrets/#"])
RULES = OPERATOR + READER + WRITER


@contextlib.contextmanager
def broker_with(folder: Path, settings: str) -> Any:
    for user in ("ada", "bob", "operator"):
        add_user(folder / "data" / "users", user, PASSWORD)
    with served(folder, settings) as broker:
        yield broker


@contextlib.asynccontextmanager
async def user(broker: ServedBroker, name: str, client: str = "", **parts: Any) -> AsyncIterator[Talker]:
    async with talking(broker, client or name, username=name, password=PASSWORD.encode(), **parts) as talker:
        yield talker


async def reload(broker: ServedBroker, settings: str | None = None, who: str = "operator") -> httpx.Response:
    if settings is not None:
        broker._settings.write_text(settings)
    async with httpx.AsyncClient(auth=(who, PASSWORD), trust_env=False) as http:
        return await http.post(f"{broker.http}/reload", timeout=60)


def said(broker: ServedBroker, text: str) -> int:
    return sum(text in line for line in broker.said)


def test_clients_stay_connected_and_receive_everything_through_reloads_and_lose_only_what_was_withdrawn(
    tmp_path: Path,
) -> None:
    async def story(broker: ServedBroker) -> None:
        got: list[tuple[str, int]] = []
        ended = asyncio.Event()

        async def read(ada: Talker) -> None:
            while not ended.is_set():
                heard = await ada.next(PublishPacket)
                if heard.topic == "$nearcast/problems":
                    got.append((heard.payload.decode(), -1))
                    continue
                got.append((heard.topic, int(heard.payload)))
                ada.send(PubAckPacket(heard.packet_id or 0))

        async with user(broker, "ada") as ada, user(broker, "bob") as bob:
            for topic in ("news/#", "secrets/#", "$nearcast/problems"):
                assert (await ada.subscribe(topic, 1)).reason_codes == [SubAckReasonCode.GRANTED_QOS_AT_LEAST_ONCE]
            reading = asyncio.create_task(read(ada))
            number = 0

            async def publish(times: int) -> None:
                nonlocal number
                for _ in range(times):
                    for topic in ("news/a", "secrets/a"):
                        await bob.tell(topic, b"%d" % number)
                    number += 1

            for turn in range(4):  # the same rules, other values: nobody notices
                publishing = asyncio.create_task(publish(50))
                broker.reload(RULES + LIMITS.format(100 + turn, 50))
                await publishing
                await until(lambda turn=turn: said(broker, "settings were reloaded") == turn + 1)  # type: ignore[misc]
            before = number
            broker.reload(OPERATOR + LESS + WRITER)
            await until(lambda: said(broker, "subscriptions have ended") == 1)
            await publish(20)
            await until(lambda: ("news/a", number - 1) in got, reading)
            assert [each for topic, each in got if topic == "news/a"] == list(range(number))
            assert [each for topic, each in got if topic == "secrets/a"] == list(range(before))
            problems = [text for text, each in got if each == -1]
            assert problems == ["the subscription to 'secrets/#' has ended: the rules do not allow it any more"]
            ended.set()
            await bob.tell("news/a", b"0")  # so that the reader sees the end
            await reading
            assert (await ada.subscribe("secrets/#")).reason_codes[0] == SubAckReasonCode.NOT_AUTHORIZED

            broker.reload(OPERATOR + LESS + rule("writer", users=["bob"], publish=["other"]))
            await until(lambda: said(broker, "settings were reloaded") == 6)
            assert (await bob.tell("news/a", b"1")).reason_code == PubAckReasonCode.NOT_AUTHORIZED
            broker.reload(RULES)
            await until(lambda: said(broker, "settings were reloaded") == 7)
            await bob.tell("secrets/a", b"9")
            await bob.tell("news/a", b"9")
            assert (await ada.heard()).topic == "news/a", "what was withdrawn does not come back by itself"

    with broker_with(tmp_path, RULES) as broker:
        run(story(broker))
    assert not said(broker, "Traceback")


def test_who_is_away_loses_the_subscription_too_and_still_gets_what_waited(tmp_path: Path) -> None:
    durable: dict[str, Any] = {"clean_start": False, "session_expiry_interval": 3600}

    async def story(broker: ServedBroker) -> None:
        async with user(broker, "ada", **durable) as ada:
            await ada.subscribe("secrets/#", 1)
            await ada.subscribe("news/#", 1)
        async with user(broker, "bob") as bob:
            await bob.tell("secrets/a", b"before")
            assert (await reload(broker, OPERATOR + LESS + WRITER)).json()["withdrawn"] == 1
            await bob.tell("secrets/a", b"after")
            await bob.tell("news/a", b"after")
        await asyncio.to_thread(broker.kill)
        await asyncio.to_thread(broker.start)
        async with user(broker, "ada", **durable) as ada:
            assert [((await ada.heard()).topic) for _ in range(2)] == ["secrets/a", "news/a"]
            await ada.nothing()

    with broker_with(tmp_path, RULES) as broker:
        run(story(broker))


WRONG = (
    ("[limits]\nsubscripions_per_client = 3\n", "subscriptions_per_client"),
    ("[access]\nanonymous = 'sometimes'\n", "anonymous"),
    ("not toml at all", "settings.toml"),
    (rule("nobody", publish=["#"]), "for nobody"),
    ("[access]\npasswords = 'damaged'\n", "line 1"),
    ("[tls]\ncertificate = 'nowhere.pem'\nkey = 'nowhere.pem'\n", "nowhere.pem"),
    ("[[schemes.rule]]\nwhen = 'moon'\nabove = 1.0\nscheme = {kind = 'RADIAL'}\n", "moon"),
)


def test_wrong_settings_change_nothing_and_say_why(tmp_path: Path) -> None:
    async def story(broker: ServedBroker) -> None:
        damaged = tmp_path / "damaged"
        damaged.write_text("ada:this is no hash\n")
        async with user(broker, "ada") as ada, user(broker, "bob") as bob:
            await ada.subscribe("secrets/#")
            for number, (wrong, why) in enumerate(WRONG, 1):
                answer = await reload(broker, LESS + wrong.replace("damaged", str(damaged)))
                assert answer.status_code == 400, answer.text
                assert why in answer.text
                broker.reload()
                await until(lambda number=number: said(broker, "nothing has changed") == 2 * number)  # type: ignore[misc]
                lines = [each for each in broker.said if "nothing has changed" in each][-2:]
                # Logs end at the first quotation: what is quoted may be somebody's name.
                assert all(".toml" in line or str(damaged) in line or "..." in line or why in line for line in lines), (
                    lines
                )
                await bob.tell("secrets/a", b"still")
                assert (await ada.heard()).payload == b"still"

    with broker_with(tmp_path, RULES + "[listen]\ntls_port = 'any'\n") as broker:
        run(story(broker))


def test_it_says_which_keys_hold_and_which_need_a_restart_and_whom_it_obeys(tmp_path: Path) -> None:
    async def story(broker: ServedBroker) -> None:
        assert (await reload(broker)).json() == {
            "applied": [], "restart_needed": [], "certificates": [], "withdrawn": 0
        }  # fmt: skip
        wanted = RULES + LIMITS.format(1, 50) + "packet = '2 MiB'\n[session]\ninflight = 7\n[log]\nlevel = 'debug'\n"
        pending = ["limits.packet", "session.inflight"]
        answer = (await reload(broker, wanted)).json()
        assert set(answer["applied"]) == {
            "limits.subscriptions_per_client",
            "limits.loopback",
            "limits.positions_per_second",
            "limits.burst",
            "log.level",
        }
        assert answer["restart_needed"] == pending
        again = (await reload(broker)).json()
        assert (again["applied"], again["restart_needed"]) == ([], pending), "still not in effect, and still said"
        await until(lambda: said(broker, "only after a restart: limits.packet, session.inflight") == 2)
        assert (await reload(broker, who="bob")).status_code == 403
        async with httpx.AsyncClient(trust_env=False, auth=("bob", "wrong")) as http:
            assert (await http.post(f"{broker.http}/reload")).status_code == 401

    with broker_with(tmp_path, RULES) as broker:
        run(story(broker))


def test_limits_hold_for_those_who_are_connected(tmp_path: Path) -> None:
    async def story(broker: ServedBroker) -> None:
        async with talking(broker, "walker") as walker:
            await walker.subscribe("a")
            for _ in range(20):
                assert (await walker.tell("$nearcast/position", b"1,1")).reason_code == PubAckReasonCode.SUCCESS
            await reload_openly(broker, LIMITS.format(1, 2))
            assert (await walker.subscribe("b")).reason_codes[0] == SubAckReasonCode.QUOTA_EXCEEDED
            codes = [(await walker.tell("$nearcast/position", b"1,1")).reason_code for _ in range(20)]
            assert PubAckReasonCode.QUOTA_EXCEEDED in codes
            await reload_openly(broker, "")
            assert (await walker.subscribe("b")).reason_codes[0] == SubAckReasonCode.GRANTED_QOS_AT_MOST_ONCE
            assert (await walker.tell("$nearcast/position", b"1,1")).reason_code == PubAckReasonCode.SUCCESS

    with served(tmp_path) as broker:
        run(story(broker))


async def reload_openly(broker: ServedBroker, settings: str) -> None:
    broker._settings.write_text(settings)
    async with httpx.AsyncClient(trust_env=False) as http:
        assert (await http.post(f"{broker.http}/reload", timeout=60)).status_code == 200


def test_new_connections_are_shown_the_new_certificate_and_old_ones_go_on(tmp_path: Path) -> None:
    mine, key = tmp_path / "mine.pem", tmp_path / "mine-key.pem"
    make_certificate(mine, key)
    settings = f"[listen]\ntls_port = 'any'\nhttp_tls = true\n[tls]\ncertificate = '{mine}'\nkey = '{key}'\n"

    def shown(address: tuple[str, int]) -> str:
        import hashlib

        pem = ssl.get_server_certificate(address)
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest()

    def plain(path: Path) -> str:
        return fingerprint(path).replace(":", "").lower()

    async def story(broker: ServedBroker) -> None:
        first = plain(mine)
        trusting = ssl.create_default_context(cafile=str(mine))
        talker = Talker(*await asyncio.open_connection(*broker.addresses["mqtts"], ssl=trusting), 5)
        await talker.connect("old")
        await talker.subscribe("a", 1)
        ports = [broker.addresses["mqtts"], broker.addresses["https"]]
        for address in ports:
            assert await asyncio.to_thread(shown, address) == first
        make_certificate(mine, key)  # renewed, under the same names: nothing in the file has changed
        assert plain(mine) != first
        broker.reload()
        await until(lambda: said(broker, "settings were reloaded") == 1)
        for address in ports:
            assert await asyncio.to_thread(shown, address) == plain(mine)
        talker.publish("a", b"on the old connection")
        assert (await talker.heard()).payload == b"on the old connection"
        second = plain(mine)
        key.write_text("damaged")
        broker.reload()
        await until(lambda: said(broker, "nothing has changed") == 1)
        for address in ports:
            assert await asyncio.to_thread(shown, address) == second
        talker.close()

    with served(tmp_path, settings) as broker:
        run(story(broker))


def test_what_the_groups_of_a_token_allow_outlives_restart_and_reload(tmp_path: Path) -> None:
    """Nobody remembers the groups of who is away after a restart: judged are they when they come back, with their token."""
    issuer = Issuer()
    keys = tmp_path / "issuer.pem"
    keys.write_bytes(issuer.public)
    token = issuer.token("ada", exp=int(time.time()) + 3600, groups=["readers"])
    before = (
        f"[access.jwt]\nkeys = '{keys}'\nalgorithms = ['EdDSA']\nissuer = '{ISSUER}'\naudience = '{AUDIENCE}'\ngroups_claim = 'groups'\n"
        "[access.groups]\nreaders = []\n" + OPERATOR + rule("readers", groups=["readers"], subscribe=["news/#"])
    )
    returning: dict[str, Any] = {
        "clean_start": False, "session_expiry_interval": 3600, "username": "ada", "password": token.encode()
    }  # fmt: skip

    async def story(broker: ServedBroker) -> None:
        async with talking(broker, "ada", **returning) as ada:
            assert (await ada.subscribe("news/#", 1)).reason_codes == [SubAckReasonCode.GRANTED_QOS_AT_LEAST_ONCE]
            assert (await reload(broker, before + LIMITS.format(7, 7))).json()["withdrawn"] == 0, "she is there"
        assert (await reload(broker, before)).json()["withdrawn"] == 0, "she has just left"
        await asyncio.to_thread(broker.kill)
        await asyncio.to_thread(broker.start)
        assert (await reload(broker, before + LIMITS.format(8, 8))).json()["withdrawn"] == 0
        async with user(broker, "operator") as operator:
            await operator.tell("news/a", b"still")
        async with talking(broker, "ada", **returning) as ada:
            assert (await ada.heard()).payload == b"still"
            without = before.replace('subscribe = ["news/#"]', 'subscribe = ["other"]')
            assert (await reload(broker, without)).json()["withdrawn"] == 1

    with broker_with(tmp_path, before) as broker:
        run(story(broker))
