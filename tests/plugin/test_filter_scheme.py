"""Somebody writes a filter scheme, in a package that nearcast has never heard of: everything works with it."""

import asyncio
import json
import random
import subprocess
from pathlib import Path

import pytest
from tests.client.conftest import PASSWORD, SETTINGS, USER
from tests.client.test_schemes_live import walk
from tests.dissemination.transitions.cases import assert_nothing_is_lost
from tests.dissemination.transitions.comparison import compared
from tests.dissemination.transitions.story import Story
from tests.dissemination.transitions.town import Plan
from tests.filtering.test_recall import measured
from tests.served import COMMAND, served

from nearcast.broker.access.users import add_user
from nearcast.errors import InvalidScenario, InvalidScheme
from nearcast.filtering.parameters import Radial
from nearcast.filtering.registry import SCHEMES, look_again, scheme_of
from nearcast.scenario.reading import parse
from nearcast.scenario.writing import to_toml
from nearcast.transition.specification import MechanismSpec

of = MechanismSpec.of
FROM_RADIAL_TO_BANDS = """
[run]
duration = "40 s"
[clients]
number = 12
[scheme]
kind = "RADIAL"
[[transition]]
at = "20 s"
[transition.scheme]
kind = "BANDS"
height = "0.3 km"
"""


@pytest.mark.usefixtures("bands")
def test_it_finds_all_and_the_narrower_the_bands_the_fewer_others() -> None:
    recalls, precisions = zip(
        *(measured(of("BANDS", height=height), 2, events=100) for height in (400, 100, 25)), strict=True
    )
    assert recalls == (1.0, 1.0, 1.0)
    assert list(precisions) == sorted(precisions)


@pytest.mark.usefixtures("bands")
@pytest.mark.parametrize("seed", range(3))
def test_transitions_from_and_to_it_lose_and_double_nothing(seed: int) -> None:
    plans = [
        Plan(9.0, of("BANDS", height=90.0)),
        Plan(15.0, of("EGRID")),
        Plan(22.0, of("BANDS")),
        Plan(30.0, of("STE")),
    ]
    story = Story(seed, busy=tuple(plan.seconds for plan in plans))
    assert_nothing_is_lost(compared(story, of("RADIAL"), plans))


@pytest.mark.usefixtures("bands")
def test_scenarios_have_its_parameters_with_units_and_bounds() -> None:
    scenario = parse(FROM_RADIAL_TO_BANDS)
    assert scenario.transition[0].scheme.spec() == of("BANDS", height=300.0)
    assert parse(to_toml(scenario)) == scenario
    with pytest.raises(InvalidScenario, match=r"height.*0\.5 m.* is too small; at least 1 m is needed"):
        parse(FROM_RADIAL_TO_BANDS.replace("0.3 km", "0.5 m"))


@pytest.mark.usefixtures("bands")
def test_the_simulator_runs_it(tmp_path: Path) -> None:
    file = tmp_path / "bands.toml"
    file.write_text(FROM_RADIAL_TO_BANDS)
    command = [str(COMMAND), "simulate", str(file), "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    # 12 clients and the broker begin with a scheme, and change to another one.
    assert json.loads(ran.stdout)["tables"]["transitions"]["rows"] == 2 * 13


@pytest.mark.usefixtures("bands")
def test_a_live_broker_and_its_clients_run_it(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    add_user(tmp_path / "data" / "users", USER, PASSWORD)
    with served(tmp_path, SETTINGS + '[schemes.start]\nkind = "BANDS"\nheight = 100\n') as broker:
        asyncio.run(walk(broker, ["BANDS(height=50)", "RADIAL", "BANDS"], chance=random.Random(7)))


@pytest.mark.usefixtures("packages")
def test_without_the_package_it_is_said_what_there_is() -> None:
    with pytest.raises(InvalidScheme, match=r"there is no filter scheme 'BANDS'; there are RADIAL, LPS, .*MULTI$"):
        scheme_of(of("BANDS"))


@pytest.mark.parametrize(
    ("leads_to", "message"),
    [
        ("no_such_module:Bands", "filter scheme BROKEN: 'no_such_module:Bands' cannot be loaded: No module named"),
        ("json:dumps", "filter scheme BROKEN: 'json:dumps' is no class of nearcast.filtering.scheme.Scheme"),
    ],
)
def test_a_package_that_is_broken_is_named_and_harms_nobody_else(packages: Path, leads_to: str, message: str) -> None:
    described = packages / "broken-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text(
        f"[nearcast.filter_schemes]\nBROKEN = {leads_to}\nRADIAL = {leads_to}\n"
    )
    look_again()
    with pytest.raises(InvalidScheme, match=message):
        scheme_of(of("BROKEN"))
    assert "BROKEN" in SCHEMES
    assert isinstance(scheme_of(of("RADIAL")), Radial)  # nobody replaces those of the house
    assert parse('[scheme]\nkind = "STE"').scheme.spec() == of("STE")
    with pytest.raises(InvalidScenario, match="'STE' has no such key; 'GRID'"):
        parse('[scheme]\nkind = "STE"\nfactor = 3')
