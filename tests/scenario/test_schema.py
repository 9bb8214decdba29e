"""Scenario files: what is refused and how, what an empty one says, and that writing and reading are inverse."""

import pickle
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import assume, given
from tests.scenario.strategies import scenarios

from nearcast.errors import InvalidScenario
from nearcast.runtime.simulation.cellular_profile import BYPASS, LCN2016
from nearcast.runtime.simulation.distributions import Constant, Exponential, Uniform
from nearcast.runtime.simulation.population import Action
from nearcast.runtime.simulation.radio.profile import wifi_b, wifi_g
from nearcast.runtime.simulation.schedules import Arrivals, Failures, JoinWithin, OnOff, TargetCurve, Together
from nearcast.runtime.simulation.streets.city import LARGEST_SIDE, PLANS, SMALLEST_SIDE
from nearcast.scenario.kinds import kind_of
from nearcast.scenario.reading import examples, parse, read, value_of
from nearcast.scenario.schema import Scenario
from nearcast.scenario.tables import Table, Tables, Varieties
from nearcast.scenario.worlds import WORLDS, Plain


def complaints(text: str, **changes: object) -> list[str]:
    with pytest.raises(InvalidScenario) as refused:
        parse(text, name="game.toml", changes=changes)
    return str(refused.value).splitlines()


ONE_MISTAKE = {
    # What a key needs
    "[mobility]\nspeed = '5 s'": "mobility.speed: '5 s' is a duration; a speed such as '1.5 m/s' is needed",
    "[run]\nduration = 25": "run.duration: 25 has no unit; a duration such as '10 min' is needed",
    "[run]\nduration = '5 m'": "run.duration: '5 m' is a length ('m' is metres; minutes are 'min');"
    " a duration such as '10 min' is needed",
    "[run]\nduration = '0 s'": "run.duration: '0 s' is too small; at least 1 ms is needed",
    "[run]\nduration = '2 furlong'": "run.duration: '2 furlong' has the unknown unit 'furlong';"
    " a duration such as '10 min' is needed",
    "[run]\nstart = 2026": "run.start: 2026 is no instant; one such as '2026-01-01T00:00:00Z' is needed",
    "[run]\nstart = 2026-01-01T00:00:00": "run.start: datetime.datetime(2026, 1, 1, 0, 0) has no time zone;"
    " use datetime(..., tzinfo=UTC)",
    "[run]\ntitle = 7": "run.title: 7 is no text; put it in quotes",
    "[clients]\nnumber = '297'": "clients.number: '297' is no whole number;"
    " a number such as 297 is needed, without quotes",
    "[clients]\nnumber = 0": "clients.number: 0 is too small; at least 1 is needed",
    "[clients]\naccuracy = 'best'": "clients.accuracy: 'best' is not possible; choose one of 'low', 'medium' or 'high'",
    "[cellular]\nordered = 1": "cellular.ordered: 1 is neither true nor false; write one of them, without quotes",
    "[cellular]\nloss = 1.5": "cellular.loss: 1.5 is too large; at most 1 is possible",
    "[cellular]\nloss = '105 %'": "cellular.loss: '105 %' is too large; at most 1 is possible",
    "[cellular]\nqueue = '0 B'": "cellular.queue: '0 B' is too small; at least 1 B is needed",
    "[cellular]\noutages = ['5 min']": "cellular.outages[1]: '5 min' does not have 2 parts;"
    ' write it like ["5 min", "6 min"]',
    "[cellular]\noutages = '5 min'": 'cellular.outages: \'5 min\' is no list; write it like [["5 min", "6 min"], ...]',
    "[radio]\nrange = '-3 m'": "radio.range: '-3 m' is too small; at least 1 m is needed",
    "[radio]\nexponent = '3.8'": "radio.exponent: '3.8' is no number;"
    " a number such as 3.8 is needed, without quotes or unit",
    "[world]\nkind = 'plain'\ncentre = [49, 8]\n[mobility]\nmodel = 'walk'": "world.centre: [49, 8] is no place;"
    " write {lat = 49.8728, lon = 8.6512}",
    "[world]\ncentre = {lat = 99, lon = 8}": "world.centre: latitude 99 is outside [-90, 90] degrees",
    "[world]\nseed = -1": "world.seed: -1 is too small; at least 0 is needed",
    "[[workload]]\nradius = '-125 m'": "workload[1].radius: '-125 m' is too small; more than 0 m is needed",
    "[[workload]]\ntopic = 'a/#'": "workload[1].topic: the topic 'a/#' holds a wildcard;"
    " '+' and '#' are for subscriptions",
    "[[workload]]\npublishers = -0.1": "workload[1].publishers: -0.1 is too small; at least 0 is needed",
    # Tables
    "run = 5": "run: 5 is no table; write its keys below [run]",
    "mobility = 'walk'": "mobility: 'walk' is no table; write its keys below [mobility]",
    "[workload]\nkind = 'AR'": "workload: this is one table, but there may be several; write [[workload]]",
    "workload = 5": "workload: 5 is no list; write it like [table, ...]",
    # Keys
    "[run]\ndurration = '5 min'": "run.durration: there is no such key; did you mean 'duration'?",
    "[clients]\nNumber = 5": "clients.Number: there is no such key; did you mean 'number'?",
    "[moblity]": "moblity: there is no such key; did you mean 'mobility'?",
    "[delivery]\nxyz = 1": "delivery.xyz: there is no such key; there are 'mechanism', 'forget_after' or 'piggyback'",
    "[mobility]\nmodel = 'walk'\npause = '5 s'": "mobility.pause: 'walk' has no such key;"
    " 'attraction', 'streets' or 'waypoint' has",
    "[mobility]\nmodel = 'wlak'": "mobility.model: 'wlak' is not possible; choose 'attraction', 'streets', 'waypoint',"
    " 'walk', 'road', 'standing' or 'trace'; did you mean 'walk'?",
    "[mobility]\nmodel = 3": "mobility.model: 3 is not possible; choose 'attraction', 'streets', 'waypoint', 'walk',"
    " 'road', 'standing' or 'trace'",
    "[population]\nkind = 'curve'": 'population.points: is missing; needed: list of ["8 min", 100]',
    "[mobility]\nmodel = 'trace'\nfile = 'nowhere.csv'": "mobility.file: there is no file 'nowhere.csv'",
    "[mobility]\nmodel = 'trace'\nfile = ''": "mobility.file: '' is no path of a file",
    # Values that are possible, but not together
    "[run]\nstart = 9999-12-31T23:50:00Z": "run.start: the run would last beyond the year 9999; start it earlier",
    "[radio]\nrange = '300 m'": "radio.range: reaches 300 m, but interference only 205 m; what is received also disturbs",
    "[radio]\ncarrier_sense = '50 m'": "radio.carrier_sense: reaches 50 m, less than the range, 88 m;"
    " who receives must also wait",
    "[radio]\nunicast_rate = '54 Mbit/s'": "radio.unicast_rate: 54 Mbit/s is no rate of 802.11b;"
    " choose among 1 Mbit/s, 2 Mbit/s, 5500 kbit/s, 11 Mbit/s",
    "[mobility]\nmodel = 'walk'\nslowest = '3 m/s'": "mobility.slowest: 3 m/s is more than fastest, 2 m/s;"
    " exchange them",
    "[clients.sensor_errors]\nhigh = '3 m'": "clients.sensor_errors.low: a lower accuracy has a larger error,"
    " or an equal one",
    "[population]\nkind = 'curve'\npoints = [['0 s', 298]]": "population.points: asks for 298 clients,"
    " but there are 297",
    "[population]\nkind = 'curve'\npoints = []": "population.points: has no points; give at least one",
    "[population]\nkind = 'curve'\npoints = [['2 min', 1], ['1 min', 2]]": "population.points:"
    " 1 min follows 2 min; put them in order of time",
    "[population]\njoin_within = '25 min'": "population.join_within: 25 min is not before the end of the run, 25 min",
    "[population]\nkind = 'visitors'\nstay = '0 s'": "population.stay: is always 0 s: nobody would ever be there;"
    " give a longer time",
    "[population.interruptions]\noffline = '0 s'": "population.interruptions.offline: is always 0 s,"
    " so that time would stand still; give a longer time",
    "[population.interruptions]\nshare = 0.5\n[population.failures]\nshare = 0.5": "population.failures.share:"
    " an interruption would bring back who has failed for good; set one of the shares to 0",
    "[population]\nafter = '30 s'\njoin_within = '30 s'\n[population.interruptions]\nshare = 0.5\nafter = '59 s'": "population.interruptions.after: 59 s is before all have joined; at least 1 min is needed",
    "[population]\njoin_within = '5 min'\n[population.failures]\nshare = 0.5": "population.failures.at:"
    " some would fail before they have joined; give times from 5 min on",
    "[cellular]\noutages = [['6 min', '5 min']]": "cellular.outages: an outage from 360 s until 300 s"
    " ends before it starts",
    "[cellular]\noutages = [['26 min', '27 min']]": "cellular.outages: 26 min is not before the end of the run, 25 min",
    "[cellular]\nconnected = '5 min'": "cellular.connected: means nothing without 'disconnected'; give both or none",
    "[cellular]\nenabled = false": "delivery.mechanism: 'cloud' needs cellular, which is switched off;"
    " set cellular.enabled = true",
    "[radio]\nenabled = false\n[delivery]\nmechanism = 'both'": "delivery.mechanism: 'both' needs radio,"
    " which is switched off; set radio.enabled = true",
    "[delivery]\nmechanism = 'broadcast'\n[[workload]]\npayload = '5 kB'": "workload[1].payload: 5 kB cannot be"
    " broadcast: a message by radio has at most 4031 B",
    "[world]\nkind = 'plain'": "mobility.model: 'attraction' needs streets, and a 'plain' world has none;"
    " choose model 'waypoint', or another kind of world",
    "[world]\nkind = 'plain'\n[mobility]\nmodel = 'waypoint'\n[[workload]]\nkind = 'LBS'": "workload[1].kind: 'LBS' needs"
    " attraction points, and a 'plain' world brings none; add some as [[world.attraction_points]]",
    "[[workload]]\nstart = '1 h'": "workload[1].start: 1 h is not before the end of the run, 25 min",
    "[[workload]]\nstart = '2 min'\nend = '1 min'": "workload[1].end: 60 s is not after start, 120 s",
    "[[workload]]\n[[workload]]": "workload: two workloads publish under the topic 'ar'; give each its own",
    "[[world.attraction_points]]\nname = 'a'\nx = '0 m'": "world.attraction_points[1].y: is missing; needed: length",
    "[[world.attraction_points]]\nname = 'a'\nx = '0 m'\ny = '0 m'\n" * 2: "world.attraction_points:"
    " two points are called 'a'; give each its own name",
    "[mobility]\nmodel = 'standing'\n[world]\nkind = 'plain'\n[[world.attraction_points]]\nname = 'far'\nx = '1 km'"
    "\ny = '0 m'": "world.attraction_points: 'far' lies outside of the world; nobody could go there",
    "[world]\nkind = 'helsinki'\nside = '500 m'": "world.side: means nothing without 'centre'; give both or none",
}


@pytest.mark.parametrize(("text", "complaint"), ONE_MISTAKE.items())
def test_a_mistake_is_named_with_its_file_its_key_and_what_to_do(text: str, complaint: str) -> None:
    assert complaints(text) == [f"game.toml: {complaint}"]


def test_all_mistakes_are_reported_at_once() -> None:
    mistakes = ["[run]\nduration = 25", "[clients]\nnumber = 0", "[radio]\nrange = '300 m'", "[delivery]\nxyz = 1"]
    assert complaints("\n".join(mistakes)) == [f"game.toml: {ONE_MISTAKE[mistake]}" for mistake in mistakes]


def test_mistakes_that_follow_from_another_are_not_reported() -> None:
    # Whether the curve asks for too many cannot be said, and neither whether the range exceeds the interference.
    text = "[clients]\nnumber = 'many'\n[population]\nkind = 'curve'\npoints = [['0 s', 500]]"
    assert len(complaints(text)) == 1
    assert len(complaints("[radio]\nrange = '300 m'\ninterference = 205")) == 1
    assert len(complaints("[world]\nkind = 'plane'\n[[workload]]\nkind = 'LBS'")) == 1
    # Nor at which rate a radio of no standard would broadcast, nor which of the workloads is the second.
    assert len(complaints("[radio]\nunicast_rate = '3 bit/s'\n[delivery]\nmechanism = 'broadcast'")) == 1
    assert len(complaints("[[workload]]\nkind = 'log'\n[[workload]]\nstart = '1 h'")) == 1


def test_text_that_is_no_toml_is_refused_with_its_line() -> None:
    assert complaints("[run]\nduration = ") == ["game.toml: this is not TOML: Invalid value (at end of document)"]


def test_a_file_that_is_not_there_is_refused_with_the_nearest_example(tmp_path: Path) -> None:
    with pytest.raises(InvalidScenario, match="no such file, and no example of that name; did you mean 'churn'"):
        read("chrun")
    binary = tmp_path / "game.toml"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidScenario, match="cannot be read"):
        read(binary)


def test_an_empty_file_is_the_ar_game() -> None:
    game = parse("")
    assert game == Scenario()
    assert game.clients.number == 297
    assert (game.run.duration, game.clients.location_interval) == (1500.0, 5.0)
    assert game.cellular.profile() == BYPASS
    (workload,) = game.workload
    assert workload.word == "AR"
    assert parse("workload = []").workload == ()


def test_files_are_found_beside_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "walk.csv").write_text("")
    (tmp_path / "game.toml").write_text("[mobility]\nmodel = 'trace'\nfile = './walk.csv'")
    game = read(tmp_path / "game.toml")
    assert game.mobility.file.path == tmp_path / "walk.csv"  # type: ignore[attr-defined]
    assert 'file = "walk.csv"' in game.to_toml()


@pytest.mark.parametrize("name", examples())
def test_every_example_is_valid_and_says_what_it_is_about(name: str) -> None:
    game = read(name)
    assert game.run.title != Scenario().run.title
    assert game == parse(game.to_toml())


def test_there_are_the_promised_examples() -> None:
    promised = {
        "ar-darmstadt",
        "lbs-mannheim",
        "rnd-waypoint",
        "city-10000",
        "wifi-broadcast",
        "churn",
        "failures",
        "lcn",
    }
    assert set(examples()) >= promised


def test_the_example_of_the_ar_game_is_the_default_but_for_its_title() -> None:
    assert read("ar-darmstadt", {"run.title": Scenario().run.title}) == Scenario()


def test_the_lcn_example_has_the_network_of_its_table() -> None:
    assert read("lcn").cellular.profile() == LCN2016


@given(game=scenarios())
def test_the_canonical_form_reads_as_the_same_scenario(game: Scenario) -> None:
    assume(not list(game.contradictions()))
    for explained in (False, True):
        again = parse(game.to_toml(explained=explained))
        assert again == game
        assert again.digest() == game.digest()


@given(game=scenarios())
def test_scenarios_travel_between_processes(game: Scenario) -> None:
    assert pickle.loads(pickle.dumps(game)) == game  # noqa: S301 - our own


@given(game=scenarios(), other=scenarios())
def test_scenarios_differ_where_their_digests_do(game: Scenario, other: Scenario) -> None:
    assert (game == other) == (game.digest() == other.digest())


def test_the_digest_knows_meaning_not_form(tmp_path: Path) -> None:
    assert parse("[run]\nduration = '1500 s'").digest() == parse("").digest()
    assert parse("[run]\nduration = '1501 s'").digest() != parse("").digest()
    log = tmp_path / "log.csv"
    text = "[[workload]]\nkind = 'log'\nfile = 'log.csv'"
    log.write_text("one")
    before = parse(text, folder=tmp_path).digest()
    log.write_text("two")
    assert parse(text, folder=tmp_path).digest() != before


def test_the_explained_form_explains_every_key() -> None:
    explained = Scenario().to_toml(explained=True)
    for section in fields(Scenario):
        for part in fields(getattr(Scenario(), section.name)) if not isinstance(kind_of(section), Tables) else ():
            assert part.metadata["explanation"] in explained or isinstance(kind_of(part), (Table, Varieties))


def test_single_values_can_be_changed() -> None:
    text = "[[workload]]\nkind = 'RND'"
    changed = parse(text, changes={"clients.number": 5, "workload.1.rate": "2/s", "radio.range": "50 m"})
    assert changed == parse("[clients]\nnumber = 5\n[radio]\nrange = '50 m'\n[[workload]]\nkind = 'RND'\nrate = '2/s'")
    assert parse("", changes={"workload.1.rate": "2/s"}) == parse("[[workload]]\nrate = '2/s'")
    assert parse(text, changes={"workload[1].rate": "2/s"}) == parse(text, changes={"workload.1.rate": "2/s"})
    assert complaints(text, **{"workload.rate": "2/s"}) == [
        "game.toml: workload.rate: cannot be changed: there may be several; say which, such as workload[1]"
    ]
    assert complaints(text, **{"workload.2.rate": "2/s"}) == [
        "game.toml: workload[2].rate: cannot be changed: there is no '2' in the file"
    ]
    assert complaints(text, **{"clients.nmber": 2}) == [
        "game.toml: clients.nmber: there is no such key; did you mean 'number'?"
    ]


@pytest.mark.parametrize(
    ("text", "value"), [("5", 5), ("true", True), ("5 s", "5 s"), ("'5 s'", "5 s"), ("[1]", [1]), ("AR", "AR")]
)
def test_values_of_a_command_line_need_no_second_quotes(text: str, value: object) -> None:
    assert value_of(text) == value


def test_a_radio_has_the_ranges_that_it_was_given() -> None:
    usual = parse("").radio.profile()
    assert usual.rts_threshold == 0
    assert usual.reception_range == pytest.approx(88.0)
    assert usual.interference_range == pytest.approx(205.0)
    for name in ("tx_power_dbm", "reception_threshold_dbm", "interference_threshold_dbm", "data_rate", "basic_rate"):
        assert getattr(usual, name) == pytest.approx(getattr(wifi_b(), name))
    near = parse(
        "[radio]\nstandard = '802.11g'\nrange = '30 m'\ninterference = '60 m'\ncarrier_sense = '90 m'\nexponent = 3\n"
        "unicast_rate = '6 Mbit/s'\nrts = false"
    ).radio.profile()
    assert near.reception_range == pytest.approx(30.0)
    assert near.interference_range == pytest.approx(60.0)
    assert near.carrier_sense_range == pytest.approx(90.0)
    assert (near.family, near.data_rate, near.basic_rate) == (wifi_g().family, 6_000_000, wifi_g().basic_rate)
    assert near.rts_threshold == wifi_g().rts_threshold


def test_a_cellular_network_is_as_it_was_described() -> None:
    profile = parse(
        "[cellular]\nlatency = 'uniform 10 ms .. 20 ms'\nbandwidth_up = '2 Mbit/s'\ncell_bandwidth_down = '5 Mbit/s'\n"
        "loss = '1 %'\noutages = [['1 min', '2 min']]\nconnected = '5 min'\ndisconnected = '10 s'"
    ).cellular.profile()
    assert profile.uplink.latency == profile.downlink.latency == Uniform(0.01, 0.02)
    assert (profile.uplink.bandwidth, profile.downlink.bandwidth) == (2_000_000, 1_000_000)
    assert (profile.uplink.cell_bandwidth, profile.downlink.cell_bandwidth) == (None, 5_000_000)
    assert profile.uplink.loss == profile.downlink.loss == 0.01
    assert [(outage.start, outage.end) for outage in profile.outages] == [(60.0, 120.0)]
    assert profile.intermittence is not None
    assert (profile.intermittence.connected, profile.intermittence.disconnected) == (300.0, 10.0)


def test_a_population_is_as_it_was_described() -> None:
    everybody = parse("[population]\njoin_within = '30 s'\nafter = '10 s'").population.schedule()
    assert everybody == JoinWithin(30.0, 10.0)
    interrupted = parse("[population.interruptions]\nshare = '20 %'\nonline = '1 min'\noffline = '2 s'").population
    assert interrupted.schedule() == Together((JoinWithin(0.0), OnOff(Constant(60.0), Constant(2.0), share=0.2)))
    failing = parse("[population.failures]\nshare = 0.1\nat = '3 min'").population
    assert failing.schedule() == Together((JoinWithin(0.0), Failures(0.1, Constant(180.0))))
    curve = parse("[population]\nkind = 'curve'\npoints = [['0 s', 5], ['1 min', 9]]\nsilent = true").population
    assert curve.schedule() == TargetCurve(((0.0, 5), (60.0, 9)), Action.FAIL)
    visitors = parse("[population]\nkind = 'visitors'\nrate = '2/s'\nstay = 'exponential 9 s'").population
    assert visitors.schedule() == Arrivals(2.0, Exponential(9.0), Action.LEAVE)


def test_cities_ask_for_no_fewer_points_than_they_have_hot_spots() -> None:
    for kind, plan in PLANS.items():
        text = f"[world]\nkind = '{kind}'\npoints = "
        parse(text + str(plan.hot_spots))
        assert complaints(text + str(plan.hot_spots - 1)) == [
            f"game.toml: world.points: {plan.hot_spots - 1} is too small: {plan.hot_spots} of them are hot spots"
        ]


def test_cities_are_as_large_as_they_can_be_made() -> None:
    for side in (SMALLEST_SIDE, LARGEST_SIDE):
        parse("", changes={"world.side": f"{side} m"})
    assert len(complaints("", **{"world.side": f"{SMALLEST_SIDE - 1} m"})) == 1
    assert len(complaints("", **{"world.side": f"{LARGEST_SIDE + 1} m"})) == 1


def test_names_of_clients_are_in_the_order_of_the_alphabet() -> None:
    names = parse("[clients]\nnumber = 101").clients.names()
    assert names[:2] == ("client-000", "client-001")
    assert list(names) == sorted(set(names))
    assert len(names) == 101


def test_a_world_of_ones_own_points_is_good_for_attraction() -> None:
    points = "[[world.attraction_points]]\nname = 'fountain'\nx = '-10 m'\ny = '20 m'\nweight = 3"
    game = parse(f"[mobility]\nmodel = 'waypoint'\n[world]\nkind = 'plain'\n{points}\n[[workload]]\nkind = 'LBS'")
    assert isinstance(game.world, Plain)
    (point,) = game.world.attraction_points
    assert (point.x, point.y, point.radius, point.weight) == (-10.0, 20.0, 25.0, 3.0)
    assert tomllib.loads(game.to_toml())["world"]["attraction_points"][0]["name"] == "fountain"
    assert "plain" in WORLDS.sections
