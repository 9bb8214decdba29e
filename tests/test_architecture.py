"""docs/architecture.md tells the truth: what it names is there, and the rooms of its picture are those of the import contract."""

import re
import tomllib

from tests.documents import ROOT, missing_code, named_code

DOCUMENT = (ROOT / "docs" / "architecture.md").read_text()


def test_every_file_and_function_on_the_way_exists() -> None:
    named = named_code(DOCUMENT)
    assert len(named) > 50
    assert not missing_code(named)


def test_the_picture_shows_the_rooms_in_the_order_of_the_import_contract() -> None:
    picture = (ROOT / "docs" / "images" / "house.svg").read_text()
    shown = [
        (int(y), name)
        for y, name in re.findall(
            r'<text class="name" x="\d+" y="(\d+)">(\w+)</text>', picture.partition('class="head"')[0]
        )
    ]
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]["layers"]
    layers = [
        [room for room in re.findall(r"\w+", layer) if (ROOT / "src/nearcast" / room).is_dir()] for layer in contract
    ]
    rows: dict[int, list[str]] = {}
    for y, name in shown:
        rows.setdefault(y, []).append(name)
    assert [sorted(row) for _, row in sorted(rows.items())] == [sorted(layer) for layer in layers if layer]
