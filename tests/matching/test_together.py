"""Clients that report together, and who asked for the events of a batch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.errors import InvalidPosition
from nearcast.matching import Matcher
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription

CLIENTS = ("a", "b", "c")
places = st.builds(Point, st.sampled_from((49.87, 49.871, 49.9)), st.sampled_from((8.65, 8.651, 8.7)))
wanted = st.sampled_from(
    (
        Subscription("city/#", area=Circle(150), id="around"),
        Subscription("city/#", area=Circle(5_000), id="widely"),
        Subscription("city/report", id="all"),
        Subscription("city/other", id="other"),
    )
)


@given(
    subscriptions=st.lists(st.tuples(st.sampled_from(CLIENTS), wanted), max_size=8),
    reports=st.dictionaries(st.sampled_from(CLIENTS), places),
    events=st.lists(places, min_size=1, max_size=4),
)
def test_reports_together_are_reports_one_by_one(
    subscriptions: list[tuple[str, Subscription]], reports: dict[str, Point], events: list[Point]
) -> None:
    together, one_by_one = Matcher(), Matcher()
    for matcher in (together, one_by_one):
        for client, subscription in subscriptions:
            matcher.subscribe(client, subscription)
    for client, place in reports.items():
        one_by_one.move(client, place.lat, place.lon)
    together.move_together(
        list(reports), [place.lat for place in reports.values()], [place.lon for place in reports.values()]
    )
    batch = [Event(f"e{number}", "city/report", 0, place=place) for number, place in enumerate(events)]
    matches = together.match_batch(batch)
    pairs = list(zip(matches.events().tolist(), matches.clients.tolist(), strict=True))
    for number, event in enumerate(batch):
        expected = {delivery.client: delivery.subscriptions for delivery in one_by_one.match(event).deliveries()}
        assert sorted(together.ids[client] or "" for index, client in pairs if index == number) == sorted(expected)
        for client, names in expected.items():
            its_number = together.number(client)
            assert its_number is not None
            assert matches.asked_by(number, its_number) == sorted(names)


def test_who_reports_nonsense_does_not_become_known() -> None:
    matcher = Matcher()
    with pytest.raises(InvalidPosition):
        matcher.move_together(["a", "b"], np.array([49.0, 91.0]), np.array([8.0, 8.0]))
    assert matcher.number("a") is None
