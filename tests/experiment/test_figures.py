"""Figures: every kind can be drawn, and the same data are the same file."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.experiment.synthetic import Around, measures, series
from tests.experiment.synthetic import Part as Of

from nearcast.errors import SetupError
from nearcast.experiment.figures import style
from nearcast.experiment.figures.bands import close_up, compared, over_time
from nearcast.experiment.figures.boxes import bars, recall_and_precision
from nearcast.experiment.figures.data import data_of
from nearcast.experiment.figures.files import save
from nearcast.experiment.figures.lines import lines
from nearcast.experiment.figures.maps import mechanisms, recall_maps, transition_maps
from nearcast.experiment.measures import Cells, Measures, Timeline

GAPS = Cells(size=20.0, x=[10.0, 50.0], y=[10.0, 30.0], values={"due": [4, 0], "correct": [3, 0]})
PLACES = Cells(size=10.0, x=[5.0, 25.0], y=[5.0, 15.0], values={"ATTRACT": [1, 0], "RADIAL": [2, 9]})
NOWHERE = Cells(size=10.0, x=[], y=[], values={})


def made() -> Measures:
    lines = [Timeline("a", [0.0, 40.0], ["RADIAL", "GRID"]), Timeline("b", [0.0], ["RADIAL"])]
    found = measures({"all": Of()}, {"T1": Around(dip=200), "T2": Around(), "T3": Around()})
    return msgspec.structs.replace(found, timelines=lines, series=series([1.0, 0.5, 0.9]))


def empty() -> Measures:
    """Nothing was due to anybody, and nobody changed anything."""
    found = measures({"all": Of()})
    bands = msgspec.structs.replace(found.series.recall, mean=[None] * 10, p50=[None] * 10)
    nothing = msgspec.structs.replace(found.series, recall=bands, mechanisms={}, rates={})
    return msgspec.structs.replace(found, series=nothing)


FIGURES: dict[str, Callable[[], Any]] = {
    "bands": lambda: over_time(made(), traffic=("upload context", "download context")),
    "bands without values": lambda: over_time(empty(), traffic=("upload context",)),
    "compared": lambda: compared({"one": made(), "other": made()}, "recall", "Both"),
    "close-up": lambda: close_up({"one": made(), "other": made()}),
    "boxes": lambda: recall_and_precision({"A": [made().whole.delivery] * 2, "B": [made().whole.delivery]}),
    "bars": lambda: bars({"A": {"one": 1.0, "other": 2.0}, "B": {"one": 3.0}}, label="kbit/s", title="Traffic"),
    "recall by place": lambda: recall_maps({"DA": GAPS, "MA": GAPS, "none": replace_values(GAPS)}),
    "transitions by place": lambda: transition_maps({"DA": PLACES, "nowhere": NOWHERE}),
    "transitions nowhere": lambda: transition_maps({"nowhere": NOWHERE}),
    "schemes": lambda: mechanisms(made()),
    "schemes without changes": lambda: mechanisms(empty()),
}


def replace_values(cells: Cells) -> Cells:
    return msgspec.structs.replace(cells, x=[], y=[], values={"due": [], "correct": []})


def test_what_is_not_known_is_left_out() -> None:
    (axis,) = bars({"A": {"one": None}, "B": {"one": 3.0}}, label="ms", title="Delay").axes
    heights = [patch.get_height() for patch in axis.patches]
    assert heights[1:] == [3.0]
    assert heights[0] != heights[0], "not a number: no bar"
    (axis,) = lines({"one": [(1.0, 5.0), (2.0, None), (3.0, 6.0)], "none": [(1.0, None)]}, x="", y="", title="").axes
    assert [list(line.get_xdata()) for line in axis.lines] == [[1.0, 3.0], []]


@pytest.mark.parametrize("name", FIGURES)
def test_every_kind_can_be_drawn(name: str, tmp_path: Path) -> None:
    assert save(FIGURES[name](), tmp_path, "figure") == ("figure.png", "figure.svg", "figure.csv")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    drawn = (tmp_path / "figure.svg").read_text()
    assert drawn.count("<path") > 10
    assert "<dc:date>" not in drawn
    columns, *rows = csv.reader(io.StringIO((tmp_path / "figure.csv").read_text()))
    assert len(columns) >= 3
    assert all(len(row) == len(columns) for row in rows)
    assert rows or name in {"transitions nowhere", "schemes without changes"}


def test_the_table_of_a_figure_has_what_is_drawn() -> None:
    drawn = lines({"one": [(1.0, 5.0), (2.0, None), (3.0, 6.0)]}, x="metres", y="messages", title="")
    assert data_of(drawn).to_csv() == "series,metres,messages\none,1,5\none,3,6\n"
    drawn = bars({"A": {"one": None}, "B": {"one": 3.0, "other": 1 / 3}}, label="ms", title="Delay")
    assert data_of(drawn).to_csv() == "group,one,other\nA,,\nB,3,0.333333333\n"
    data = data_of(close_up({"one": made(), "other": made()}))
    (axis, *_) = close_up({"one": made()}).axes
    times, recall = axis.lines[0].get_data()
    assert [row[2:] for row in data.rows if row[:2] == ("T1", "other")] == [
        pair for pair in zip(times, recall, strict=True) if -0.5 <= pair[0] <= 1.5
    ]


def test_every_window_of_a_band_is_in_its_table() -> None:
    rows = data_of(FIGURES["bands"]()).rows
    found = made().series
    middles = [start + found.length / 2 for start in found.starts]
    assert [(at, value) for panel, series, at, value in rows if (panel, series) == ("recall", "mean")] == list(
        zip(middles, found.recall.mean, strict=True)
    )
    assert {panel for panel, *_ in rows} == {"recall", "precision", "traffic in kbit/s per client"}


@pytest.mark.parametrize("name", ["bands", "boxes", "transitions by place"])
def test_the_same_data_are_the_same_files(name: str, tmp_path: Path) -> None:
    for folder in ("one", "other"):
        save(FIGURES[name](), tmp_path / folder, "figure")
    for file in ("figure.png", "figure.svg", "figure.csv"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "other" / file).read_bytes()


def test_a_figure_does_not_depend_on_what_a_user_has_configured(tmp_path: Path) -> None:
    import matplotlib as mpl

    usual = FIGURES["boxes"]()
    with mpl.rc_context({"font.size": 20.0, "savefig.dpi": 300.0}):
        other = FIGURES["boxes"]()
        save(other, tmp_path, "other")
    save(usual, tmp_path, "usual")
    assert (tmp_path / "usual.png").read_bytes() == (tmp_path / "other.png").read_bytes()


def test_without_matplotlib_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SetupError, match="figures"), style.styled():
        pass
