"""``[gateways]`` in scenario files, and what it makes of a run."""

import pickle
from collections import Counter
from typing import Any

import pytest

from nearcast.dissemination.adhoc.carrier import AdHoc
from nearcast.dissemination.gateways.broker import ByGateways
from nearcast.dissemination.gateways.client import GatewayClient
from nearcast.dissemination.gateways.count import Density, Share
from nearcast.dissemination.gateways.registry import PROXY
from nearcast.dissemination.gateways.settings import GatewaySettings
from nearcast.dissemination.gateways.spreading import GatewaySpreading
from nearcast.dissemination.hybrid import MODES
from nearcast.dissemination.wire import EventMessage
from nearcast.errors import InvalidScenario
from nearcast.records.writer import RecordWriter
from nearcast.runtime.observers import Observers
from nearcast.scenario.reading import parse
from nearcast.scenario.simulation import RecordedRun
from nearcast.transition.engine import HostEngine
from nearcast.transition.proxy import Proxy
from nearcast.transition.specification import MechanismSpec

of = MechanismSpec.of
GATEWAY = "delivery.mechanism = 'gateway'\n"
SMALL = """
[run]
duration = "12 s"
[clients]
number = 12
[world]
kind = "plain"
width = "120 m"
height = "120 m"
[mobility]
model = "standing"
"""


def test_the_defaults_are_those_of_the_documents_but_for_acknowledgements() -> None:
    settings = parse(GATEWAY).gateways.settings(88.0)
    assert settings.selection == of("SKC-LEACH")
    assert settings.count == Share(0.4)
    assert (settings.acknowledged, settings.window, settings.deadline) == (True, 0.25, 1.0)
    assert settings.schemes is None
    assert settings.reach is None
    assert not settings.addressed
    assert parse(GATEWAY).gateways.mechanism.spec() == of("BROADCAST")


def test_everything_can_be_said() -> None:
    game = parse(
        GATEWAY + "radio.range = '80 m'\ntransitions.at_points = true\n"
        "[gateways]\ncoverage = 0.9\nreach = '70 m'\nacknowledged = false\nwindow = '100 ms'\ndeadline = '2 s'\nat_points = true\n"
        "[gateways.selection]\nkind = 'CS-WCA'\ncluster_radius = '30 m'\n[gateways.mechanism]\nkind = 'UNICAST'\n"
        "[[gateways.transition]]\nat = '2 min'\nselection.kind = 'DKC-LEACH'\nmechanism.kind = 'GOSSIP'\n"
    )
    settings = game.gateways.settings(game.radio.range)
    assert settings.selection == of("CS-WCA", cluster_radius=30.0)
    assert settings.count == Density(0.9, 80.0)
    assert (settings.reach, settings.window, settings.deadline) == (70.0, 0.1, 2.0)
    assert settings.schemes == frozenset({"ATTRACT"})
    assert settings.addressed
    assert not settings.acknowledged
    entry = game.gateways.transition[0].planned()
    assert (entry.seconds, entry.selection, entry.mechanism) == (120.0, of("DKC-LEACH"), of("GOSSIP"))
    assert parse(game.to_toml()) == game
    assert pickle.loads(pickle.dumps(game)) == game  # noqa: S301 - our own


def test_ranges_are_those_of_the_transport() -> None:
    bluetooth = parse("").bluetooth.profile().reception_range
    assert 20.0 < bluetooth < 40.0
    for how, metres in {
        "": 88.0,
        "adhoc.transport.kind = 'BLUETOOTH'\n": bluetooth,
        "[[adhoc.transport_transition]]\nat = '5 s'\ntransport.kind = 'BLUETOOTH'\n": bluetooth,
    }.items():
        settings = parse(GATEWAY + "gateways.coverage = 0.9\n" + how).gateway_settings()
        assert settings.count == Density(0.9, metres)


RULE = "[[rule]]\nwhen = 'subscribers'\nabove = 5\nscheme.kind = 'ATTRACT'\notherwise.kind = 'RADIAL'\n"
MISTAKES = {
    "[gateways.selection]\nkind = 'LEACH'": "gateways.selection.kind: 'LEACH' is not possible; choose 'DKC-LEACH', 'SKC-LEACH'",
    "[gateways]\nshare = 0": "gateways.share: 0 is too small; more than 0 is needed",
    "[gateways]\ndeadline = '200 ms'": "gateways.deadline: .* set a later deadline",
    GATEWAY
    + "gateways.deadline = '400 ms'": "gateways.deadline: 400 ms are over .* there and back for 150 ms at least",
    "coexistence.inside = 'gateway'\ncellular.latency = '400 ms'": "gateways.deadline: 1 s are over .* for 800 ms at least",
    "[gateways.mechanism]\nkind = 'BROADCAST'\np = 0.4": "gateways.mechanism.p: 'BROADCAST' has no such key; 'GOSSIP' has",
    GATEWAY + "gateways.at_points = true": "gateways.at_points: nobody is ever in the scheme ATTRACT",
    GATEWAY + "[[gateways.transition]]\nat = '5 s'": r"gateways.transition\[1\].at: nothing changes; give a selection",
    "[[gateways.transition]]\nselection.kind = 'CS-WCA'": "gateways.transition: 'cloud' has no gateways; choose 'gateway'",
    GATEWAY + "[[gateways.transition]]\nat = '1 h'\nselection.kind = 'CS-WCA'": "1 h is not before the end of the run",
    "[gateways]\nshare = 0.2\ncoverage = 0.9": "gateways.share: how many gateways there are is given twice",
    "gateways.at_points = true": "gateways.at_points: 'cloud' has no gateways; choose 'gateway'",
    GATEWAY + "scheme.kind = 'GRID'": "delivery.mechanism: .* with 'GRID' they do not say it; choose 'RADIAL'",
    GATEWAY + "scheme.kind = 'ATTRACT'\ngateways.at_points = true": "with 'ATTRACT' they do not say it",
    GATEWAY
    + "gateways.at_points = true\n"
    + RULE: "with 'ATTRACT' they do not say it; .* 'ATTRACT' with enable_updates",
    "coexistence.inside = 'gateway'\n[[gateways.transition]]\nselection.kind = 'CS-WCA'": "gateways.transition: would be for",
    GATEWAY + "radio.enabled = false": "'gateway' needs radio, which is switched off",
}


@pytest.mark.parametrize(("text", "complaint"), MISTAKES.items(), ids=range(len(MISTAKES)))
def test_mistakes_are_named(text: str, complaint: str) -> None:
    with pytest.raises(InvalidScenario, match=complaint):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        GATEWAY + "gateways.deadline = '401 ms'",
        GATEWAY + "gateways.deadline = '300 ms'\ngateways.acknowledged = false",
        GATEWAY + "cellular.latency = 'exponential 10 s'",
        "gateways.deadline = '300 ms'",
    ],
)
def test_a_deadline_is_refused_only_if_the_first_of_a_window_could_never_keep_it(text: str) -> None:
    assert parse(text).gateways.deadline < 2.0


@pytest.mark.parametrize(
    "text",
    [
        "scheme = {kind = 'ATTRACT', enable_updates = true}\n",
        "scheme.kind = 'GRID'\n[[transition]]\nscheme.kind = 'RADIAL'\n",
        "scheme.kind = 'GRID'\ntransitions.at_points = true\n",
    ],
)
def test_it_is_enough_if_clients_say_at_times_where_they_are(text: str) -> None:
    assert MODES[parse(GATEWAY + text).delivery.mechanism].gateways


def ran(text: str, seconds: float = 12.0) -> tuple[RecordedRun, dict[str, list[tuple[Any, ...]]]]:
    rows: dict[str, list[tuple[Any, ...]]] = {"transitions": [], "gateways": [], "notifications": []}
    observers = Observers()
    for table, kept in rows.items():
        observers.analyze(table, lambda *row, keep=kept.append: keep(row))
    run = RecordedRun(parse(GATEWAY + text + SMALL), 1, observers, RecordWriter(None))
    run.begin()
    run.advance(seconds)
    return run, rows


def cellular(run: RecordedRun, kind: str, direction: str = "sent") -> int:
    assert run.assembly.cellular is not None
    rows = run.assembly.cellular.traffic()
    return sum(row.messages for row in rows if (row.direction, row.kind) == (direction, kind))


def test_another_algorithm_takes_over_at_the_broker_and_no_client_hears_of_it() -> None:
    change = "[[gateways.transition]]\nat = '6 s'\nselection.kind = 'CS-WCA'\n"
    run, rows = ran(change)
    assert [(row[1], row[3], row[4]) for row in rows["transitions"] if row[2] == PROXY] == [
        ("broker", None, "SKC-LEACH"),
        ("broker", "SKC-LEACH", "CS-WCA"),
    ]
    start = run.assembly.simulation.start
    by_algorithm: dict[str, list[float]] = {row[5]: [] for row in rows["gateways"]}
    for row in rows["gateways"]:
        by_algorithm[row[5]].append((row[0] - start) / 1e6)
    assert max(by_algorithm["SKC-LEACH"]) < 6.0 <= min(by_algorithm["CS-WCA"])
    assert cellular(run, "plan") == 0


@pytest.mark.parametrize(("before", "after"), [("BROADCAST", "UNICAST"), ("UNICAST", "GOSSIP")])
def test_gateways_pass_on_in_another_way_and_nothing_is_missed_meanwhile(
    before: str, after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed_on = spreading_of(monkeypatch)
    how = f"gateways.mechanism.kind = '{before}'\ngateways.acknowledged = false\n"
    run, rows = ran(how + change(6.0, after))
    assert mechanisms(run, GatewaySpreading) == {after: 12}
    assert cellular(run, "plan") == 12
    start = run.assembly.simulation.start
    times = [(row[0] - start) / 1e6 for row in rows["notifications"] if row[3] == "gateway"]
    for second in range(2, 12):
        assert any(second <= time < second + 1 for time in times), "gateways are at work all the time"
    assert passed_on["UNICAST", True] > 50
    assert passed_on["UNICAST", False] == 0, "these have reached nobody"
    assert sum(count for (mechanism, _), count in passed_on.items() if mechanism != "UNICAST") > 50


def spreading_of(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, bool]]:
    """How often gateways pass something on, by what they run and whether they were told to whom."""
    counted: Counter[tuple[str, bool]] = Counter()
    spread = GatewaySpreading.spread

    def count(self: GatewaySpreading, message: EventMessage, targets: tuple[str, ...] | None) -> None:
        counted[self.running.name, targets is not None] += 1
        spread(self, message, targets)

    monkeypatch.setattr(GatewaySpreading, "spread", count)
    return counted


@pytest.mark.parametrize("kinds", [("UNICAST", "BROADCAST"), ("BROADCAST", "UNICAST")], ids=lambda kinds: kinds[1])
def test_of_two_changes_within_a_second_the_second_one_holds(
    kinds: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    passed_on = spreading_of(monkeypatch)
    how = f"gateways.mechanism.kind = '{kinds[1]}'\ngateways.acknowledged = false\n"
    run, _ = ran(how + "".join(change(at, kind) for at, kind in zip((2.0, 2.5), kinds, strict=True)), 5.0)
    assert mechanisms(run, GatewaySpreading) == {kinds[1]: 12}
    gateways = run.assembly._broker_half()._handing_over
    assert isinstance(gateways, ByGateways)
    assert gateways.settings.addressed == (kinds[1] == "UNICAST")
    assert passed_on["UNICAST", False] == 0


def change(at: float, kind: str) -> str:
    return f"[[gateways.transition]]\nat = '{at} s'\nmechanism.kind = '{kind}'\n"


def mechanisms(run: RecordedRun, carrier: type[AdHoc]) -> Counter[str]:
    hosts = [client.host for client in run.assembly.clients if client.host]
    return Counter(part.running.name for host in hosts for part in host.components if type(part) is carrier)


def test_who_comes_later_runs_what_everybody_was_told() -> None:
    """Also where nobody would hear of it from others."""
    some = "adhoc.self_healing = false\npopulation = {kind = 'curve', points = [['0 s', 4], ['4 s', 4], ['5 s', 8]]}\n"
    local = "[[adhoc.transition]]\nat = '3 s'\nmechanism.kind = 'BROADCAST'\n"
    run, _ = ran(some + change(2.0, "UNICAST") + local, 7.0)
    assert mechanisms(run, GatewaySpreading) == {"UNICAST": 8}
    assert mechanisms(run, AdHoc) == {"BROADCAST": 8}


def restart(run: RecordedRun) -> None:
    broker = run.assembly.broker
    assert broker is not None
    broker.fail()
    run.advance(0.2)
    broker.join()


def test_a_broker_that_restarts_knows_the_filter_scheme_among_all_that_everybody_was_told() -> None:
    run, _ = ran(change(1.5, "UNICAST") + "[[transition]]\nat = '3 s'\nscheme.kind = 'STE'\n", 4.5)
    restart(run)
    run.advance(2.0)
    broker = run.assembly._broker_half()
    assert {broker.scheme_of(client).name for client in broker.clients} == {"STE"}
    assert len(broker.clients) == 12
    assert mechanisms(run, GatewaySpreading) == {"UNICAST": 12}


def test_a_broker_that_restarts_gives_no_plan_the_id_of_another() -> None:
    run, rows = ran(change(2.0, "UNICAST") + change(6.0, "BROADCAST"), 4.0)
    restart(run)
    run.advance(3.8)
    assert mechanisms(run, GatewaySpreading) == {"BROADCAST": 12}, "none takes the plan for one that it has had"
    plans = {(row[7], row[4]) for row in rows["transitions"] if row[2] == "gw" and row[7] is not None}
    assert len(plans) == len({plan for plan, _ in plans}) == 2


def test_a_broker_that_restarts_goes_on_with_the_algorithm_of_the_timetable() -> None:
    run, _ = ran("[[gateways.transition]]\nat = '3 s'\nselection.kind = 'CS-WCA'\nmechanism.kind = 'UNICAST'\n", 6.0)
    broker = run.assembly.broker
    assert broker is not None
    broker.fail()
    run.advance(1.0)
    broker.join()
    assert broker.host is not None
    proxy = broker.host.component(HostEngine).engine.proxy(PROXY)
    assert isinstance(proxy, Proxy)
    assert str(proxy.spec) == "CS-WCA"


def test_clients_have_both_ways_and_register() -> None:
    run, rows = ran("")
    hosts = [client.host for client in run.assembly.clients if client.host]
    statistics = [host.component(GatewayClient).statistics() for host in hosts]
    assert sum(each.relayed for each in statistics) == cellular(run, "relay", "received") > 0
    assert sum(each.acknowledged for each in statistics) > 0
    assert cellular(run, "gateway registration") == 12
    delivered = Counter((row[1], row[2]) for row in rows["notifications"] if row[4] == "delivered")
    assert set(delivered.values()) == {1}


POINTS = """
transitions.at_points = true
gateways.at_points = true
[[world.attraction_points]]
name = "corner"
x = "-60 m"
y = "0 m"
radius = "60 m"
"""


def test_at_points_only_those_in_a_channel_are_gateways_and_say_where_they_are() -> None:
    run, rows = ran(POINTS)
    broker = run.assembly._broker_half()
    inside = {client for client in broker.clients if broker.scheme_of(client).name == "ATTRACT"}
    assert 0 < len(inside) < 12
    chosen = {row[2] for row in rows["gateways"]}
    assert chosen
    assert chosen <= inside
    assert dict(broker.scheme_of(min(inside)).parameters)["enable_updates"] is True


def test_at_points_members_acknowledge_also_what_they_do_not_want(monkeypatch: pytest.MonkeyPatch) -> None:
    """A channel has much that its members do not want: else they would be taken for missed, and for unreachable."""

    def missed() -> tuple[int, int]:
        run, rows = ran(WIDE)
        assert any(row[3:5] == ("gateway", "unwanted") for row in rows["notifications"])
        gateways = run.assembly._broker_half()._handing_over
        assert isinstance(gateways, ByGateways)
        return gateways.statistics().missed, gateways.statistics().directly

    few, seldom = missed()
    monkeypatch.setattr(GatewaySettings, "unwanted_too", False)
    many, often = missed()
    assert few < 0.5 * many
    assert seldom < often


WIDE = (
    POINTS.replace('radius = "60 m"', 'radius = "200 m"') + "[[workload]]\nkind = 'AR'\nradius = '40 m'\n"
)  # all of them in one channel, and of each event few are concerned
