"""Contrast, names, landmarks and order, as axe judges them by WCAG 2 A and AA, in both themes and on a phone."""

from __future__ import annotations

from typing import Final

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect
from tests.browser.conftest import Watched, opened
from tests.browser.stage import Stage

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
