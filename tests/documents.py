"""The documents of this repository, as tests read them: their blocks, what these print, and the code that is named."""

from __future__ import annotations

import ast
import contextlib
import io
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
_BLOCK: Final = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_FILE_AND_NAMES: Final = re.compile(r"`([\w/]+\.py)`((?:,?\s+`[A-Za-z_][\w.]*`)*)")


def blocks(document: Path, *kinds: str) -> list[tuple[str, str]]:
    """Kind and content of each block of these kinds."""
    return [(kind, code) for kind, _, code in titled_blocks(document) if kind in kinds]


def titled_blocks(document: Path) -> list[tuple[str, str, str]]:
    """Kind, title and content of every block."""
    return _BLOCK.findall(document.read_text())


def check_examples(
    document: Path, program: str, output: str, changed: Callable[[str], str] = lambda code: code
) -> dict[str, Any]:
    """Run the blocks of one kind, one after the other; each prints what the block of the other kind behind it says.

    Gives the names that they have left behind.
    """
    shared: dict[str, Any] = {"__name__": document.stem}
    printed = ""
    for kind, code in blocks(document, program, output):
        if kind == output:
            assert code == printed
            continue
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exec(compile(changed(code), document.name, "exec", dont_inherit=True), shared)  # noqa: S102 - that is the point
        printed = said.getvalue()
    return shared


def named_code(text: str) -> list[tuple[str, list[str]]]:
    """Files, and what of them is named behind: `` `model/event.py` `Event`, `Event.copy` ``."""
    return [(file, re.findall(r"`([^`]+)`", names)) for file, names in _FILE_AND_NAMES.findall(text)]


def missing_code(named: Iterable[tuple[str, list[str]]]) -> list[str]:
    """What of it is not there; files are those of the package, or of ``tests``."""
    missing = []
    for file, names in named:
        path = ROOT / file if file.startswith("tests/") else ROOT / "src" / "nearcast" / file
        if not path.is_file():
            missing.append(file)
            continue
        there = _names_in(path)
        missing += [f"{file} {name}" for name in names if name not in there]
    return missing


def _names_in(path: Path) -> set[str]:
    """Of functions, classes, what is in classes, and what a module keeps under a name."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            inner = (part.name for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef))
            found.update(f"{node.name}.{name}" for name in inner)
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        found.update(target.id for target in targets if isinstance(target, ast.Name))
    return found
