#!/usr/bin/env python3
"""``make status``: run what the promises name, and write docs/status.md.

    python scripts/status.py [COMMAND ...]

Without a name all commands run, which takes about two hours on two cores.  With names only these do, and the other rows stay
as they were: docs/status.json has what was measured, and when.  ``--render`` runs nothing.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
PROMISES: Final = Path(__file__).with_name("promises.toml")
MEASURED: Final = ROOT / "docs" / "status.json"
TABLE: Final = ROOT / "docs" / "status.md"
_BIN: Final = Path(sys.executable).parent
LAST_WORDS: Final = 400
"""Lines that are shown of a command that has failed."""


@dataclass(frozen=True)
class Ran:
    """A command that has ended."""

    status: int
    output: str
    seconds: float

    def value(self, selector: str) -> float | None:
        """What a promise asks for; none if it is not there."""
        kind, _, rest = selector.partition(" ")
        if kind == "passes":
            return float(self.status == 0)
        if kind == "seconds":
            return round(self.seconds) if self.status == 0 else None
        if self.status:
            return None
        try:
            document = json.loads(self.output)
        except ValueError:
            return None
        return _SELECT[kind](document, rest)


def _ratio(document: Any, name: str) -> float | None:
    found: float | None = document.get("ratios", {}).get(name)
    return found


def _ours(document: Any, words: str) -> list[Any]:
    metric, *conditions = shlex.split(words)
    wanted = dict(condition.split("=", 1) for condition in conditions)
    return [
        row
        for row in document.get("results", [])
        if row["system"] == "nearcast"
        and row["metric"] == metric
        and all(str(row["parameters"].get(key)) == value for key, value in wanted.items())
    ]


def _result(document: Any, words: str) -> float | None:
    rows = _ours(document, words)
    return float(rows[0]["value"]) if rows else None


def _largest(document: Any, words: str) -> float | None:
    return max((float(row["value"]) for row in _ours(document, words)), default=None)


def _parameter(document: Any, words: str) -> float | None:
    metric, name = words.split()
    rows = _ours(document, metric)
    return float(rows[0]["parameters"][name]) if rows else None


def _path(document: Any, words: str) -> float | None:
    for key in words.split("."):
        document = document.get(key) if isinstance(document, dict) else None
    return float(document) if isinstance(document, int | float) else None


def _check(document: Any, words: str) -> float | None:
    """What a check of an experiment measured; the least, if it has several parts."""
    for check in document.get("checks", []):
        if check["id"] == words and check["measured"] is not None:
            found = check["measured"].values() if isinstance(check["measured"], dict) else [check["measured"]]
            return None if None in found else float(min(found))
    return None


_SELECT: Final = {
    "ratio": _ratio,
    "result": _result,
    "largest": _largest,
    "parameter": _parameter,
    "path": _path,
    "check": _check,
}


def promises() -> dict[str, Any]:
    return tomllib.loads(PROMISES.read_text())


def run(name: str, said: dict[str, Any]) -> Ran:
    """Its standard output is kept, its progress shown."""
    command = shlex.split(said["commands"][name])
    environment = {**os.environ, "NO_COLOR": "1", **said.get("environment", {}).get(name, {})}
    print(f"--- {said['commands'][name]}", file=sys.stderr)
    started = time.monotonic()
    ran = subprocess.run([str(_BIN / command[0]), *command[1:]], stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment, check=False)  # fmt: skip
    if ran.returncode:
        print("\n".join(ran.stdout.splitlines()[-LAST_WORDS:]), file=sys.stderr)
    return Ran(ran.returncode, ran.stdout, time.monotonic() - started)


def kept(promise: dict[str, Any], value: float | None) -> bool:
    if value is None:
        return False
    if promise["value"] == "passes":
        return value == 1
    return bool(promise.get("at_least", value) <= value <= promise.get("at_most", value))


def table(said: dict[str, Any], measured: dict[str, Any]) -> str:
    lines = [
        "# What was promised, and what is",
        "",
        'Made by `make status`, which repeats any of it (`make status ARGS="match ar"` only these). Times are UTC.',
        "The machine has two cores which other guests of the same host slow down by up to a factor of three, for minutes or hours; ratios come from one run.",
        "",
        "| issue | promised | asked | measured | verdict | command | when |",
        "|---|---|---|---|---|---|---|",
    ]
    for promise in said["promise"]:
        entry = measured.get(key_of(promise), {})
        value = entry.get("value")
        verdict = "not measured" if not entry else "kept" if kept(promise, value) else "**not kept**"
        lines.append(
            f"| {promise['issue']} | {promise['says']} | {_asked(promise)} | {_shown(promise, value)} | {verdict} "
            f"| {promise['command']} | {entry.get('when', '')} |"
        )
    lines += ["", "## Why some are not kept", ""]
    broken = [p for p in said["promise"] if key_of(p) in measured and not kept(p, measured[key_of(p)]["value"])]
    lines += [f"- Issue {p['issue']}, {p['says']}: {p.get('why', 'see the run')}." for p in broken] or ["All are."]
    lines += ["", "## Commands", "", "| name | |", "|---|---|"]
    lines += [f"| {name} | `{command}` |" for name, command in said["commands"].items()]
    return "\n".join(lines) + "\n"


def key_of(promise: dict[str, Any]) -> str:
    return f"{promise['issue']} {promise['command']} {promise['value']}"


def _asked(promise: dict[str, Any]) -> str:
    if promise["value"] == "passes":
        return "passes"
    return f">= {promise['at_least']:,}" if "at_least" in promise else f"<= {promise['at_most']:,}"


def _shown(promise: dict[str, Any], value: float | None) -> str:
    if value is None:
        return "-"
    if promise["value"] == "passes":
        return "yes" if value else "no"
    return f"{value:,.0f}" if value >= 100 else f"{value:,.2f}"


def main(names: list[str]) -> int:
    said = promises()
    measured = json.loads(MEASURED.read_text()) if MEASURED.is_file() else {}
    if names != ["--render"]:
        unknown = [name for name in names if name not in said["commands"]]
        if unknown:
            print(
                f"status: there is no command {unknown[0]!r}; there are {', '.join(said['commands'])}", file=sys.stderr
            )
            return 2
        for name in names or said["commands"]:
            ran = run(name, said)
            when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
            for promise in said["promise"]:
                if promise["command"] == name:
                    measured[key_of(promise)] = {"value": ran.value(promise["value"]), "when": when}
            # After each one: it would be a pity to lose an hour of them.
            MEASURED.write_text(json.dumps(measured, indent=1, sort_keys=True) + "\n")
            TABLE.write_text(table(said, measured))
    TABLE.write_text(table(said, measured))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
