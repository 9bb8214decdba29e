"""Who is who is known in one place, and can be forgotten there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.errors import JournalFailed
from nearcast.journal import identities as module
from nearcast.journal.identities import Identities


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "identities.sqlite"


@pytest.fixture
def identities(path: Path) -> Iterator[Identities]:
    with closing(Identities(path)) as opened:
        yield opened


@given(st.lists(st.tuples(st.sampled_from(["of", "erase", "reopen"]), st.sampled_from(["ada", "bob", "eve", ""]))))
def test_it_behaves_like_a_dict_that_survives_reopening_and_never_gives_an_identity_twice(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str]]
) -> None:
    path = tmp_path_factory.mktemp("identities") / "identities.sqlite"
    it = Identities(path)
    model: dict[str, str] = {}
    given_once: set[str] = set()
    for step, client in steps:
        if step == "of":
            virtual = it.of(client)
            assert (virtual in given_once) == (client in model)
            assert model.setdefault(client, virtual) == virtual
            given_once.add(virtual)
        elif step == "erase":
            assert it.erase(client) == (model.pop(client, None) is not None)
        else:
            it.close()
            it = Identities(path)
    known = {virtual: client for client, virtual in model.items()}
    assert {virtual: it.who(virtual) for virtual in given_once} == {each: known.get(each) for each in given_once}
    assert it.statistics().identities == len(model)
    it.close()


def test_an_identity_says_nothing_about_the_client_and_cannot_be_guessed(identities: Identities) -> None:
    virtual = identities.of("ada")
    assert len(virtual) == 22  # 128 bits, six in a letter
    assert "ada" not in virtual


def test_an_identity_survives_the_death_of_the_process(path: Path) -> None:
    program = (
        "import os, sys, signal; from pathlib import Path; from nearcast.journal.identities import Identities\n"
        "print(Identities(Path(sys.argv[1])).of('ada'), flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    child = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=False)
    with closing(Identities(path)) as it:
        assert it.of("ada") == child.stdout.strip()
        assert it.who(child.stdout.strip()) == "ada"


def test_who_is_erased_leaves_no_trace_in_the_files(path: Path, identities: Identities) -> None:
    virtual = identities.of("somebody@example.org")
    identities.of("ada")
    assert identities.erase("somebody@example.org")
    stored = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert b"ada" in stored
    assert b"somebody" not in stored
    assert virtual.encode() not in stored


def test_only_the_owner_may_read_the_file(path: Path, identities: Identities) -> None:
    identities.of("ada")
    assert {file.stat().st_mode & 0o077 for file in path.parent.iterdir()} == {0}


def test_memory_is_bounded_and_what_is_not_in_it_comes_from_the_file(
    identities: Identities, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_REMEMBERED", 10)
    first = [identities.of(f"client {number}") for number in range(50)]
    assert len(identities._remembered) <= 10
    assert [identities.of(f"client {number}") for number in range(50)] == first


def test_a_damaged_file_is_explained(path: Path) -> None:
    path.write_bytes(b"nonsense" * 1_000)
    with pytest.raises(JournalFailed, match="damaged"):
        Identities(path)
