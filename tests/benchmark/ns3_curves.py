"""The curves of ns-3 as it once gave them: it takes minutes for all of them, and not every machine has it.

``python -m tests.benchmark.ns3_curves`` has it give them again, and writes ``ns3_curves.json`` anew.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

from nearcast.benchmark.peers.ns3 import Ns3
from nearcast.benchmark.radio_curves import Curve, curves
from nearcast.benchmark.report import Measurement

FILE: Final = Path(__file__).with_suffix(".json")


def titled(curve: Curve) -> str:
    return f"{curve.name}, {curve.parameters['radio']}"


def recorded(curve: Curve) -> list[Measurement]:
    """The points of that curve."""
    about = {"curve": curve.name, **curve.parameters}
    points = _recorded()[titled(curve)]
    return [Measurement(Ns3.name, curve.metric, "", value, {**about, **point}) for point, value in points]


@cache
def _recorded() -> dict[str, list[tuple[dict[str, Any], float]]]:
    found: dict[str, list[tuple[dict[str, Any], float]]] = json.loads(FILE.read_text())["curves"]
    return found


def _points(curve: Curve, measured: list[Measurement]) -> list[tuple[dict[str, Any], float]]:
    same = {"curve", *curve.parameters}
    return [
        ({key: each.parameters[key] for key in each.parameters if key not in same}, each.value) for each in measured
    ]


def record() -> None:
    peer = Ns3()
    found = {titled(curve): _points(curve, curve.measure(peer)) for curve in curves()}
    lines = ",\n".join(f"  {json.dumps(title)}: {json.dumps(points)}" for title, points in found.items())
    FILE.write_text(f'{{"ns-3": {json.dumps(peer.version)}, "curves": {{\n{lines}\n}}}}\n')


if __name__ == "__main__":
    record()
