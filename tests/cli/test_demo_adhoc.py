"""``nearcast demo adhoc``: real processes spread events over UDP multicast, and exchange the mechanism while they do."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import msgspec
import pytest
from tests.cli.demo_processes import meeting_at
from tests.waiting import PATIENCE

from nearcast.cli.app import main
from nearcast.cli.demo.adhoc import street
from nearcast.cli.demo.adhoc.street import due_copies
from nearcast.cli.demo.adhoc.walker import VICINITY, Account, Order, Said, WalkerSettings

NEARCAST = str(Path(sys.executable).with_name("nearcast"))


def demo(*arguments: str, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*before, NEARCAST, "demo", "adhoc", *arguments], capture_output=True, text=True, check=False, timeout=400
    )


def test_ten_processes_exchange_the_mechanism_while_they_talk_and_nothing_is_lost_or_doubled() -> None:
    done = demo("--seconds", "3", "--then", "GOSSIP(p=1)", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    outcome: dict[str, Any] = json.loads(done.stdout)
    rows = outcome["rows"]
    assert len({row["pid"] for row in rows}) == 10
    assert [row["mechanism"] for row in rows] == ["GOSSIP(p=1)"] * 10
    assert sum(row["doubled"] for row in rows) == 0
    assert outcome["due"] == outcome["arrived"] > 50, "neighbours are always in range: everything comes"
    assert outcome["stray"] == 0
    for row in rows:
        assert row["heard"] >= row["delivered"] + row["suppressed"]
        assert row["forwarded"] <= row["delivered"], "no event is sent on twice, nor by who does not want it"
    assert sum(row["forwarded"] for row in rows) > 50


def test_a_table_shows_what_each_did() -> None:
    done = demo("--processes", "3", "--seconds", "2", "--first", "broadcast", "--then", "FLOODING")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split("  ")[0].strip() == "process"
    assert len([line for line in lines if line.strip().startswith("walker-")]) == 3
    assert "3 of 3 processes have changed from BROADCAST to FLOODING" in done.stdout
    assert "0 doubled" in done.stdout


def test_whoever_ends_it_leaves_neither_a_process_nor_a_folder_behind(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [NEARCAST, "demo", "adhoc", "--processes", "3", "--seconds", "100"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert process.stderr is not None
    where = process.stderr.readline().split(" meet at ")[1].split(":")[0]
    assert "all are there" in process.stderr.readline()
    assert len(walkers(where)) == 3
    process.terminate()
    _, complaints = process.communicate(timeout=PATIENCE)
    assert (process.returncode, complaints) == (130, "nearcast: interrupted\n")
    assert (walkers(where), list(tmp_path.iterdir())) == ([], [])


def test_a_process_ends_when_whoever_gave_the_orders_is_gone() -> None:
    """Killed, or its terminal was closed: then nobody reads the last answer, either."""
    settings = WalkerSettings(
        name="w",
        east=0.0,
        mechanism="FLOODING",
        radius=60.0,
        address="127.0.0.1",
        group="239.255.9.9",
        group_port=47_999,
        seed=1,
    )
    command = [sys.executable, "-m", "nearcast.cli.demo.adhoc.walker", msgspec.json.encode(settings).decode()]
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, **pipes) as child:
        try:
            ordered(child, None)
            for pipe in (child.stdin, child.stdout, child.stderr):
                assert pipe is not None
                pipe.close()
            child.wait(PATIENCE)
        finally:
            child.kill()


def walkers(group: str) -> list[str]:
    return meeting_at(group, "demo.adhoc.walker")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--then", "GOSIP"), "there is no ad hoc mechanism 'GOSIP'"),
        (("--first", "GOSSIP(p=2)"), "ad hoc mechanism GOSSIP: Expected `float` <= 1.0"),
        (("--first", "GOSSIP[p=2]"), "ad hoc mechanism: 'GOSSIP[p=2]' is not written NAME"),
        (("--address", "203.0.113.9"), "this machine has no such address"),
    ],
)
def test_mistakes_are_named_before_anything_is_started(
    arguments: tuple[str, ...], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "adhoc", *arguments]) == 1
    printed = capsys.readouterr()
    assert (complaint in printed.err, printed.err.count("\n"), printed.out) == (True, 1, "")


def test_where_multicast_is_not_heard_that_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def deaf(group: tuple[str, int], _interface: str) -> socket.socket:
        opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        opened.setblocking(False)
        opened.bind(("127.0.0.1", group[1]))
        return opened

    monkeypatch.setattr(street, "group_socket", deaf)
    monkeypatch.setattr(street, "ECHO", 0.1)
    assert main(["demo", "adhoc"]) == 1
    assert "what is multicast on 127.0.0.1 is not heard on this machine; allow multicast" in capsys.readouterr().err


def test_an_event_is_due_to_who_was_near_when_it_happened() -> None:
    degree = 111_194.93
    east = (VICINITY - 5) / degree
    here = Said("ada-1", 2_000, 0.0, 0.0)
    accounts = [
        Account(name="ada", said=(here,), track=((0, 0.0, 0.0),)),
        Account(name="bob", track=((0, east, 0.0), (3_000, 1.0, 0.0))),  # left afterwards
        Account(name="cleo", track=((0, 1.0, 0.0), (3_000, east, 0.0))),  # came afterwards
        Account(name="dan", track=((0, VICINITY / degree, 0.0),)),  # on the line
    ]
    assert due_copies(accounts) == ({("ada-1", "bob")}, {("ada-1", "dan")})


# In network namespaces: every process on a machine of its own, as far as it can tell


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=PATIENCE)


@contextmanager
def namespaces(count: int) -> Iterator[list[str]]:
    """So many, with an address each, on one switch in a namespace of its own."""
    switch = f"nc{os.getpid()}sw"
    names = [f"nc{os.getpid()}h{number}" for number in range(count)]
    try:
        try:
            ip("netns", "add", switch)
            ip("-n", switch, "link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"network namespaces cannot be made here: {error}")
        ip("-n", switch, "link", "set", "br0", "up")
        for number, name in enumerate(names):
            ip("netns", "add", name)
            ip("-n", name, "link", "add", "eth0", "type", "veth", "peer", "name", f"p{number}", "netns", switch)
            ip("-n", switch, "link", "set", f"p{number}", "master", "br0", "up")
            ip("-n", name, "address", "add", f"10.77.0.{number + 1}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
        yield names
    finally:
        for name in [*names, switch]:
            with suppress(OSError, subprocess.CalledProcessError):
                ip("netns", "delete", name)


def ordered(child: subprocess.Popen[bytes], order: Order | None) -> Account:
    """Its answer; none: what it says first."""
    stdin, stdout = child.stdin, child.stdout
    assert stdin is not None
    assert stdout is not None
    if order is not None:
        say(stdin, order)
    return msgspec.json.decode(stdout.readline(), type=Account)


def say(stdin: IO[bytes] | None, order: Order) -> None:
    assert stdin is not None
    stdin.write(msgspec.json.encode(order) + b"\n")
    stdin.flush()


def test_between_network_namespaces_events_take_the_way_over_the_one_in_the_middle() -> None:
    with namespaces(3) as names, ExitStack() as stack:
        children: list[subprocess.Popen[bytes]] = []
        for number, name in enumerate(names):
            settings = WalkerSettings(
                name=f"walker-{number}",
                east=30.0 * number,
                mechanism="FLOODING",
                radius=46.0,  # the first and the last are 48 m apart at least
                address=f"10.77.0.{number + 1}",
                group="239.255.7.7",
                group_port=47_867,
                seed=number,
            )
            command = [sys.executable, "-m", "nearcast.cli.demo.adhoc.walker", msgspec.json.encode(settings).decode()]
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            child = stack.enter_context(subprocess.Popen(["ip", "netns", "exec", name, *command], **pipes))
            stack.callback(child.kill)
            children.append(child)
        for child in children:
            ordered(child, None)
        for child in children:
            say(child.stdin, Order(do="talk"))

        def counts() -> list[Account]:
            return [ordered(child, Order(do="count")) for child in children]

        def until(enough: Callable[[list[Account]], bool]) -> None:
            deadline = time.monotonic() + PATIENCE
            while not enough(found := counts()):
                assert time.monotonic() < deadline, found

        until(lambda all_of_them: all(each.delivered >= 4 for each in all_of_them))
        say(children[0].stdin, Order(do="initiate", mechanism="GOSSIP(p=1)"))
        then = counts()[2].delivered
        until(lambda all_of_them: all_of_them[2].delivered >= then + 8)
        for child in children:
            say(child.stdin, Order(do="hush"))
        until(lambda ended: all(each.delivered == sum(it.published for it in ended) - each.published for each in ended))
        accounts = [ordered(child, Order(do="end")) for child in children]
    assert [account.mechanism for account in accounts] == ["GOSSIP(p=1)"] * 3
    due, close = due_copies(accounts)
    got = {(name, account.name) for account in accounts for name in account.got}
    assert not close
    assert got == due
    assert sum(account.doubled for account in accounts) == 0
    assert accounts[1].forwarded > 0
    # What the ends heard of each other, they heard over the middle, and once more when nobody needed it.
    assert accounts[0].forwarded <= accounts[0].delivered
