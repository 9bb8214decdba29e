"""``[adhoc]`` in scenario files, and transitions of ad hoc mechanisms at set times."""

import pickle
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from nearcast.dissemination.adhoc.carrier import AdHoc
from nearcast.errors import InvalidScenario
from nearcast.records.reader import read as read_table
from nearcast.records.writer import RecordWriter
from nearcast.runtime.energy import BLUETOOTH_LE_ENERGY, WIFI_ENERGY
from nearcast.runtime.observers import Observers
from nearcast.scenario.reading import parse, read
from nearcast.scenario.simulation import RecordedRun, simulate
from nearcast.transition.specification import MechanismSpec

of = MechanismSpec.of
SMALL = """
[run]
duration = "20 s"
[clients]
number = 20
[world]
kind = "plain"
width = "200 m"
height = "200 m"
[mobility]
model = "standing"
"""
AT_TEN = """
[[adhoc.transition]]
at = "10 s"
{initiators}
[adhoc.transition.mechanism]
kind = "PLAN-B"
range = "80 m"
"""


def test_mechanisms_have_their_parameters_with_units_and_bounds() -> None:
    game = parse('[adhoc]\ngeofence = false\n[adhoc.mechanism]\nkind = "HYPERG"\nhello = "50 ms"\ncopies = 2')
    assert game.adhoc.mechanism.spec() == of("HYPERG", hello=0.05, copies=2)
    assert not game.adhoc.geofence
    assert game == parse(game.to_toml())
    assert pickle.loads(pickle.dumps(game)) == game  # noqa: S301 - our own
    assert parse("").adhoc.mechanism.spec() == of("GOSSIP")
    assert read("adhoc").adhoc.mechanism.spec() == of("GOSSIP"), "what is said as usual is the same"


ADHOC = "delivery.mechanism = 'adhoc'\n"
BLUETOOTH_AT_TEN = """
[[adhoc.transport_transition]]
at = "10 s"
{initiators}
[adhoc.transport_transition.transport]
kind = "BLUETOOTH"
grace = "2 s"
"""
MISTAKES = {
    "[adhoc.mechanism]\nkind = 'GOSIP'": "adhoc.mechanism.kind: 'GOSIP' is not possible; .* did you mean 'GOSSIP'",
    "[adhoc.mechanism]\nkind = 'GOSSIP'\np = 1.5": "adhoc.mechanism.p: 1.5 is too large; at most 1 is possible",
    "[adhoc.mechanism]\nkind = 'FLOODING'\np = 0.5": "adhoc.mechanism.p: 'FLOODING' has no such key; 'GOSSIP' has",
    "[adhoc.mechanism]\nkind = 'PLAN-B'\nwindow = '5 m'": "adhoc.mechanism.window: '5 m' is a length .*; a duration",
    "[adhoc.mechanism]\nkind = 'UNICAST'": "adhoc.mechanism: 'UNICAST' sends to hosts that somebody names",
    "[adhoc]\ngeofence = 1": "adhoc.geofence: 1 is neither true nor false",
    AT_TEN.format(initiators=""): r"adhoc.transition\[1\]: 'cloud' has no ad hoc mechanism to change",
    ADHOC
    + AT_TEN.format(initiators=""): r"adhoc.transition\[1\].initiators: 'adhoc' has no broker that tells everybody",
    ADHOC + AT_TEN.format(initiators="initiators = 0"): r"adhoc.transition\[1\].initiators: 0 is too small",
    ADHOC + AT_TEN.format(initiators="initiators = 298"): "asks for 298 clients, but there are 297",
    ADHOC + "adhoc.self_healing = false\n" + AT_TEN.format(initiators="initiators = 1"): "which is switched off",
    ADHOC + "run.duration = '9 s'\n" + AT_TEN.format(initiators="initiators = 1"): "10 s is not before the end",
    ADHOC + "cellular.enabled = false\nradio.enabled = false": "'adhoc' needs radio, which is switched off",
    "delivery.mechanism = 'augment'\ncellular.enabled = false": "'augment' needs cellular, which is switched off",
    "[adhoc.transport]\nkind = 'BLUETOTH'": "adhoc.transport.kind: 'BLUETOTH' is not possible; .* did you mean 'BLUETOOTH'",
    "[adhoc.transport]\ngrace = '5 m'": "adhoc.transport.grace: '5 m' is a length",
    "[bluetooth]\nsensitivity = '-20 dBm'": "bluetooth.sensitivity: '-20 dBm' is too large",
    BLUETOOTH_AT_TEN.format(initiators=""): r"adhoc.transport_transition\[1\]: 'cloud' uses no local transport",
    ADHOC
    + BLUETOOTH_AT_TEN.format(initiators=""): r"transport_transition\[1\].initiators: 'adhoc' has no broker that tells",
    ADHOC + BLUETOOTH_AT_TEN.format(initiators="initiators = 298"): "asks for 298 clients, but there are 297",
    ADHOC
    + "adhoc.self_healing = false\n"
    + BLUETOOTH_AT_TEN.format(initiators="initiators = 1"): "which is switched off",
    ADHOC
    + "run.duration = '9 s'\n"
    + BLUETOOTH_AT_TEN.format(initiators="initiators = 1"): "10 s is not before the end",
    ADHOC + 2 * BLUETOOTH_AT_TEN.format(initiators="initiators = 1"): (
        r"transport_transition\[2\].at: 10 s is also when transport_transition\[1\] begins"
    ),
    ADHOC
    + 2
    * AT_TEN.format(initiators="initiators = 1"): r"adhoc.transition\[2\].at: 10 s is also when transition\[1\] begins",
    ADHOC + "[[transition]]\nat = '5 s'": "transition: means nothing without a broker, and 'adhoc' has none",
}


@pytest.mark.parametrize(("text", "complaint"), MISTAKES.items(), ids=range(len(MISTAKES)))
def test_mistakes_are_named(text: str, complaint: str) -> None:
    with pytest.raises(InvalidScenario, match=complaint):
        parse(text)


def ran(text: str) -> tuple[RecordedRun, list[tuple[Any, ...]]]:
    rows: list[tuple[Any, ...]] = []
    observers = Observers()
    observers.analyze("transitions", lambda *row: rows.append(row))
    run = RecordedRun(parse(text), 1, observers, RecordWriter(None))
    run.begin()
    run.advance(20.0)
    return run, [row for row in rows if row[2] == "lc" and row[3] is not None]


def running(run: RecordedRun) -> Counter[str]:
    hosts = [client.host for client in run.assembly.clients if client.host]
    return Counter(str(host.component(AdHoc).running) for host in hosts)


def test_the_broker_tells_everybody_and_all_change_within_the_latency_of_the_network() -> None:
    run, rows = ran(
        "delivery.mechanism = 'augment'\nadhoc.self_healing = false\n" + AT_TEN.format(initiators="") + SMALL
    )
    assert running(run) == {"PLAN-B(range=80.0)": 20}
    assert {row[7] for row in rows} == {"1@broker"}
    after = [row[0] - run.assembly.simulation.start - 10_000_000 for row in rows]
    assert min(after) >= 75_000
    assert max(after) <= 130_000


@pytest.mark.parametrize("mode", ["augment", "adhoc"])
@pytest.mark.parametrize("initiators", [1, 5])
def test_from_a_few_it_spreads_to_all(mode: str, initiators: int) -> None:
    begun = AT_TEN.format(initiators=f"initiators = {initiators}")
    run, rows = ran(f"delivery.mechanism = '{mode}'\n" + begun + SMALL)
    assert running(run) == {"PLAN-B(range=80.0)": 20}
    told = [row for row in rows if row[7] is not None]
    assert len(told) <= initiators, "the others have heard of it; of those who were to be told, some before they were"
    assert told
    assert len(rows) == 20


def test_several_transitions_follow_each_other() -> None:
    text = (
        ADHOC
        + SMALL
        + "".join(
            f"[[adhoc.transition]]\nat = '{at} s'\ninitiators = 1\n[adhoc.transition.mechanism]\nkind = '{kind}'\n"
            for at, kind in ((4, "PLAN-B"), (8, "HYPERG"), (12, "FLOODING"), (16, "BROADCAST"))
        )
    )
    run, rows = ran(text)
    assert running(run) == {"BROADCAST": 20}
    assert Counter(row[4] for row in rows) == dict.fromkeys(["PLAN-B", "HYPERG", "FLOODING", "BROADCAST"], 20)


@pytest.mark.parametrize(
    ("mode", "initiators"), [("augment", ""), ("augment", "initiators = 1"), ("adhoc", "initiators = 2")]
)
def test_at_set_times_transports_change_and_what_that_costs_is_recorded(
    mode: str, initiators: str, tmp_path: Path
) -> None:
    # So dense that Bluetooth reaches everybody.
    dense = SMALL.replace("200 m", "60 m")
    text = f"delivery.mechanism = '{mode}'\n" + BLUETOOTH_AT_TEN.format(initiators=initiators) + dense
    game = parse(text)
    assert game == parse(game.to_toml())
    summary = simulate(game, 1, out=tmp_path / "run")
    changed = [row for row in read_table(tmp_path / "run", "transitions").to_pylist() if row["proxy"] == "transport"]
    assert Counter(row["target"] for row in changed) == {"WIFI": 20, "BLUETOOTH(grace=2.0)": 20}
    assert summary.counts["bluetooth_bytes_sent"] > 0
    energy = {(row["host"], row["interface"]): row for row in read_table(tmp_path / "run", "energy").to_pylist()}
    traffic = read_table(tmp_path / "run", "traffic").to_pylist()
    assert len(energy) == 40
    for (host, interface), row in energy.items():
        costs = WIFI_ENERGY if interface == "wifi" else BLUETOOTH_LE_ENERGY
        sent = [each for each in traffic if each["interface"] == interface and each["host"] == host]
        sent = [each for each in sent if each["direction"] == "sent"]
        by_hand = sum(
            each["messages"] * costs.sent_message_joules + each["bytes"] * costs.sent_byte_joules for each in sent
        )
        assert row["sending_joules"] == pytest.approx(by_hand)
        assert row["listening_joules"] == pytest.approx(row["listened"] / 1e6 * costs.listening_watts)
    means = {
        interface: sum(row["listened"] for (_, on), row in energy.items() if on == interface) / 20e6
        for interface in ("wifi", "bluetooth")
    }
    assert means == {"wifi": pytest.approx(12.0, abs=0.6), "bluetooth": pytest.approx(10.0, abs=0.6)}
    spread = read_table(tmp_path / "run", "notifications").to_pylist()
    ways = Counter(row["path"] for row in spread if row["outcome"] == "delivered")
    assert ways["wifi"] > 100
    assert ways["bluetooth"] > 100
    # The last half is Bluetooth's, but for the grace period.
    late = [
        row
        for row in spread
        if row["path"] == "wifi"
        and row["time"] > datetime.fromtimestamp(game.run.start / 1e6, UTC) + timedelta(seconds=12.5)
    ]
    assert late == []
