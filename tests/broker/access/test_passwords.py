"""The file of users, and logins: right, wrong, many at once, again."""

import asyncio
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import argon2
import pytest

from nearcast.broker.access import passwords as module
from nearcast.broker.access.passwords import SERVER_BUSY, Passwords
from nearcast.broker.access.users import HASHER, LONGEST_PASSWORD, add_user, read_users, remove_user, user_names
from nearcast.errors import InvalidSettings, NotAuthenticated, UnknownName


@pytest.fixture
def path(tmp_path: Path) -> Path:
    users = tmp_path / "data" / "users"
    add_user(users, "ada", "lovelace")
    return users


def verify(passwords: Passwords, user: str, password: str) -> bool:
    return asyncio.run(passwords.verify(user, password.encode()))


def test_users_are_added_changed_and_removed(path: Path) -> None:
    assert add_user(path, "bob", "1")
    assert not add_user(path, "bob", "2"), "that was a change"
    assert user_names(path) == ("ada", "bob")
    remove_user(path, "ada")
    assert user_names(path) == ("bob",)
    with pytest.raises(UnknownName, match="no user 'ada'"):
        remove_user(path, "ada")


def test_the_file_is_for_its_owner_only_and_holds_no_password(path: Path) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "lovelace" not in path.read_text()
    assert read_users(path)["ada"].startswith("$argon2id$")


def test_nothing_is_left_behind_and_nothing_lost_when_writing_fails(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, text = sorted(path.parent.iterdir()), path.read_text()

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        add_user(path, "bob", "1")
    assert path.read_text() == text
    assert sorted(path.parent.iterdir()) == before


def test_two_who_add_users_at_once_lose_none(path: Path) -> None:
    names = [f"user-{number}" for number in range(12)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: add_user(path, name, "x"), names))
    assert user_names(path) == tuple(sorted([*names, "ada"]))


@pytest.mark.parametrize("name", ["", "a b", "a:b", "a/b", "+", "a#", "$SYS", "*", "%u", "a\n", "x" * 129])
def test_names_that_would_mean_something_else_are_refused(path: Path, name: str) -> None:
    with pytest.raises(InvalidSettings, match="cannot be a user name"):
        add_user(path, name, "secret")


@pytest.mark.parametrize("password", ["", "x" * (LONGEST_PASSWORD + 1)])
def test_passwords_have_a_length(path: Path, password: str) -> None:
    with pytest.raises(InvalidSettings, match="a password has"):
        add_user(path, "bob", password)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("bob", "line 2: user 'bob' has no argon2 hash"),
        ("bob:secret", "line 2: user 'bob' has no argon2 hash"),
        ("a b:secret", "line 2: user 'a b' has a name that cannot be"),
        ("bob:$argon2id$v=19$m=4194304,t=2,p=1$c29tZXNhbHQ$c29tZWhhc2hzb21laGFzaA", "takes too much memory"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(path: Path, line: str, problem: str) -> None:
    path.write_text(f"{path.read_text()}{line}\n")
    with pytest.raises(InvalidSettings, match=problem.replace("$", r"\$")):
        Passwords(path)


def test_a_user_is_there_once(path: Path) -> None:
    path.write_text(path.read_text() * 2)
    with pytest.raises(InvalidSettings, match="is there twice"):
        read_users(path)


def test_the_right_password_is_right_and_every_other_is_wrong(path: Path) -> None:
    passwords = Passwords(path)
    assert verify(passwords, "ada", "lovelace")
    for user, password in (("ada", "Lovelace"), ("ada", ""), ("bob", "lovelace"), ("", ""), ("ada", "x" * 60_000)):
        assert not verify(passwords, user, password)
    assert passwords.statistics().refused == 5
    passwords.close()


def test_without_a_file_nobody_is_known(tmp_path: Path) -> None:
    passwords = Passwords(tmp_path / "none")
    assert not verify(passwords, "ada", "lovelace")
    passwords.close()


def test_unknown_users_cost_the_same_work(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verified: list[str] = []
    real = module._verify

    def watched(stored: str, password: bytes) -> bool:
        verified.append(stored)
        return real(stored, password)

    monkeypatch.setattr(module, "_verify", watched)
    passwords = Passwords(path)
    assert not verify(passwords, "ada", "wrong")
    assert not verify(passwords, "nobody", "wrong")
    known, unknown = map(argon2.extract_parameters, verified)
    assert known == unknown
    passwords.close()


def test_a_client_that_comes_back_is_recognised_without_work(path: Path) -> None:
    passwords = Passwords(path)
    assert all(verify(passwords, "ada", "lovelace") for _ in range(100))
    assert passwords.statistics().verified == 1
    assert passwords.statistics().recognised == 99
    assert not verify(passwords, "ada", "lovelacE")
    assert not verify(passwords, "adal", "ovelace")
    passwords.close()


def test_a_changed_or_removed_user_is_no_longer_recognised(path: Path) -> None:
    passwords = Passwords(path)
    assert verify(passwords, "ada", "lovelace")
    add_user(path, "ada", "byron")
    assert not verify(passwords, "ada", "lovelace")
    assert verify(passwords, "ada", "byron")
    remove_user(path, "ada")
    assert not verify(passwords, "ada", "byron")
    passwords.close()


def test_a_slip_in_the_file_does_not_lock_everybody_out(path: Path) -> None:
    passwords = Passwords(path)
    path.write_text("ada\n")
    assert verify(passwords, "ada", "lovelace")
    assert passwords.statistics().unreadable == 1
    passwords.close()


def test_what_is_recognised_is_bounded(path: Path) -> None:
    names = [f"user-{number}" for number in range(6)]
    for name in names:
        add_user(path, name, "x")
    passwords = Passwords(path, remembered=4)
    assert all(verify(passwords, name, "x") for name in names)
    assert passwords.statistics().remembered == 4
    assert verify(passwords, names[-1], "x")
    assert passwords.statistics().verified == 6
    assert verify(passwords, names[0], "x"), "forgotten, but still right"
    assert passwords.statistics().verified == 7
    passwords.close()


def test_a_flood_of_logins_is_turned_away_and_the_loop_goes_on(path: Path) -> None:
    passwords = Passwords(path, threads=1, waiting=4)

    async def flood() -> tuple[list[bool | BaseException], int]:
        logins = asyncio.gather(*(passwords.verify("ada", b"wrong") for _ in range(50)), return_exceptions=True)
        turns = 0
        while not logins.done():  # the loop turns while the threads compute
            turns += 1
            await asyncio.sleep(0)
        return await logins, turns

    answers, turns = asyncio.run(asyncio.wait_for(flood(), 30))
    busy = [answer for answer in answers if isinstance(answer, NotAuthenticated)]
    assert answers.count(False) == 4
    assert len(busy) == 46
    assert all(answer.reason == SERVER_BUSY for answer in busy)
    assert turns > 100
    assert passwords.statistics().turned_away == 46
    assert passwords.statistics().waiting == 0
    passwords.close()


def test_a_login_that_is_given_up_makes_room(path: Path) -> None:
    passwords = Passwords(path, threads=1, waiting=2)

    async def give_up() -> bool:
        logins = [asyncio.ensure_future(passwords.verify("ada", b"wrong")) for _ in range(2)]
        await asyncio.sleep(0)
        for login in logins:
            login.cancel()
        await asyncio.gather(*logins, return_exceptions=True)
        return await passwords.verify("ada", b"lovelace")

    assert asyncio.run(asyncio.wait_for(give_up(), 30))
    passwords.close()


def test_hashes_take_the_memory_that_is_planned_for() -> None:
    assert argon2.extract_parameters(HASHER.hash("x")).memory_cost == 19 * 1024
