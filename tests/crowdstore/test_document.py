"""docs/crowdstore.md shows the parameters that there are."""

from __future__ import annotations

from tests.documents import ROOT

from nearcast.crowdstore.document import section, up_to_date


def test_the_document_shows_all_parameters() -> None:
    """If not: ``python -m nearcast.crowdstore.document docs/crowdstore.md``."""
    text = (ROOT / "docs" / "crowdstore.md").read_text()
    assert text == up_to_date(text)


def test_a_row_has_bounds_default_unit_and_meaning() -> None:
    assert "| `side` | a number, more than 0, at most 10,000 | 40 m | side of a cell |" in section().splitlines()
    assert "| `hand_over` | yes or no | yes | cells that empty and fill hand over what they keep |" in section()
    assert "| `large` | *must be given* |" in section()
