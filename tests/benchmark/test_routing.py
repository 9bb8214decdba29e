"""The routing benchmark measures two ways that agree."""

from __future__ import annotations

import pytest

from nearcast.benchmark import routing


def test_table_and_scan_are_measured_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing, "ENTRIES", 3_000)
    report = routing.run(quick=True)
    assert {(row.system, row.parameters["contexts"]) for row in report.results} == {
        (system, contexts) for system in ("nearcast", "scan") for contexts in ("exact", "coarse")
    }
    assert all(ratio > 1 for ratio in report.ratios.values())
    assert routing.run(quick=True, peers=False).ratios == {}
