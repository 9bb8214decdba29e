"""Whoever uses the page with the keyboard stays where they were, although it is built anew all the time."""

from __future__ import annotations

from typing import Any, Final

from playwright.sync_api import Page, expect
from tests.browser.conftest import Watched, opened, until
from tests.browser.moving_points import moving_points
from tests.browser.stage import PLACE, Stage

ASKED: Final = """window.asked = []; {
  const fetched = window.fetch;
  window.fetch = (address, options) => { window.asked.push(String(address).split("?")[0]); return fetched(address, options); };
}"""


def asked_for(page: Page, path: str) -> int:
    return int(page.evaluate("(path) => window.asked.filter((each) => each === path).length", path))


def sessions(*names: str) -> dict[str, Any]:
    row = {"connected": True, "since": None, "scheme": "RADIAL", "subscriptions": 0, "queued": 0, "user": None}
    return {"total": len(names), "rows": [{"client": name, **row} for name in names]}


def test_the_focus_stays_in_a_table_that_is_built_anew(pages: Watched) -> None:
    pages.expect("404")
    with moving_points(10) as server:
        server.points.answers["api/sessions"] = sessions("ada", "bob")
        page = pages.open(f"{server.url}?view=clients")
        page.get_by_role("button", name="bob").focus()
        server.points.answers["api/sessions"] = sessions("ada", "ali", "bob")
        expect(page.locator("#view-clients tbody")).to_contain_text("ali")
        expect(page.get_by_role("button", name="bob")).to_be_focused()
        server.points.answers["api/sessions"] = sessions("ada", "ali")
        expect(page.locator("#view-clients tbody")).not_to_contain_text("bob")
        expect(page.get_by_role("region", name="Table of clients")).to_be_focused()
        page.close()


def test_closing_the_eyes_leads_back_to_where_they_were_opened(pages: Watched, stage: Stage) -> None:
    page = opened(pages, stage, "?view=clients")
    page.get_by_role("button", name="bob", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.locator("#eyes-name")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="bob", exact=True)).to_be_focused()
    page.get_by_label("Find a client").fill("ada")
    page.keyboard.press("Enter")
    expect(page.locator("#eyes-body")).to_contain_text("traffic/#")
    page.get_by_role("button", name="Close").click()
    expect(page.get_by_label("Find a client")).to_be_focused()


def test_the_focus_stays_on_what_can_be_unfolded_of_somebody_who_moves(pages: Watched, stage: Stage) -> None:
    for number in range(8):
        stage.publish("walker", "traffic/many", str(number), place=PLACE)
    page = opened(pages, stage, "?client=ada")
    more = page.locator("#eyes-body summary").first
    more.focus()
    for number in range(3):
        stage.publish("walker", "traffic/more", str(number), place=PLACE)
    expect(page.locator("#eyes-body")).to_contain_text("traffic/more")
    expect(more).to_be_focused()


def test_tables_are_not_asked_for_while_nobody_sees_them(pages: Watched) -> None:
    pages.expect("404")
    pages.context.add_init_script(ASKED)
    with moving_points(10) as server:
        server.points.answers["api/sessions"] = sessions("walker-1")
        page = pages.open(f"{server.url}?view=clients")
        expect(page.locator("#view-clients tbody")).to_contain_text("walker-1")
        until(page, "() => window.asked.filter((each) => each === 'api/sessions').length > 1")
        page.get_by_role("button", name="walker-1").click()  # its eyes lie over the table
        expect(page.locator("#view-clients")).to_be_hidden()
        page.wait_for_timeout(300)
        before = asked_for(page, "api/sessions")
        page.wait_for_timeout(6_000)
        assert asked_for(page, "api/sessions") == before
        page.get_by_role("button", name="Close").click()
        until(page, "(before) => window.asked.filter((each) => each === 'api/sessions').length > before", before)
        page.evaluate("Object.defineProperty(document, 'hidden', { value: true, configurable: true })")
        page.wait_for_timeout(300)
        before = asked_for(page, "api/sessions")
        page.wait_for_timeout(6_000)
        assert asked_for(page, "api/sessions") == before
        page.evaluate(
            "Object.defineProperty(document, 'hidden', { value: false }); document.dispatchEvent(new Event('visibilitychange'))"
        )
        until(page, "(before) => window.asked.filter((each) => each === 'api/sessions').length > before", before)
        page.close()


def test_a_name_typed_in_full_is_found_before_those_that_begin_so(pages: Watched) -> None:
    pages.expect("404")
    with moving_points(13) as server:
        names = {"0": "p10", "1": "p1", "2": "ap1"} | {str(number): f"p1{number}" for number in range(3, 13)}
        server.points.more["names"] = names
        page = pages.open(server.url)
        page.wait_for_selector("html[data-drawn=true]")
        page.get_by_label("Find a client").fill("p1")
        expect(page.locator("#found li").first).to_have_text("p1")
        page.keyboard.press("Enter")
        expect(page.locator("#eyes-name")).to_have_text("p1")
        page.close()


def test_an_explanation_that_comes_late_does_not_take_the_place_of_another(pages: Watched, stage: Stage) -> None:
    first, second = (stage.publish("walker", f"traffic/{which}", which, place=PLACE) for which in ("first", "second"))
    late = """{ const fetched = window.fetch; window.fetch = async (address, options) => {
      const answer = await fetched(address, options);
      if (String(address).includes(FIRST)) { await new Promise((done) => setTimeout(done, 1500)); window.late = true; }
      return answer;
    }; }"""
    pages.context.add_init_script(ASKED + late.replace("FIRST", repr(f"event={first}&")))
    page = opened(pages, stage, "?client=ada")
    page.locator(f"[data-why='{first}']").click()
    page.locator(f"[data-why='{second}']").click()
    shown = page.locator("#explanation code").first
    expect(shown).to_have_text(second)
    until(page, "() => window.late")
    page.wait_for_timeout(200)
    expect(shown).to_have_text(second)
    assert asked_for(page, "api/explain") == 2
