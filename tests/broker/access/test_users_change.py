"""Who has another password, or none any more, is out within a second or two; everybody else stays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from mqtt5 import ConnAckPacket, ConnectPacket, DisconnectPacket, DisconnectReasonCode
from tests.broker.talker import Talker, broker

from nearcast.broker.access.users import add_user, read_users, remove_user, revoke_user
from nearcast.broker.server import Server
from nearcast.errors import UnknownName

OLD, NEW = "an old password", "a new password"


async def connected(
    server: Server, client: str, user: str | None, password: str = OLD, **parts: object
) -> tuple[Talker, int]:
    talker = await Talker.open(server)
    login = {} if user is None else {"username": user, "password": password.encode()}
    talker.send(ConnectPacket(client, clean_start=False, session_expiry_interval=100, **login, **parts))  # type: ignore[arg-type]
    return talker, int((await talker.next(ConnAckPacket)).reason_code)


@pytest.mark.parametrize(
    ("change", "old", "new"),
    [
        (lambda path: add_user(path, "ada", NEW, existing=True), False, True),
        (lambda path: revoke_user(path, "ada"), False, False),
        (lambda path: remove_user(path, "ada"), False, False),
    ],
    ids=["rotate", "revoke", "remove"],
)
def test_a_change_ends_what_was_opened_with_what_holds_no_more(
    tmp_path: Path, change: Callable[[Path], object], old: bool, new: bool
) -> None:
    users = tmp_path / "users"

    async def scenario(server: Server) -> None:
        ada, _ = await connected(server, "phone", "ada")
        await ada.subscribe("news/#", 1)
        bob, _ = await connected(server, "other", "bob")
        nobody, _ = await connected(server, "anonymous", None)
        change(users)
        assert (await ada.next(DisconnectPacket)).reason_code == DisconnectReasonCode.NOT_AUTHORIZED
        await ada.closed()
        for password, works in ((OLD, old), (NEW, new)):
            _, code = await connected(server, "phone", "ada", password)
            assert (code < 0x80) == works
        assert "phone" in server.broker.sessions.all, "its session waits"
        await bob.tell("news/x", b"still here")
        await nobody.tell("news/x", b"still here")
        add_user(users, "ada", OLD)
        back, code = await connected(server, "phone", "ada")
        assert code == 0
        assert {(await back.heard()).payload for _ in range(2)} == {b"still here"}

    add_user(users, "ada", OLD)
    add_user(users, "bob", OLD)
    broker(tmp_path, scenario)


def test_somebody_who_was_never_there_cannot_be_given_another_password(tmp_path: Path) -> None:
    users = tmp_path / "users"
    add_user(users, "bob", OLD)
    with pytest.raises(UnknownName, match="no user 'ada'"):
        add_user(users, "ada", NEW, existing=True)
    assert revoke_user(users, "bob")
    assert not revoke_user(users, "of a certificate"[:2]), "it may be known by a certificate"
    assert read_users(users) == {"bob": "revoked", "of": "revoked"}


def test_the_word_for_the_revoked_is_no_password(tmp_path: Path) -> None:
    users = tmp_path / "users"
    add_user(users, "ada", OLD)
    revoke_user(users, "ada")

    async def scenario(server: Server) -> None:
        for password in ("revoked", "", OLD):
            _, code = await connected(server, "phone", "ada", password)
            assert code >= 0x80
        assert server.broker.access.stamp("ada") is None

    broker(tmp_path, scenario)
