"""Letting clients in."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from nearcast.broker.access import Access, Peer, Principal
from nearcast.broker.access.users import add_user
from nearcast.broker.settings import AccessSettings, BrokerSettings, RuleSettings
from nearcast.errors import Denied, NotAuthenticated

HERE = Peer("127.0.0.1", 50_000)
THERE = Peer("203.0.113.7", 50_000, tls=True)


@pytest.fixture
def users(tmp_path: Path) -> Path:
    add_user(tmp_path / "users", "ada", "lovelace")
    return tmp_path


def let_in(access: Access, username: str | None, password: bytes | None, peer: Peer) -> Principal:
    return asyncio.run(access.authenticate("phone", username, password, peer))


@pytest.fixture
def access(users: Path) -> Iterator[Access]:
    made = Access(BrokerSettings(data=users))
    yield made
    made.close()


def test_a_user_comes_in_from_everywhere(access: Access) -> None:
    for peer in (HERE, THERE):
        principal = let_in(access, "ada", b"lovelace", peer)
        assert principal.user == "ada"
        assert principal.client_id == "phone"
        assert principal.peer == peer
        principal.check_plan()


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"])
def test_without_a_password_only_clients_of_this_machine_come_in(access: Access, address: str) -> None:
    assert let_in(access, None, None, Peer(address)).user is None
    assert let_in(access, "", b"", Peer(address)).user is None


@pytest.mark.parametrize(
    "address", ["203.0.113.7", "10.0.0.1", "::ffff:10.0.0.1", "2001:db8::1", "127.0.0.1.example", ""]
)
def test_without_a_password_clients_of_other_machines_do_not(access: Access, address: str) -> None:
    with pytest.raises(NotAuthenticated, match=r"access\.anonymous") as refusal:
        let_in(access, None, None, Peer(address))
    assert refusal.value.reason == 0x87


@pytest.mark.parametrize(
    ("username", "password"),
    [("ada", b"wrong"), ("bob", b"lovelace"), ("ada", None), (None, b"lovelace"), ("", b"lovelace"), ("ada", b"")],
)
def test_a_wrong_password_does_not_make_a_client_anonymous(
    access: Access, username: str | None, password: bytes | None
) -> None:
    with pytest.raises(NotAuthenticated, match=r"^wrong user name or password$") as refusal:
        let_in(access, username, password, HERE)
    assert refusal.value.reason == 0x86


def test_the_settings_say_from_where_anonymous_clients_come_in(users: Path) -> None:
    always = Access(BrokerSettings(data=users, access=AccessSettings(anonymous="always")))
    stranger = let_in(always, None, None, THERE)
    assert stranger.user is None
    assert stranger.may_publish("a")
    with pytest.raises(Denied, match="transitions"):
        stranger.check_plan()
    let_in(always, None, None, HERE).check_plan()
    always.close()
    never = Access(BrokerSettings(data=users, access=AccessSettings(anonymous="never")))
    with pytest.raises(NotAuthenticated, match="from nowhere"):
        let_in(never, None, None, HERE)
    never.close()


def test_a_certificate_names_its_user(access: Access) -> None:
    shown = Peer("203.0.113.7", tls=True, certificate_name="eve")
    assert let_in(access, None, None, shown).user == "eve"
    assert let_in(access, "eve", None, shown).user == "eve"
    with pytest.raises(NotAuthenticated, match="'eve'"):
        let_in(access, "ada", b"lovelace", shown)


def test_rules_hold_for_whoever_came_in(users: Path) -> None:
    rules = (
        RuleSettings(groups=("drivers",), publish=("car/%u/#",), subscribe=("traffic/#",)),
        RuleSettings(anonymous=True, subscribe=("public/#",)),
    )
    settings = BrokerSettings(data=users, access=AccessSettings(rules=rules, groups={"drivers": ("ada",)}))
    access = Access(settings)
    ada, nobody = let_in(access, "ada", b"lovelace", THERE), let_in(access, None, None, HERE)
    assert ada.may_publish("car/ada/position")
    assert not ada.may_subscribe("public/#")
    assert nobody.may_subscribe("public/#")
    assert not nobody.may_publish("public/a")
    access.close()


def test_statistics_tell_who_came_in(access: Access) -> None:
    let_in(access, "ada", b"lovelace", HERE)
    let_in(access, None, None, HERE)
    with pytest.raises(NotAuthenticated):
        let_in(access, None, None, THERE)
    statistics = access.statistics()
    assert (statistics.admitted, statistics.anonymous, statistics.refused, statistics.rules) == (2, 1, 1, 0)
    assert statistics.passwords.users == 1
