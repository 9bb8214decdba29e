"""The calculator of Contextcast's analytic figures."""

from __future__ import annotations

import pytest

from nearcast.errors import InvalidInput
from nearcast.experiment.contextcast.closed_forms import Archive, FutureStore, Header


def test_an_archive_of_three_years_is_as_large_as_the_document_says() -> None:
    assert Archive().inserts_per_day == 50_000
    assert Archive().megabytes_per_day == 100
    assert Archive().megabytes == 109_500
    assert Archive().gigabytes == pytest.approx(106.93, abs=0.005)


def test_a_million_messages_in_sixty_days_are_not_5500_a_day() -> None:
    assert FutureStore().messages == 1_000_000
    assert FutureStore().messages_per_day == pytest.approx(16_667, abs=1)
    assert FutureStore(days=180).messages_per_day == pytest.approx(5_555, abs=1)


def test_headers_grow_with_identities_and_names_do_not() -> None:
    one = Header(clients=1)
    assert one.named_nodes == pytest.approx(1)
    assert one.bytes == pytest.approx(32 + 8)
    many = Header(clients=100_000, identities_per_client=3)
    assert many.named_nodes == pytest.approx(300)
    assert many.bytes == pytest.approx(many.largest) == pytest.approx(300 * 32 + 300_000 * 8)


def test_impossible_numbers_are_refused() -> None:
    with pytest.raises(InvalidInput):
        Header(clients=-1)
    with pytest.raises(InvalidInput):
        Archive(years=float("nan"))
    with pytest.raises(InvalidInput):
        FutureStore(message_bytes=0)
