"""The past on the map: replayed however slowly it is told, nothing of the present in it, and back as far as the lake goes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import PAINTED, Watched, until
from tests.browser.moving_points import ORIGIN, Served, moving_points
from tests.browser.stage import PLACE, Stage
from tests.served import served

from nearcast.journal import Journal, JournalSettings
from nearcast.journal.archive import Archive

END: Final = 1_790_000_000.0
"""Seconds; the past of the canned broker ends there, ten minutes after it has begun."""

WHERE: Final = """async (name) => {
  const { map } = await import("./main.js");
  const index = map.crowd.indexOf(name);
  return index >= 0 && map.crowd.here[index] ? map.crowd.toY[index] : null;
}"""
SLOW: Final = 0.7
"""Seconds: longer than a step of the replay."""


def text_of(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def past_at(at: str) -> dict[str, Any]:
    """Somebody walks to the north; an event a minute."""
    seconds = datetime.fromisoformat(at).timestamp()
    lat = ORIGIN[0] + (seconds - END) * 1e-5
    event = {
        "id": "e-1",
        "topic": "traffic/jam",
        "at_us": int(seconds * 1e6),
        "lat": lat,
        "lon": ORIGIN[1],
        "reach": None,
    }
    return {
        "at": at,
        "clients": [{"client": "walker-3", "lat": lat, "lon": ORIGIN[1]}],
        "events": [{**event, "publisher": None, "receivers": ["walker-3"], "count": 1}],
        "scheme": "ATTRACT",
        "source": "the journal",
        "complete": True,
    }


@pytest.fixture
def canned(pages: Watched) -> Iterator[Served]:
    pages.expect("404")  # this server tells of the past and nothing else
    with moving_points(10) as server:
        answers = server.points.answers
        answers["api/past/extent"] = {"oldest": text_of(END - 600), "newest": text_of(END)}
        answers["api/past"] = lambda query: past_at(query["at"])
        yield server


def begun(pages: Watched, url: str) -> Page:
    page = pages.open(url)
    page.wait_for_selector("html[data-state=live]")
    expect(page.locator("#slider")).to_be_enabled()
    return page


def test_a_replay_goes_on_however_slowly_the_broker_answers(pages: Watched, canned: Served) -> None:
    async def slow(query: dict[str, str]) -> dict[str, Any]:
        await asyncio.sleep(SLOW)
        return past_at(query["at"])

    canned.points.answers["api/past"] = slow
    page = begun(pages, canned.url)
    page.get_by_role("button", name="Replay").click()
    page.wait_for_selector("html[data-state=past]")
    seen = [until(page, WHERE, "walker-3")]
    for _ in range(3):
        seen.append(
            until(
                page, f"async (last) => {{ const y = await ({WHERE})('walker-3'); return y !== last && y; }}", seen[-1]
            )
        )
    assert seen == sorted(seen, reverse=True), "it walks to the north"
    expect(page.locator("#banner-detail")).to_contain_text("1 client")
    page.get_by_role("button", name="Stop the replay").click()
    expect(page.get_by_role("button", name="Replay")).to_have_attribute("aria-pressed", "false")
    page.wait_for_timeout(1_000 * SLOW + 200)  # what was asked for before comes still
    stopped = page.evaluate(WHERE, "walker-3")
    page.wait_for_timeout(1_500)
    assert page.evaluate(WHERE, "walker-3") == stopped
    page.close()


def test_an_answer_that_fails_after_it_was_overtaken_stops_nothing(pages: Watched, canned: Served) -> None:
    pages.expect("404", "500")
    asked: list[str] = []

    async def first_fails_late(query: dict[str, str]) -> dict[str, Any] | None:
        asked.append(query["at"])
        if len(asked) > 1:
            return past_at(query["at"])
        await asyncio.sleep(SLOW)
        return None

    canned.points.answers["api/past"] = first_fails_late
    page = pages.open(f"{canned.url}?at={text_of(END - 300)}")
    page.wait_for_selector("html[data-state=past]")
    page.get_by_role("button", name="Replay").click()
    until(page, WHERE, "walker-3")
    page.wait_for_timeout(1_000 * SLOW + 500)
    expect(page.get_by_role("button", name="Stop the replay")).to_be_visible()
    page.close()


def test_nothing_of_the_present_is_drawn_over_the_past(pages: Watched, canned: Served) -> None:
    lat, lon = ORIGIN
    ring = [[lon - 0.01, lat - 0.01], [lon + 0.01, lat - 0.01], [lon + 0.01, lat + 0.01], [lon - 0.01, lat - 0.01]]
    cell = {
        "type": "Feature",
        "properties": {"label": "c", "count": 3},
        "geometry": {"type": "Polygon", "coordinates": [ring]},
    }
    square = {"south": lat - 0.01, "west": lon - 0.01, "north": lat, "east": lon, "value": 3.0, "count": 3}
    canned.points.told = [
        {"kind": "cells", "scheme": "RADIAL", "features": {"type": "FeatureCollection", "features": [cell]}}
    ]
    canned.points.answers["api/heat"] = {
        "kind": "density",
        "cell_metres": 100,
        "cells": [square],
        "at": "",
        "source": "now",
    }
    page = begun(pages, f"{canned.url}?heat=density&hide=streets,areas")
    expect(page.locator("#heat-note")).to_contain_text("1 cells")
    until(page, PAINTED, "ground")
    page.locator("#slider").focus()
    page.keyboard.press("PageDown")
    page.wait_for_selector("html[data-state=past]")
    expect(page.locator("#banner-detail")).to_contain_text("ATTRACT")
    until(page, f"async () => !(await ({PAINTED})('ground'))")
    expect(page.locator("#scheme-now")).to_have_text("ATTRACT")
    expect(page.locator("#clients-now")).to_have_text("1")
    expect(page.locator("#heat-note")).to_contain_text("not shown over the past")
    expect(page.locator("#legend")).not_to_contain_text("EGRID")
    assert until(page, PAINTED, "happening"), "its event spreads"
    page.get_by_role("button", name="Back to now").click()
    until(page, PAINTED, "ground")
    expect(page.locator("#legend")).to_contain_text("EGRID")
    page.close()


def test_people_of_the_past_have_the_colour_of_their_role(pages: Watched, canned: Served) -> None:
    canned.points.points.rows["role"] = 2
    page = begun(pages, canned.url)
    until(page, "async () => (await import('./main.js')).map.crowd.role[3] === 2")
    page.locator("#slider").focus()
    page.keyboard.press("PageDown")
    page.wait_for_selector("html[data-state=past]")
    until(page, WHERE, "walker-3")
    role = "async () => { const { crowd } = (await import('./main.js')).map; return crowd.role[crowd.indexOf('walker-3')]; }"
    assert page.evaluate(role) == 2
    page.close()


def test_an_event_of_now_is_shown_on_the_map_of_now(pages: Watched, canned: Served) -> None:
    event = {
        "kind": "event",
        "id": "e-9",
        "topic": "traffic/now",
        "at_us": 1,
        "reach": None,
        "publisher": None,
        "count": 2,
    }
    canned.points.told = [{**event, "lat": ORIGIN[0], "lon": ORIGIN[1], "receivers": [3, 4]}]
    page = begun(pages, canned.url)
    page.locator("#slider").focus()
    page.keyboard.press("PageDown")
    page.wait_for_selector("html[data-state=past]")
    page.get_by_role("button", name="Show traffic/now on the map").click()
    page.wait_for_selector("html[data-state=live]")
    assert until(page, PAINTED, "happening")
    page.close()


@pytest.mark.parametrize("at", ["yesterday", "9999999-01-01"])
def test_a_time_in_the_address_that_is_none_leads_to_the_present(pages: Watched, canned: Served, at: str) -> None:
    page = begun(pages, f"{canned.url}?at={at}")
    expect(page.locator("#announcements")).to_contain_text("is no time")
    expect(page.locator("#state-text")).to_have_text("Live")
    assert "at=" not in page.url.replace("lat=", "")
    page.close()


def test_the_past_is_drawn_before_the_live_feed_has_begun(pages: Watched, canned: Served) -> None:
    pages.expect("404", "WebSocket")
    canned.points.refusing = True
    page = pages.open(f"{canned.url}?at={text_of(END - 300)}")
    until(page, WHERE, "walker-3")
    assert until(page, PAINTED, "people")
    page.close()


def test_the_slider_goes_back_as_far_as_the_lake(pages: Watched, tmp_path: Path) -> None:
    """What the journal has deleted is in the lake; the page does not tell one from the other."""
    with served(tmp_path) as broker:
        before = Stage(broker)
        before.enter("ada", wants="traffic/#")
        before.publish("ada", "traffic/old", "x", place=PLACE)
        before.leave()
        broker.stop()
        forget_journal(broker.data)
        broker.start()
        after = Stage(broker)
        try:
            after.enter("bob", at=(PLACE[0] + 0.001, PLACE[1]))
            page = begun(pages, after.page)
            slider = page.locator("#slider")
            slider.focus()
            page.keyboard.press("Home")
            page.keyboard.press("ArrowRight")  # it is in the second after the one in which the first record was written
            page.keyboard.press("ArrowRight")
            until(page, WHERE, "ada")
            expect(page.locator("#banner-detail")).to_contain_text("1 client")
            expect(page.locator("#banner-detail")).to_contain_text("and more than is shown")
            assert page.evaluate(WHERE, "bob") is None
            page.close()
        finally:
            after.leave()


def forget_journal(data: Path) -> None:
    """All that it has goes into the lake."""
    settings = JournalSettings(keep_for=1, lake=data / "lake")
    journal = Journal.open(data / "journal", settings, lambda act: act(), lambda: time.time_ns() // 1_000)
    try:
        Archive(journal, data / "lake", 3_600.0).export()
        journal.trim().result()
        assert journal.oldest > 0
    finally:
        journal.close()
