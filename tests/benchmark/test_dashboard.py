"""``nearcast bench dashboard``: pages look while the broker works, and it does the same work."""

from __future__ import annotations

from nearcast.benchmark import dashboard
from nearcast.benchmark.dashboard import METRIC, PAGES, UNWATCHED, Size


def test_pages_look_and_every_delivery_arrives() -> None:
    told: list[str] = []
    report = dashboard.run(size=Size(walkers=60, steps=12, pairs=2), progress=told.append)
    watched, unwatched, asked, _ = report.results
    assert [each.parameters["pages"] for each in report.results] == [PAGES, 0, PAGES, 0]
    for each in (watched, asked):
        assert each.parameters["pictures_per_second_and_page"] > 0
        assert each.parameters["texts_per_second_and_page"] > 0
    assert asked.parameters["tables_per_second_and_page"] > 0
    assert unwatched.system == UNWATCHED
    assert [row.parameters["differing_answers"] for row in report.results] == [0, 0, 0, 0]
    assert all(row.metric == METRIC and row.value > 0 for row in report.results)
    assert all(ratio > 0 for ratio in report.ratios.values())
    assert len(told) == 8
    assert len(report.ratios) == 4
