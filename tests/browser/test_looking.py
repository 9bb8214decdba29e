"""Looking at a real broker: people move on the map, events spread, tables are searched; on a large screen and on a phone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import ATTACK, Watched, opened, until
from tests.browser.moving_points import moving_points
from tests.browser.stage import PLACE, Stage, staged

WHERE: Final = """async (name) => {
  const { map } = await import("./main.js");
  const index = map.crowd.indexOf(name);
  if (index < 0 || !map.crowd.here[index]) return null;
  const now = performance.now();
  return [map.view.screenX(map.crowd.x(index, now)), map.view.screenY(map.crowd.y(index, now))];
}"""


def test_the_page_shows_everybody_and_says_that_it_is_live(pages: Watched, stage: Stage) -> None:
    page = opened(pages, stage)
    expect(page.locator("#state-text")).to_have_text("Live")
    expect(page.locator("#clients-now")).to_have_text("4")
    expect(page.locator("#scheme-now")).to_have_text("RADIAL")
    expect(page.locator("#timeline-load svg")).to_have_attribute("aria-label", re.compile(r"moved [1-9]"))
    assert page.evaluate("""async () => (await import("./main.js")).map.crowd.count""") == 4


def test_who_moves_is_seen_moving(pages: Watched, stage: Stage) -> None:
    page = opened(pages, stage)
    x, y = until(page, WHERE, "walker")
    standing = page.evaluate(WHERE, "ada")
    until(page, f"async (name) => (await ({WHERE})(name))[1] < {y - 3}", "walker")  # it walks to the north
    assert page.evaluate(WHERE, "walker")[0] == pytest.approx(x, abs=0.5)
    assert page.evaluate(WHERE, "ada") == pytest.approx(standing, abs=0.01)


def test_who_comes_later_comes_into_sight_until_somebody_moves_the_map(pages: Watched, tmp_path: Path) -> None:
    seen = f"""async (name) => {{
      const [place, box] = [await ({WHERE})(name), document.getElementById("map").getBoundingClientRect()];
      return place && place[0] > 0 && place[1] > 0 && place[0] < box.width && place[1] < box.height;
    }}"""
    two_frames = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
    with staged(tmp_path) as own:
        own.enter("ada")
        page = opened(pages, own)
        assert until(page, seen, "ada")
        own.enter("bob", at=(PLACE[0] + 0.05, PLACE[1]))
        assert until(page, seen, "bob")
        assert page.evaluate(seen, "ada")
        page.locator("#map").focus()
        page.keyboard.press("+")
        own.enter("cid", at=(PLACE[0], PLACE[1] + 0.5))
        until(page, WHERE, "cid")
        page.evaluate(two_frames)
        assert not page.evaluate(seen, "cid")
        page.close()


def test_an_event_appears_and_can_be_found_on_the_map(pages: Watched, stage: Stage) -> None:
    page = opened(pages, stage)
    stage.publish("walker", "traffic/jam", "slow", place=PLACE)
    row = page.locator("#events li", has_text="traffic/jam").first
    expect(row).to_contain_text("to 1")
    row.get_by_role("button", name="Show traffic/jam on the map").click()
    centre = """async () => { const { map } = await import("./main.js"); return map.view.place(map.view.width / 2, map.view.height / 2); }"""
    assert page.evaluate(centre)["lat"] == pytest.approx(PLACE[0], abs=1e-4)


def test_the_map_is_moved_by_keyboard_buttons_and_pointer(pages: Watched, stage: Stage) -> None:
    page = opened(pages, stage)
    view = """async () => { const { view } = (await import("./main.js")).map; return [view.x, view.y, view.zoom]; }"""
    x, y, zoom = page.evaluate(view)
    page.locator("#map").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("+")
    moved_x, moved_y, closer = page.evaluate(view)
    assert moved_x > x
    assert moved_y < y
    assert closer > zoom
    page.keyboard.press("0")
    page.get_by_role("button", name="Zoom out").click()
    assert page.evaluate(view)[2] < zoom
    box = page.locator("#map").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 500, box["y"] + 300)
    page.mouse.down()
    page.mouse.move(box["x"] + 400, box["y"] + 300)
    page.mouse.up()
    assert page.evaluate(view)[0] > x


def test_a_client_is_chosen_on_the_map_by_clicking_it(pages: Watched, stage: Stage) -> None:
    page = opened(pages, stage)
    x, y = until(page, WHERE, "bob")
    box = page.locator("#map").bounding_box()
    assert box is not None
    pages.expect("404")
    page.mouse.click(box["x"] + x, box["y"] + y)
    expect(page.locator("#eyes-name")).to_have_text("bob")
    page.keyboard.press("Escape")
    expect(page.locator("#eyes")).to_be_hidden()


def test_tables_are_searched_and_sorted(pages: Watched, stage: Stage) -> None:
    page = opened(pages, stage, "?view=clients")
    rows = page.locator("#view-clients tbody tr")
    expect(rows).to_have_count(4)
    page.get_by_label("Search clients").fill("wal")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("walker")
    page.get_by_label("Search clients").fill("nobody of this name")
    expect(page.locator("#view-clients .note")).to_have_text("Nothing matches “nobody of this name”.")
    page.get_by_label("Search clients").fill("")
    expect(rows).to_have_count(4)
    page.get_by_role("button", name="Client", exact=True).click()
    expect(page.locator("#view-clients th[aria-sort=ascending]")).to_have_text("Client")
    expect(rows.nth(1)).to_contain_text("ada")
    page.get_by_role("button", name="Client", exact=True).click()
    expect(rows.first).to_contain_text("walker")


def test_layers_are_switched_off_and_the_address_remembers_it(pages: Watched, stage: Stage) -> None:
    page = opened(pages, stage)
    page.get_by_role("checkbox", name="Clients").uncheck()
    expect(page.locator("canvas.people")).to_be_hidden()
    page.reload()
    page.wait_for_selector("html[data-state=live]")
    assert "hide=points" in page.url
    expect(page.get_by_role("checkbox", name="Clients")).not_to_be_checked()


def test_a_phone_shows_everything_in_one_column(phone: Watched, stage: Stage) -> None:
    page = opened(phone, stage)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    panel, world = page.locator("#panel").bounding_box(), page.locator("#world").bounding_box()
    assert panel is not None
    assert world is not None
    assert panel["y"] >= world["y"] + world["height"]
    assert world["width"] == 390
    page.get_by_role("tab", name="Clients").tap()
    expect(page.locator("#view-clients tbody tr")).to_have_count(4)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_lost_connection_is_told_and_made_again(pages: Watched) -> None:
    pages.expect("404", "WebSocket")  # this server has a map and nothing else
    with moving_points(10) as server:
        page = pages.open(server.url)
        page.wait_for_selector("html[data-state=live][data-drawn=true]")
        server.points.refusing = True
        server.points.drop()
        expect(page.locator("#lost")).to_be_visible()
        expect(page.locator("#state-text")).to_have_text("Reconnecting…")
        server.points.refusing = False
        expect(page.locator("#state-text")).to_have_text("Live")
        expect(page.locator("#lost")).to_be_hidden()
        page.close()


def test_nobody_on_the_map_is_said_in_words(pages: Watched, tmp_path: Path) -> None:
    with staged(tmp_path) as own:
        page = pages.open(own.page)
        expect(page.locator("#empty")).to_contain_text("Nobody is on the map yet")
        expect(page.locator("#events")).to_contain_text("Nothing was published since this page was opened")
        page.get_by_role("tab", name="Clients").click()
        expect(page.locator("#view-clients .note")).to_contain_text("No client has a session yet")
        page.close()


def test_what_strangers_write_stays_text(pages: Watched, stage: Stage) -> None:
    page = opened(pages, stage)
    stage.publish("walker", f"{ATTACK}/{ATTACK}", ATTACK, place=PLACE)
    expect(page.locator("#events li", has_text=ATTACK).first).to_be_visible()
    page.get_by_label("Find a client").fill("img")
    expect(page.locator("#found li").first).to_have_text(ATTACK)
    page.keyboard.press("Enter")
    expect(page.locator("#eyes-name")).to_have_text(ATTACK)
    expect(page.locator("#eyes-body")).to_contain_text("mood")
    page.keyboard.press("Escape")
    for tab in ("Clients", "Subscriptions"):
        page.get_by_role("tab", name=tab).click()
        expect(page.locator(f"#view-{tab.lower()} tbody tr", has_text=ATTACK).first).to_be_visible()
    assert page.evaluate("window.hacked") is None
    assert page.locator("img[src=x]").count() == 0
