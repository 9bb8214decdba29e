"""Understanding a real broker and changing it: through a client's eyes, why, transitions, rules, the past, heat."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from playwright.sync_api import Route, expect
from tests.browser.conftest import PAINTED, Watched, opened, until
from tests.browser.moving_points import moving_points
from tests.browser.stage import PLACE, Stage, staged

RULE: Final = """[[schemes.rule]]
when = "subscribers"
above = 4321
dwell = "1s"
scheme = { kind = "EGRID", factor = 7 }
"""

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


def test_a_new_rule_holds_as_soon_as_it_is_applied(pages: Watched, stage: Stage) -> None:
    page = opened(pages, stage, "?view=plans")
    rules, answer = page.locator("#rules-text"), page.locator("#rules-answer")
    before = rules.input_value()
    rules.fill(RULE)
    page.get_by_role("button", name="Apply").click()
    expect(answer).to_have_text("The rules hold from now on.")
    page.reload()
    expect(rules).to_have_value(re.compile("above = 4321"))
    rules.fill(before)
    page.get_by_role("button", name="Apply").click()
    expect(answer).to_have_text("The rules hold from now on.")


def test_rules_that_somebody_else_has_changed_are_compared(pages: Watched, stage: Stage) -> None:
    pages.expect("409")
    theirs, held = RULE.replace("4321", "77"), {"text": "", "version": "1"}
    sent: list[dict[str, Any]] = []

    def answer(route: Route) -> None:
        if route.request.method == "GET":
            route.fulfill(json=held)
            return
        sent.append(dict(route.request.post_data_json or {}))
        if sent[-1]["version"] != held["version"]:
            route.fulfill(status=409, json={"detail": "the rules have been changed since"})
        else:
            route.fulfill(json={"text": sent[-1]["text"], "version": "3"})

    pages.context.route("**/api/rules", answer)
    page = opened(pages, stage, "?view=plans")
    page.wait_for_timeout(300)
    held.update(text=theirs, version="2")
    page.locator("#rules-text").fill(RULE)
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#rules-answer.problem")).to_contain_text(
        "Nothing was changed. the rules have been changed since"
    )
    expect(page.locator("#rules-theirs-text")).to_contain_text("above = 77")
    expect(page.locator("#rules-text")).to_have_value(RULE)
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#rules-answer")).to_have_text("The rules hold from now on.")
    expect(page.locator("#rules-theirs")).to_be_hidden()
    assert [each["version"] for each in sent] == ["1", "2"]


def test_the_slider_shows_the_past_and_leads_back(pages: Watched, stage: Stage) -> None:
    page = opened(pages, stage)
    now = until(page, IN_THE_PAST)
    slider = page.locator("#slider")
    expect(slider).to_be_enabled()
    slider.focus()
    page.keyboard.press("PageDown")
    page.wait_for_selector("html[data-state=past]")
    expect(page.locator("#banner-text")).to_contain_text("The past:")
    expect(page.locator("#banner-detail")).to_contain_text("client")
    assert "at=" in page.url
    assert until(page, IN_THE_PAST) > now, "it was further south"
    page.get_by_role("button", name="Back to now").click()
    page.wait_for_selector("html[data-state=live]")
    assert until(page, IN_THE_PAST) <= now


def test_the_past_is_replayed_until_the_present_is_reached(pages: Watched, stage: Stage) -> None:
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
    expect(page.locator("#heat-note")).to_contain_text("not measured yet")


def test_recall_by_place_is_drawn_as_the_pipeline_observed_it(pages: Watched, tmp_path: Path) -> None:
    with staged(tmp_path) as own:
        own.enter("ada")
        folder = own.broker.data / "lake-warehouse" / "observed" / "places"
        folder.mkdir(parents=True)
        rows = {"lat": [PLACE[0], PLACE[0] + 0.001], "lon": [PLACE[1], PLACE[1]], "cell": [50.0, 50.0]}
        counts = {"due": [4, 2], "notified": [3, 4], "correct": [3, 2]}
        pq.write_table(pa.table(rows | counts), folder / "part-0.parquet")
        page = opened(pages, own, "?heat=recall&hide=streets,areas,cells,points")
        expect(page.locator("#heat-note")).to_have_text(
            re.compile(r"^2 cells of 50 m, nearcast pipeline observe, \d\d:\d\d:\d\d$")
        )
        expect(page.locator("#ramp-most")).to_have_text("1")
        assert until(page, PAINTED, "ground")
        page.get_by_label("Heat").select_option("none")
        until(page, f"async () => !(await ({PAINTED})('ground'))")
        page.close()


def test_an_event_is_seen_spreading(pages: Watched, stage: Stage) -> None:
    page = opened(pages, stage, "?hide=areas")
    stage.publish("walker", "traffic/seen", "slow", place=PLACE, reach=500)
    assert until(page, PAINTED, "happening")
    until(page, f"async () => !(await ({PAINTED})('happening'))")


def test_an_explanation_is_written_for_people(pages: Watched) -> None:
    pages.expect("404")
    terms = [
        ("frame", "published 2026-11-18T20:14:21.123456Z"),
        ("content", 'near(destination, 500): is {"point": [8.6512, 49.8728]}'),
        ("content", 'under(transport, "/vehicle"): is {"path": "/foot"}'),
        ("content", 'likes: is {"tags": ["tea", "{odd}"]}'),
    ]
    children = [{"ok": False, "what": what, "text": text, "children": []} for what, text in terms]
    root = {"ok": False, "what": "delivered", "text": "", "children": children}
    with moving_points(3) as server:
        server.points.answers["api/explain"] = {"delivered": False, "tree": root, "note": None}
        seen: dict[str, Any] = {
            "client": "walker-1",
            "position": None,
            "subscriptions": [],
            "scheme": "RADIAL",
            "cells": None,
            "cell": None,
        }
        going = {"destination": '{"point": [8.6512, 49.8728]}'}
        contexts = [{"id": "me", "attributes": going}]
        server.points.answers["api/client"] = seen | {"contexts": contexts, "sent": [], "withheld": []}
        page = pages.open(f"{server.url}?client=walker-1&event=e-1")
        text = page.locator("#explanation .text")
        expect(text).to_have_count(4)
        assert re.fullmatch(r"published (\d+ \w+, )?\d\d:\d\d:\d\d", text.nth(0).inner_text())
        expect(text.nth(1)).to_have_text("near(destination, 500): is 49.87280, 8.65120")
        expect(text.nth(2)).to_have_text('under(transport, "/vehicle"): is /foot')
        expect(text.nth(3)).to_contain_text("tea")
        expect(page.locator("#eyes-body .facts")).to_contain_text("49.87280, 8.65120")
        page.close()


def test_a_proximity_is_drawn_and_moves_with_who_announced_it(pages: Watched, stage: Stage) -> None:
    walker = stage.people["walker"]
    stage.do(walker.announce("traffic/siren", 400))
    north = """async () => (await import("./main.js")).map.shapes[0]?.shape.coordinates[0][0][1]"""
    try:
        page = opened(pages, stage, "?client=walker")
        expect(page.locator("#eyes-body")).to_contain_text("traffic/siren")
        expect(page.locator("#eyes-body")).to_contain_text("within 400 m")
        first = until(page, north)
        until(page, f"async (first) => (await ({north})()) > first", first)
        assert until(page, PAINTED, "happening")
    finally:
        stage.do(walker.unannounce("traffic/siren"))
