"""Understanding a real broker and changing it: through a client's eyes, why, transitions, rules, the past, heat."""

from __future__ import annotations

from typing import Final

from playwright.sync_api import expect
from tests.browser.conftest import Watched, opened, until
from tests.browser.stage import PLACE, Stage

CELLS: Final = """async () => (await import("./main.js")).map.ground.cells.size"""
COLOURS: Final = """async () => {
  const { map } = await import("./main.js");
  const known = new Set(map.numbers.slice(1));
  return [...map.ground.cells.keys()].filter((scheme) => known.has(map.ground.colourNumber(scheme)));
}"""
IN_THE_PAST: Final = """async () => {
  const { map } = await import("./main.js");
  const index = map.crowd.indexOf("walker");
  return index >= 0 && map.crowd.here[index] ? map.crowd.toY[index] : 0;
}"""


def test_through_the_eyes_of_a_client_what_was_sent_and_what_withheld_is_explained(
    pages: Watched, stage: Stage
) -> None:
    page = opened(pages, stage)
    near = stage.publish("walker", "traffic/near", "slow", place=PLACE)
    far = stage.publish("walker", "traffic/far", "slow", place=(PLACE[0] + 0.02, PLACE[1]))
    page.get_by_label("Find a client").fill("ad")
    page.keyboard.press("Enter")
    eyes = page.locator("#eyes")
    expect(eyes).to_contain_text("traffic/#")
    sent, withheld = (
        eyes.locator("section", has=page.get_by_role("heading", name=name)) for name in ("Sent", "Withheld")
    )
    expect(sent).to_contain_text("traffic/near")
    expect(withheld).to_contain_text("traffic/far")

    sent.locator(f"[data-why='{near}']").click()
    explanation = page.locator("#explanation")
    expect(explanation).to_contain_text("Why it was sent")
    expect(explanation.locator(".tree > .term.holds")).to_have_count(1)
    assert explanation.locator(".term.fails.decisive").count() == 0

    withheld.locator(f"[data-why='{far}']").click()
    expect(explanation).to_contain_text("Why it was withheld")
    decisive = explanation.locator(".term.fails.decisive", has_text="area").last
    expect(decisive).to_contain_text("radius 300 m")
    assert f"event={far}" in page.url
    assert "client=ada" in page.url


def test_a_transition_commanded_on_the_page_is_carried_out_and_seen(pages: Watched, stage: Stage) -> None:
    page = opened(pages, stage, "?view=plans")
    page.get_by_label("Scheme", exact=True).select_option("EGRID")
    page.get_by_text("Parameters").click()
    page.get_by_label("factor").fill("20")
    page.get_by_role("button", name="Exchange").click()
    expect(page.locator("#transition-answer")).to_have_text("Everybody moved to EGRID(factor=20).")
    expect(page.locator("#scheme-now")).to_contain_text("EGRID")
    expect(page.locator("#flash")).to_contain_text("EGRID(factor=20")
    expect(page.locator("#timeline-load .marks line")).to_have_count(1)
    expect(page.locator("#history tbody tr").first).to_contain_text("EGRID")
    assert until(page, CELLS) == 1
    expect(page.locator("#legend")).to_contain_text("EGRID")
    assert page.evaluate(COLOURS) == ["EGRID(factor=20)"], "cells have the colour of the clients in them"

    page.get_by_label("Scheme", exact=True).select_option("RADIAL")
    page.get_by_role("button", name="Exchange").click()
    expect(page.locator("#transition-answer")).to_have_text("Everybody moved to RADIAL.")
    expect(page.locator("#scheme-now")).to_contain_text("RADIAL")


def test_a_transition_that_makes_no_sense_is_refused_in_words(pages: Watched, stage: Stage) -> None:
    pages.expect("422")
    page = opened(pages, stage, "?view=plans")
    page.get_by_label("Scheme", exact=True).select_option("EGRID")
    page.get_by_text("Parameters").click()
    page.get_by_label("factor").fill("-3")
    page.get_by_role("button", name="Exchange").click()
    expect(page.locator("#transition-answer.problem")).to_contain_text("factor")
    expect(page.locator("#scheme-now")).to_have_text("RADIAL")


def test_rules_are_changed_as_a_whole_or_not_at_all(pages: Watched, stage: Stage) -> None:
    pages.expect("422")
    page = opened(pages, stage, "?view=plans")
    rules = page.locator("#rules-text")
    rules.fill("this is no rule")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#rules-answer.problem")).to_contain_text("Nothing was changed.")
    page.get_by_role("button", name="Undo my changes").click()
    expect(rules).not_to_have_value("this is no rule")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#rules-answer")).to_have_text("The rules hold from now on.")


def test_the_slider_shows_the_past_and_leads_back(pages: Watched, stage: Stage) -> None:
    page = opened(pages, stage)
    now = until(page, IN_THE_PAST)
    slider = page.locator("#slider")
    expect(slider).to_be_enabled()
    slider.focus()
    page.keyboard.press("PageDown")
    page.wait_for_selector("html[data-state=past]")
    expect(page.locator("#banner-text")).to_contain_text("The past:")
    expect(page.locator("#banner-detail")).to_contain_text("clients")
    assert "at=" in page.url
    assert until(page, IN_THE_PAST) > now, "it was further south"
    page.get_by_role("button", name="Back to now").click()
    page.wait_for_selector("html[data-state=live]")
    assert until(page, IN_THE_PAST) <= now


def test_the_past_is_replayed_until_it_is_stopped(pages: Watched, stage: Stage) -> None:
    page = opened(pages, stage)
    expect(page.locator("#slider")).to_be_enabled()
    page.get_by_role("button", name="Replay").click()
    page.wait_for_selector("html[data-state=past]")
    page.locator("#slider").focus()
    page.keyboard.press("End")
    page.wait_for_selector("html[data-state=live]")
    expect(page.get_by_role("button", name="Replay")).to_have_attribute("aria-pressed", "false")


def test_heat_shows_density_with_a_legend(pages: Watched, stage: Stage) -> None:
    page = opened(pages, stage)
    page.get_by_label("Heat").select_option("density")
    expect(page.locator("#heat-note")).to_contain_text("cells")
    expect(page.locator("#ramp")).to_be_visible()
    assert until(page, """async () => (await import("./main.js")).map.ground.heat?.cells?.length""")
    page.get_by_label("Heat").select_option("recall")
    expect(page.locator("#heat-note")).not_to_be_empty()
