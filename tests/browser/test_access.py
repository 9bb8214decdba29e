"""Who may look: the log-in form, what it says, and that nothing is shown to who may not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import Watched
from tests.browser.moving_points import moving_points
from tests.browser.stage import Stage, staged

from nearcast.broker.access.users import add_user

RULES: Final = """
[access]
anonymous = "never"
passwords = "users"
[[access.rule]]
users = ["root"]
publish = ["#"]
subscribe = ["#"]
plans = true
[[access.rule]]
users = ["guest"]
subscribe = ["#"]
"""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("access")
    add_user(folder / "users", "root", "a long word")
    add_user(folder / "users", "guest", "another word")
    with staged(folder, RULES, "root", "a long word") as set_up:
        set_up.enter("secret-person")
        yield set_up


def test_logging_in_shows_the_map_and_logging_out_hides_it(pages: Watched, stage: Stage) -> None:
    pages.expect("401")
    page = pages.open(stage.page)
    page.wait_for_selector("html[data-state=login]")
    expect(page.get_by_label("User")).to_be_focused()
    page.get_by_label("User").fill("root")
    page.get_by_label("Password").fill("a wrong word")
    page.get_by_role("button", name="Log in").click()
    expect(page.locator("#login-problem")).to_have_text("User or password is wrong.")
    page.get_by_label("Password").fill("a long word")
    page.keyboard.press("Enter")
    page.wait_for_selector("html[data-state=live][data-drawn=true]")
    expect(page.locator("#who")).to_have_text("root")
    page.get_by_role("button", name="Log out").click()
    page.wait_for_selector("html[data-state=login]")
    assert "secret-person" not in page.content()


def test_who_lacks_the_right_is_told_so_and_sees_nothing(pages: Watched, stage: Stage) -> None:
    page = pages.open(stage.page)
    page.wait_for_selector("html[data-state=login]")
    page.get_by_label("User").fill("guest")
    page.get_by_label("Password").fill("another word")
    page.keyboard.press("Enter")
    page.wait_for_selector("html[data-state=forbidden]")
    expect(page.locator("#gate-text")).to_contain_text("guest, who may not see this dashboard")
    assert "secret-person" not in page.content()
    page.get_by_role("button", name="Log in as somebody else").click()
    page.wait_for_selector("html[data-state=login]")


def test_who_may_only_look_cannot_command(pages: Watched) -> None:
    pages.expect("404")  # this server has a map and nothing else
    with moving_points(10) as server:
        page = pages.open(f"{server.url}?view=plans")
        expect(page.locator("#no-command")).to_be_visible()
        expect(page.get_by_role("button", name="Exchange")).to_be_disabled()
        expect(page.get_by_role("button", name="Apply")).to_be_disabled()
        page.close()
