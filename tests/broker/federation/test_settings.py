"""What a broker of a federation may be told, and what is refused with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.documents import ROOT, blocks

from nearcast.broker.federation.settings import FederationSettings
from nearcast.broker.settings import BrokerSettings, load
from nearcast.errors import InvalidSettings


def test_the_settings_shown_are_all_there_are_and_can_be_read(tmp_path: Path) -> None:
    ((_, text),) = blocks(ROOT / "docs" / "federation.md", "toml")
    (tmp_path / "broker.toml").write_text(text)
    settings = load(tmp_path / "broker.toml").federation
    assert settings.is_on
    shown = {line.split("=")[0].strip() for line in text.splitlines() if "=" in line}
    assert shown == set(FederationSettings.__struct_fields__)


def test_without_a_word_of_it_a_broker_is_alone() -> None:
    assert not BrokerSettings().federation.is_on


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"listen": "127.0.0.1:0"}, "secret"),
        ({"join": ("127.0.0.1",), "secret_file": Path("s")}, "HOST:PORT"),
        ({"join": ("127.0.0.1:0",), "secret_file": Path("s")}, "HOST:PORT"),
        ({"listen": "127.0.0.1:99999", "secret_file": Path("s")}, "HOST:PORT"),
        ({"name": "a b"}, "name of a broker"),
        ({"wanted_links": 5, "most_links": 4}, "wanted_links"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, object], problem: str) -> None:
    with pytest.raises(InvalidSettings, match=problem):
        FederationSettings(**given)  # type: ignore[arg-type]


def test_what_the_command_line_says_is_checked_as_well(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="secret"):
        BrokerSettings().changed(federation={"listen": "127.0.0.1:0"})
    changed = BrokerSettings().changed(federation={"join": ("h:1",), "secret_file": tmp_path / "s", "name": None})
    assert changed.federation.join == ("h:1",)
    assert changed.federation.where() == ("127.0.0.1", 0)


def test_a_secret_must_be_there_and_long_enough(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    settings = FederationSettings(listen="127.0.0.1:0", secret_file=file)
    with pytest.raises(InvalidSettings, match="cannot be read"):
        settings.secret()
    file.write_text("short\n")
    with pytest.raises(InvalidSettings, match="guessed"):
        settings.secret()
    file.write_text("a long one, which nobody guesses\n")
    assert settings.secret() == b"a long one, which nobody guesses"
