"""Settings: safe without a file, refused with the key where a file is wrong or would open the broker by accident."""

import contextlib
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.broker.access.rules import Rules
from nearcast.broker.settings import BrokerSettings, Listener, ListenSettings, TlsSettings, is_loopback, load, port_in
from nearcast.errors import InvalidInput, InvalidSettings
from nearcast.settings_files import Duration, Size
from nearcast.transition.specification import MechanismSpec

EVERYWHERE = "0.0.0.0"  # noqa: S104 - that it is refused is the point
DOCUMENT = Path(__file__).parents[2] / "docs" / "security.md"


def read(folder: Path, text: str) -> BrokerSettings:
    file = folder / "broker.toml"
    file.write_text(text)
    return load(file)


def problem(folder: Path, text: str) -> str:
    with pytest.raises(InvalidSettings) as refusal:
        read(folder, text)
    lines = str(refusal.value).splitlines()
    assert all(line.startswith(f"{folder / 'broker.toml'}: ") for line in lines)
    return "\n".join(line.removeprefix(f"{folder / 'broker.toml'}: ") for line in lines)


def test_without_a_file_only_this_machine_can_connect() -> None:
    settings = BrokerSettings()
    assert settings.listen.listeners() == (
        Listener("mqtt", "127.0.0.1", 1883, tls=False),
        Listener("http", "127.0.0.1", 8080, tls=False),
    )
    assert settings.access.anonymous == "loopback"


def test_an_empty_file_says_nothing_but_where_paths_begin(tmp_path: Path) -> None:
    assert read(tmp_path, "") == BrokerSettings()


def test_units_are_read_and_paths_are_meant_from_where_the_file_is(tmp_path: Path) -> None:
    settings = read(
        tmp_path,
        """
        data = "kept"
        [session]
        max_expiry = "1h30m"
        queue_bytes = "64 KiB"
        [journal]
        lake = "/lake"
        """,
    )
    assert settings.session.max_expiry == 5_400_000_000
    assert settings.session.queue_bytes == 65_536
    assert settings.data == tmp_path / "kept"
    assert settings.passwords == tmp_path / "kept" / "users"
    assert settings.lake == Path("/lake")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[listen]\nprot = 1", "listen.prot: there is no such key; did you mean 'port'?"),
        ("[lissen]\nport = 1", "lissen: there is no such key; did you mean 'listen'?"),
        ("[listen]\nTLS-port = 1", "listen.TLS-port: there is no such key; did you mean 'tls_port'?"),
        ("[log]\nx = 1", "log.x: there is no such key; known here: level, format"),
        (
            '[[access.rule]]\nusers = ["a"]\n[[access.rule]]\nuser = ["a"]',
            "access.rule[1].user: there is no such key; did you mean 'users'?",
        ),
        ("[listen]\nport = 70000", "listen.port: Expected `int` <= 65535"),
        ('[listen]\nport = "all"', "listen.port: Invalid enum value 'all'; possible: 'any', 'off'"),
        (
            '[access]\nanonymous = "loop"',
            "access.anonymous: Invalid enum value 'loop'; possible: 'loopback', 'always', 'never'",
        ),
        (
            "[session]\nmax_expiry = 3",
            "session.max_expiry: 3 has no unit; write a duration such as '90s', '5m' or '2h'",
        ),
        ('[session]\nmax_expiry = "-3s"', "session.max_expiry: '-3s' is negative; write a duration such as '2h'"),
        ('[tls]\nkey = "k"', "tls: certificate and key belong together: give both, or neither"),
        ("[tls]\nkey = 3", "tls.key: 3 is no path; write one in quotes"),
        ('[limits]\nburst = "0s"', "limits: burst must be longer than 0s, else nothing is ever allowed"),
        ('[limits]\npacket = "1 GiB"', "limits: packet must lie between 16 B and 256 MiB, the largest that MQTT knows"),
        ("listen = 3", "listen: Expected `object`, got `int`"),
    ],
)
def test_a_mistake_is_named_with_its_key(tmp_path: Path, text: str, expected: str) -> None:
    assert problem(tmp_path, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[session]\nmax_expiry = "5 hours"', "session.max_expiry: '5 hours' is not a duration"),
        ('[session]\nqueue_bytes = "5 kb"', "session.queue_bytes: '5 kb' is no size"),
        ('[journal]\nkeep = ["a/#/b"]', "journal: in the topic filter 'a/#/b'"),
        ('[[access.rule]]\npublish = ["a"]', "access.rule[0]: this rule is for nobody"),
        ('[[access.rule]]\nusers = ["a"]\npublish = ["a+"]', "access.rule[0]: in the topic filter 'a+'"),
        ('[[access.rule]]\nusers = ["a"]\nwithin = { circle = 5 }', "access.rule[0]: within must lie somewhere"),
        ('[[access.rule]]\nusers = ["a"]\nwithin = { square = 5 }', "access.rule[0]: this is no area"),
        ('[[access.rule]]\ngroups = ["a"]', "access: rule '' is for the group 'a'"),
        ("[[schemes.rule]]\nwhen='x'\nscheme={kind='GRID'}", "schemes.rule[0]: above or below is needed"),
        ('[listen]\nport = "off"\nhttp_port = "off"', "listen: every port is off"),
        ("= 3", "Invalid"),
    ],
)
def test_a_mistake_is_explained(tmp_path: Path, text: str, expected: str) -> None:
    assert problem(tmp_path, text).startswith(expected)


def test_all_unknown_keys_are_named_at_once(tmp_path: Path) -> None:
    assert len(problem(tmp_path, "a = 1\n[listen]\nb = 1\n[log]\nc = 1").splitlines()) == 3


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="cannot be read: No such file"):
        load(tmp_path / "none.toml")
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidSettings, match=r"x\.toml"):
        load(tmp_path / "x.toml")


@pytest.mark.parametrize(
    ("listen", "key"),
    [
        ({"host": EVERYWHERE}, r"listen.host: .*listen.port = \"off\" and listen.tls_port = 8883"),
        ({"host": "::"}, "listen.host"),
        ({"host": ""}, "listen.host"),
        ({"host": "broker.example"}, "listen.host"),
        ({"host": "10.0.0.1", "port": "off", "websocket_port": 9001}, "listen.websocket_port"),
        ({"http_host": "10.0.0.1"}, r"listen.http_host: .*listen.http_tls = true"),
    ],
)
def test_nothing_is_opened_to_other_machines_in_the_clear_unless_asked_for(listen: dict[str, object], key: str) -> None:
    with pytest.raises(InvalidSettings, match=key):
        BrokerSettings(listen=ListenSettings(**listen))  # type: ignore[arg-type]
    BrokerSettings(listen=ListenSettings(**listen, plain=True))  # type: ignore[arg-type]


def test_with_tls_a_broker_may_be_open_to_other_machines() -> None:
    listen = ListenSettings(host=EVERYWHERE, port="off", tls_port=8883, websocket_tls_port="any", http_port="off")
    assert BrokerSettings(listen=listen).listen.listeners() == (
        Listener("mqtt", EVERYWHERE, 8883, tls=True),
        Listener("websocket", EVERYWHERE, 0, tls=True),
    )
    with pytest.raises(InvalidSettings, match="needs a certificate"):
        BrokerSettings(listen=listen, tls=TlsSettings(auto=False))


def test_what_the_command_line_says_comes_first_and_is_checked_too(tmp_path: Path) -> None:
    changed = BrokerSettings().changed(port="any", http_port="off", data=tmp_path)
    assert changed.listen.listeners() == (Listener("mqtt", "127.0.0.1", 0, tls=False),)
    assert changed.data == tmp_path
    with pytest.raises(InvalidSettings, match="in the clear"):
        BrokerSettings().changed(host=EVERYWHERE)


@pytest.mark.parametrize(
    ("written", "opened"), [("any", [0]), ("0", [0]), ("off", []), ("2883", [2883]), ("65535", [65_535])]
)
def test_a_port_means_the_same_in_a_file_and_on_the_command_line(
    tmp_path: Path, written: str, opened: list[int]
) -> None:
    file = tmp_path / "broker.toml"
    file.write_text(f"[listen]\nport = {written if written.isdecimal() else repr(written)}")
    for settings in (load(file), BrokerSettings().changed(port=port_in(written))):
        assert [each.port for each in settings.listen.listeners() if each.protocol == "mqtt"] == opened


@pytest.mark.parametrize("written", ["", "many", "-1", "65536", "18.5", "Off", "١٢"])
def test_what_is_no_port_is_explained(written: str) -> None:
    with pytest.raises(InvalidSettings, match="is no port; write a number up to 65535, 'any'"):
        port_in(written)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"])
def test_loopback_is_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["", EVERYWHERE, "::", "10.0.0.1", "::ffff:10.0.0.1", "localhost.example", "127.0.0.1.x"]
)
def test_everything_else_is_not(host: str) -> None:
    assert not is_loopback(host)


@given(st.integers(0, 10**12))
def test_sizes_and_durations_are_written_as_they_are_read(number: int) -> None:
    assert Size.of(str(Size(number))) == number
    assert Duration.of(str(Duration(number * 1_000))) == number * 1_000


@given(st.text(max_size=12))
def test_a_text_is_a_size_or_a_duration_or_refused(text: str) -> None:
    for kind in (Size, Duration):
        with contextlib.suppress(InvalidInput):
            assert kind.of(text) >= 0


def test_schemes_are_written_as_in_scenarios(tmp_path: Path) -> None:
    schemes = read(
        tmp_path,
        """
        [schemes]
        start = { kind = "ATTRACT", extension = 50 }
        territory = { south = 49, west = 8, north = 50, east = 9 }
        [[schemes.point]]
        name = "square"
        lat = 49.5
        lon = 8.5
        radius = 80
        [[schemes.rule]]
        when = "subscribers"
        below = 10
        back_at = 12
        dwell = "1m"
        scheme = { kind = "RADIAL" }
        """,
    ).schemes
    assert schemes.initial() == MechanismSpec.of("ATTRACT", extension=50)
    assert [zone.name for zone in schemes.ground().zones] == ["square"]
    assert schemes.ground().box.north == 50
    [rule] = schemes.transition_rules()
    assert rule.scheme == MechanismSpec.of("RADIAL")
    assert rule.dwell == 60.0
    assert rule.condition.holds(9, held=False)
    assert rule.condition.holds(11, held=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[schemes]\nstart = { kind = 'GIRD' }", "there is no filter scheme 'GIRD'"),
        ("[schemes]\nstart = { kind = 'GRID', factr = 3 }", "factr"),
        ("[schemes]\nstart = { factor = 3 }", "schemes.start: needs a kind"),
        ("[schemes]\nterritory = { south = 50, north = 49 }", "northern border"),
        ("[[schemes.rule]]\nwhen = 'x'\nabove = 1\nscheme = { kind = 'GRID' }", "nothing is known as 'x'"),
        ("[[schemes.rule]]\nwhen = 'subscribers'\nabove = 1\nback_at = 2\nscheme = { kind = 'GRID' }", "cannot end at"),
    ],
)
def test_schemes_that_cannot_be_are_refused(tmp_path: Path, text: str, expected: str) -> None:
    schemes = read(tmp_path, text).schemes
    with pytest.raises(InvalidInput, match=re.escape(expected)):
        (schemes.initial(), schemes.ground(), schemes.transition_rules())


def test_the_example_of_the_document_is_complete_and_means_what_it_says(tmp_path: Path) -> None:
    _, section = DOCUMENT.read_text().split("## A complete example")
    [example] = re.findall(r"^```toml\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    settings = read(tmp_path, example)
    assert all(listener.tls or is_loopback(listener.host) for listener in settings.listen.listeners())
    rules = Rules(settings.access.rules, settings.access.groups)
    granted = {user: rules.grants(user, "phone") for user in ("ada", "eve", "root", "stranger")}
    assert [[grant.rule for grant in grants or ()] for grants in granted.values()] == [
        ["rule 'drivers'"],
        ["rule 'police'"],
        ["rule 'operators'"],
        [],
    ]
    assert settings.schemes.initial() == MechanismSpec.of("RADIAL")
    assert len(settings.schemes.transition_rules()) == 1
    sections = re.findall(r"^\[([a-z]+)\]$", example, re.MULTILINE)
    assert set(sections) == set(BrokerSettings.__struct_fields__) - {"data", "tls"}
