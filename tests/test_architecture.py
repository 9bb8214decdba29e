"""docs/architecture.md tells the truth: what it names is there, and the rooms of its picture are those of the import contract."""

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENT = (ROOT / "docs" / "architecture.md").read_text()
NAMED = re.compile(r"`([\w/]+\.py)`((?:\s+`[A-Za-z_][\w.]*`)*)")


def names_in(path: Path) -> set[str]:
    """Of functions, classes, and what is in classes."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            inner = (part.name for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef))
            found.update(f"{node.name}.{name}" for name in inner)
    return found


def test_every_file_and_function_on_the_way_exists() -> None:
    named = NAMED.findall(DOCUMENT)
    assert len(named) > 50
    missing = []
    for file, names in named:
        path = ROOT / "src" / "nearcast" / file
        if not path.is_file():
            missing.append(file)
            continue
        there = names_in(path)
        missing += [f"{file} {name}" for name in re.findall(r"`([^`]+)`", names) if name not in there]
    assert not missing


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
