"""What the live feed tells, as the page shows it: cells as they fill, regions of plans, transitions of some and of all, no room."""

from __future__ import annotations

import re
import time
from typing import Any, Final

from playwright.sync_api import Page, expect
from tests.browser.conftest import PAINTED, Watched, until
from tests.browser.moving_points import ORIGIN, moving_points

LIVE: Final = "html[data-state=live][data-drawn=true]"
CELLS: Final = """async () => {
  const { cells } = (await import("./main.js")).map.ground;
  return [...cells.keys()].map((scheme) => [scheme, cells.shown(scheme).map(({ properties }) => [properties.label, properties.count])]);
}"""
REGIONS: Final = """async () => (await import("./main.js")).map.ground.regions.map(({ name, scheme, radius }) => [name, scheme, radius])"""
LOAD: Final = {
    "publishes_per_s": 3.0,
    "deliveries_per_s": 9.0,
    "bytes_in_per_s": 1.0,
    "bytes_out_per_s": 2.0,
    "delay_ms_p50": 1.0,
    "delay_ms_p99": 2.0,
    "match_us": 5.0,
    "position_updates_per_s": 1.0,
    "lag_ms": 0.0,
}


def square(label: str, count: int, east: float = 0.0, **more: Any) -> dict[str, Any]:
    lat, lon = ORIGIN[0], ORIGIN[1] + east
    ring = [[lon, lat], [lon + 0.005, lat], [lon + 0.005, lat + 0.005], [lon, lat + 0.005], [lon, lat]]
    geometry = {"type": "Polygon", "coordinates": [ring]}
    return {"type": "Feature", "properties": {"label": label, "count": count, **more}, "geometry": geometry}


def cells(scheme: str, *features: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"kind": "cells", "scheme": scheme, "features": {"type": "FeatureCollection", "features": features}, **more}


def test_cells_come_once_and_their_counts_when_they_change(pages: Watched) -> None:
    pages.expect("404")
    with moving_points(10) as server:
        server.points.told = [
            cells("RADIAL", square("a", 1), square("b", 0, 0.005), empty=False),
            cells("RADIAL", square("c", 2, 0.01), more=True, empty=False),
            {"kind": "counts", "scheme": "RADIAL", "counts": {"a": 0, "b": 5}},
            {"kind": "counts", "scheme": "unheard of", "counts": {"a": 1}},
        ]
        page = pages.open(f"{server.url}?hide=streets,areas")
        page.wait_for_selector(LIVE)
        until(page, PAINTED, "ground")
        assert page.evaluate(CELLS) == [["RADIAL", [["b", 5], ["c", 2]]]]
        page.close()


def test_regions_of_plans_are_on_the_map_without_looking_at_the_plans(pages: Watched) -> None:
    pages.expect("404")
    place: dict[str, Any] = {"lat": ORIGIN[0], "lon": ORIGIN[1], "radius": 300.0, "scheme": "EGRID", "plan": "p-1"}
    with moving_points(10) as server:
        server.points.answers["api/plans"] = {"scheme": "RADIAL", "regions": [{"name": "the market", **place}]}
        page = pages.open(f"{server.url}?hide=streets")
        page.wait_for_selector(LIVE)
        until(page, f"async () => (await ({REGIONS})()).length")
        assert page.evaluate(REGIONS) == [["the market", "EGRID", 300]], "from the plans, where the feed tells of none"
        assert until(page, PAINTED, "ground")
        page.close()

        server.points.told = [cells("", square("the park: EGRID", 0, region="the park", **place))]
        page = pages.open(server.url)
        page.wait_for_selector(LIVE)
        until(page, f"async () => (await ({REGIONS})())[0]?.[0] === 'the park'")
        page.wait_for_timeout(300)
        assert page.evaluate(REGIONS) == [["the park", "EGRID", 300]], "the feed knows it sooner"
        page.close()


def test_a_transition_of_some_is_not_told_as_one_of_all(pages: Watched) -> None:
    pages.expect("404")
    now = time.time_ns() // 1_000
    some = {
        "kind": "transition",
        "at_us": now,
        "from": "RADIAL",
        "to": "EGRID",
        "region": "the market",
        "by": None,
        "clients": 3,
    }
    with moving_points(10) as server:
        server.points.more["ticks"] = [{"at_us": now - back * 1_000_000, "load": LOAD} for back in (20, 10, 0)]
        server.points.told = [some]
        page = pages.open(server.url)
        page.wait_for_selector(LIVE)
        expect(page.locator("#flash")).to_have_text("→ EGRID, the market, 3 clients")
        expect(page.locator("#announcements")).to_have_text("Transition of 3 clients in the market to EGRID.")
        expect(page.locator("#timeline-load .marks line.partial")).to_have_count(1)
        page.close()


def test_timelines_begin_with_what_happened_while_the_page_was_away(pages: Watched) -> None:
    pages.expect("404", "WebSocket")
    now = time.time_ns() // 1_000
    all_of_them = {"at_us": now - 15_000_000, "from": "RADIAL", "to": "EGRID", "region": None, "by": None, "clients": 0}
    with moving_points(10) as server:
        server.points.more = {
            "ticks": [{"at_us": now - back * 1_000_000, "load": LOAD} for back in (22, 21, 20, 0)],
            "transitions": [all_of_them],
        }
        page = pages.open(server.url)
        page.wait_for_selector(LIVE)
        marks = page.locator("#timeline-load .marks line")
        expect(marks).to_have_count(1)
        expect(marks.locator("title")).to_contain_text("RADIAL → EGRID")
        drawn = page.locator("#timeline-load path.series-0.line").get_attribute("d")
        assert drawn is not None
        assert re.sub("[^ML]", "", drawn) == "MLLLML", (
            "three seconds and one; of the time between them nothing is known"
        )
        server.points.drop()
        expect(page.locator("#state-text")).to_have_text("Reconnecting…")
        expect(page.locator("#state-text")).to_have_text("Live")
        expect(marks).to_have_count(1)
        page.close()


def test_an_axis_of_nothing_has_no_end_and_one_of_time_the_unit_that_suits_it(pages: Watched) -> None:
    pages.expect("404")
    with moving_points(10) as server:
        load = LOAD | {"delay_ms_p50": None, "delay_ms_p99": None, "match_us": 412_000.0}
        server.points.more["ticks"] = [{"at_us": time.time_ns() // 1_000, "load": load}]
        page = pages.open(server.url)
        page.wait_for_selector(LIVE)
        expect(page.locator("#timeline-load .top")).to_have_text("10/s")
        expect(page.locator("#timeline-delay .top")).to_have_text("")
        expect(page.locator("#timeline-delay .values")).to_have_text("p99 –median –")
        expect(page.locator("#timeline-match .top")).to_have_text("500 ms")
        expect(page.locator("#timeline-match .values")).to_have_text("mean 412 ms")
        page.close()


def test_a_page_too_many_says_why_and_does_not_try_for_ever(pages: Watched) -> None:
    pages.expect("404")
    with moving_points(10) as server:
        server.points.full = "32 pages are open already"
        page = pages.open(server.url)
        expect(page.locator("#full-text")).to_have_text("32 pages are open already")
        expect(page.locator("#state-text")).to_have_text("Too many pages")
        expect(page.locator("#lost")).to_be_hidden()
        server.points.full = ""
        page.wait_for_timeout(1_500)
        expect(page.locator("#state-text")).to_have_text("Too many pages")
        page.get_by_role("button", name="Try again").click()
        page.wait_for_selector(LIVE)
        expect(page.locator("#full")).to_be_hidden()
        page.close()


def test_eyes_say_when_there_is_nothing_more_to_be_told(pages: Watched) -> None:
    pages.expect("404")
    seen: dict[str, Any] = {
        "client": "walker-1",
        "position": None,
        "contexts": [],
        "subscriptions": [],
        "scheme": "RADIAL",
        "cells": None,
    }
    with moving_points(10) as server:
        server.points.answers["api/client"] = seen | {"cell": None, "sent": [], "withheld": []}
        page = pages.open(f"{server.url}?client=walker-1")
        page.wait_for_selector(LIVE)
        expect(page.locator("#eyes-body")).to_contain_text("RADIAL")
        server.points.told = [{"kind": "gone", "client": "walker-1", "why": "no client 'walker-1' has a session here"}]
        server.points.drop()
        expect(page.locator("#eyes-body .notice")).to_contain_text(
            "no client 'walker-1' has a session here. This is what was known last."
        )
        page.close()


def test_another_life_of_the_broker_may_have_another_ground(pages: Watched) -> None:
    pages.expect("404", "WebSocket")
    with moving_points(10) as server:
        server.points.more["life"] = "first"
        page = begun(pages, server.url)
        expect(page.locator("#world-name")).to_have_text("points")
        server.points.answers["api/world"] |= {"name": "elsewhere"}
        server.points.more["life"] = "second"
        server.points.drop()
        expect(page.locator("#world-name")).to_have_text("elsewhere")
        page.close()


def begun(pages: Watched, url: str) -> Page:
    page = pages.open(url)
    page.wait_for_selector(LIVE)
    return page
