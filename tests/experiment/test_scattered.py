"""Single runs of a campaign that is spread over many machines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nearcast.errors import InvalidScenario
from nearcast.experiment.scattered import FIGURES, draw, run_scenario

SMALL = {"run.duration": "8 s", "clients.number": 20}


def test_a_run_gives_numbers_and_repeats_them() -> None:
    first, again = (run_scenario("ar-darmstadt", SMALL, 3) for _ in range(2))
    for measured in (first, again):
        speed = measured.pop("simulated_seconds_per_second")
        assert speed is not None
        assert speed > 0
    assert first == again
    assert first["clients"] == 20
    recall, fairness = first["recall"], first["upload_fairness"]
    assert recall is not None
    assert fairness is not None
    assert 0.5 < recall <= 1.0
    assert 0.5 < fairness <= 1.0
    due, missed = first["due"], first["false_negatives"]
    assert due is not None
    assert missed is not None
    assert recall == pytest.approx(1 - missed / due)
    assert set(FIGURES) <= set(first)


def test_a_scenario_that_cannot_be_read_says_so() -> None:
    with pytest.raises(InvalidScenario, match="no example of that name"):
        run_scenario("nowhere", {}, 1)


def test_figures_compare_settings_and_scenarios(tmp_path: Path) -> None:
    summary: list[dict[str, Any]] = [
        {"scenario": name, "changes": changes, "metric": metric, "mean": 0.5}
        for name in ("calm", "town/busy.toml")
        for changes in ('{"clients.number": 10}', '{"clients.number": 20}')
        for metric in ("recall", "of no interest")
    ]
    assert draw(summary, tmp_path) == ["recall.png", "recall.svg", "recall.csv"]
    shown = (tmp_path / "recall.svg").read_text()
    for text in ("number 10", "number 20", "calm", "busy", "Recall"):
        assert text in shown
