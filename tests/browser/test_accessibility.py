"""Contrast, names, landmarks and order, as axe judges them by WCAG 2 A and AA, in both themes and on a phone."""

from __future__ import annotations

from typing import Final

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect
from tests.browser.conftest import Watched, opened
from tests.browser.moving_points import moving_points
from tests.browser.stage import PLACE, Stage

RULES: Final = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}}


def violations(page: Page) -> list[str]:
    found = Axe().run(page, options=RULES).response["violations"]
    return [f"{each['id']}: {node['html'][:120]} {node['failureSummary']}" for each in found for node in each["nodes"]]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_view_meets_wcag_aa(pages: Watched, stage: Stage, theme: str) -> None:
    page = opened(pages, stage, f"?theme={theme}")
    expect(page.locator("#figures")).to_contain_text("Sessions")
    assert violations(page) == []
    for tab in ("Clients", "Subscriptions", "Plans"):
        page.get_by_role("tab", name=tab).click()
        expect(page.get_by_role("tabpanel", name=tab)).to_be_visible()
        assert violations(page) == []
    page.get_by_label("Find a client").fill("ada")
    page.keyboard.press("Enter")
    expect(page.locator("#eyes-body")).to_contain_text("Subscriptions")
    assert violations(page) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_past_heat_and_an_explanation_meet_wcag_aa(pages: Watched, stage: Stage, theme: str) -> None:
    event = stage.publish("walker", "traffic/accessible", "x", place=PLACE)
    page = opened(pages, stage, f"?theme={theme}&heat=density&client=ada&event={event}")
    expect(page.locator("#explanation")).to_contain_text("Why it was")
    expect(page.locator("#ramp")).to_be_visible()
    assert violations(page) == []
    page.locator("#slider").focus()
    page.keyboard.press("PageDown")
    page.wait_for_selector("html[data-state=past]")
    expect(page.locator("#banner-detail")).to_contain_text("client")
    expect(page.locator("#eyes-body .notice")).to_contain_text("The map shows the past")
    assert violations(page) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_log_in_meets_wcag_aa(pages: Watched, theme: str) -> None:
    pages.expect("404")
    with moving_points(3) as server:
        server.points.answers["api/me"] = {"user": None, "may_see": False, "may_command": False}
        page = pages.open(f"{server.url}?theme={theme}")
        page.wait_for_selector("html[data-state=login]")
        assert violations(page) == []
        page.close()


def test_a_phone_meets_wcag_aa(phone: Watched, stage: Stage) -> None:
    assert violations(opened(phone, stage)) == []


def test_the_theme_is_that_of_the_system_until_it_is_switched(system: Watched, stage: Stage) -> None:
    page = opened(system, stage)
    dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    theme, other = ("dark", "light") if dark else ("light", "dark")
    expect(page.locator("html")).to_have_attribute("data-theme", theme)
    page.get_by_role("button", name=f"Switch to the {other} theme").click()
    expect(page.locator("html")).to_have_attribute("data-theme", other)
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", other)


def test_everything_is_reached_with_the_tab_key(pages: Watched, stage: Stage) -> None:
    page = opened(pages, stage)
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id"))
    assert {"find", "theme", "map", "layer-points", "heat", "zoom-in", "tab-load", "view-load"} <= reached
