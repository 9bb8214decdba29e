"""docs/scenarios.md and docs/operation-logs.md say what is there."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from nearcast.errors import InvalidInput
from nearcast.scenario import document
from nearcast.scenario.loads import WORKLOADS
from nearcast.scenario.movements import MOBILITY
from nearcast.scenario.operations import COLUMNS
from nearcast.scenario.population_section import POPULATIONS
from nearcast.scenario.quantities import DIMENSIONS
from nearcast.scenario.reading import parse
from nearcast.scenario.schema import Scenario
from nearcast.scenario.tables import Varieties
from nearcast.scenario.worlds import WORLDS

DOCS = Path(__file__).parents[2] / "docs"
TABLE_ROW = re.compile(r"^\| `(\w+)`", re.MULTILINE)


def test_the_reference_is_up_to_date() -> None:
    """If not: ``python -m nearcast.scenario.document docs/scenarios.md``."""
    text = (DOCS / "scenarios.md").read_text()
    assert document.up_to_date(text) == text


def test_a_document_without_the_section_is_refused() -> None:
    with pytest.raises(InvalidInput, match="has no section between"):
        document.up_to_date("# Scenarios\n")


def test_the_reference_shows_every_section_and_every_variety_with_all_its_keys() -> None:
    reference = document.section()
    for section in fields(Scenario):
        assert f"`[{section.name}]`" in reference or f"`[[{section.name}]]`" in reference
    several: dict[str, Varieties[Any]] = {
        "world": WORLDS,
        "mobility": MOBILITY,
        "population": POPULATIONS,
        "workload": WORKLOADS,
    }
    for name, varieties in several.items():
        part = re.split(r"^### ", reference.partition(f"[{name}]")[2], maxsplit=1, flags=re.MULTILINE)[0]
        shown = set(TABLE_ROW.findall(part))
        for word, variety in varieties.sections.items():
            assert f'`"{word}"`' in part
            inner = {"attraction_points", "interruptions", "failures"}
            assert {key.name for key in fields(variety)} - inner <= shown


def test_the_values_section_shows_every_unit() -> None:
    values = (DOCS / "scenarios.md").read_text().partition("## Values")[2].partition("## Mistakes")[0]
    for dimension in DIMENSIONS:
        for unit in dimension.units:
            assert not unit or f"`{unit}`" in values


@pytest.mark.parametrize("name", ["scenarios.md"])
def test_scenarios_that_are_shown_are_valid(name: str) -> None:
    for code in re.findall(r"^```toml\n(.*?)^```$", (DOCS / name).read_text(), re.MULTILINE | re.DOTALL):
        parse(code)


def test_every_column_of_a_log_is_shown() -> None:
    text = (DOCS / "operation-logs.md").read_text()
    shown = [
        name
        for row in re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", text, re.MULTILINE)
        for name in re.findall(r"\w+", row)
    ]
    assert set(shown) == set(COLUMNS)
