"""Notebooks: as pages, and run anew.

``python -m scripts.website.notebooks docs/notebooks/FILE.ipynb`` runs one and puts down what it prints; a test compares.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any


def as_markdown(path: Path) -> str:
    """A page that can be read without a notebook server."""
    cells = json.loads(path.read_text())["cells"]
    parts = [part for cell in cells for part in _parts(cell)]
    title, *rest = parts
    download = f"This page is a notebook; [download it]({path.name}) and run it."
    return "\n\n".join([title, download, *rest]) + "\n"


def _parts(cell: dict[str, Any]) -> list[str]:
    source = _text(cell["source"])
    if cell["cell_type"] == "markdown":
        heading, _, rest = source.partition("\n")
        return [part.strip() for part in (heading, rest) if part.strip()]
    printed = "".join(_text(output.get("text", "")) for output in cell["outputs"])
    program = f"```python\n{source.rstrip()}\n```"
    return [program, f"```text\n{printed.rstrip()}\n```"] if printed else [program]


def _text(lines: str | list[str]) -> str:
    return lines if isinstance(lines, str) else "".join(lines)


def executed(notebook: dict[str, Any], names: dict[str, Any] | None = None) -> dict[str, Any]:
    """The same with what its programs print now, run one after the other in this process."""
    shared = {"__name__": "notebook"} if names is None else names
    return notebook | {"cells": [_executed(cell, shared) for cell in notebook["cells"]]}


def _executed(cell: dict[str, Any], shared: dict[str, Any]) -> dict[str, Any]:
    if cell["cell_type"] != "code":
        return cell
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(compile(_text(cell["source"]), cell["id"], "exec"), shared)  # noqa: S102 - that is the point
    printed = said.getvalue().splitlines(keepends=True)
    outputs = [{"name": "stdout", "output_type": "stream", "text": printed}] if printed else []
    return cell | {"outputs": outputs}


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(json.dumps(executed(json.loads(file.read_text())), indent=1, ensure_ascii=False) + "\n")
