"""The short form of the overlay benchmark simulates all kinds, and says how fast."""

from __future__ import annotations

import pytest

from nearcast.benchmark import overlay


def test_every_kind_is_simulated_and_an_update_costs_the_same_hops_either_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlay, "PEOPLE", 2_500)
    report = overlay.run(quick=True)
    speeds = {row.parameters["contexts"]: row.value for row in report.results if row.metric == overlay.SPEED}
    hops = {row.parameters["contexts"]: row.value for row in report.results if row.metric == overlay.HOPS}
    assert list(speeds) == [kind.name for kind in overlay.kinds(quick=True)] == list(hops)
    assert all(speed > 0 for speed in speeds.values())
    assert hops["every 20 m"] == pytest.approx(hops["every 20 m, hop by hop"], rel=0.1)
    assert hops["every 20 m"] > 3 * hops["service areas"]
