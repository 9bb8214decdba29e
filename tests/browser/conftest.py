"""A real browser for the tests of the live map: one for all of them, a fresh context for each, and no error in its console."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Playwright, expect, sync_playwright
from tests.browser.stage import PLACE, Stage, staged

T = TypeVar("T")
NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
ATTACK: Final = "<img src=x onerror=window.hacked=1>"
"""What a stranger may call itself, or its topics."""

LIVE: Final = "html[data-state=live][data-drawn=true]"
PAINTED: Final = """async (name) => {
  const canvas = document.querySelector(`canvas.${name}`);
  if (canvas.hidden || !canvas.width) return 0;
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
  let painted = 0;
  for (let at = 3; at < data.length; at += 4) painted += data[at] > 0;
  return painted;
}"""
"""Pixels that show anything, of a layer of the map: ground, people, labels, happening."""

INSTALL: Final = Path(__file__).parents[2] / "scripts" / "install-browser"

expect.set_options(timeout=30_000)  # a machine under load is slow, not broken

THREAD: Final = ThreadPoolExecutor(1, thread_name_prefix="browser")
"""Playwright keeps an event loop running in its thread; in a thread of its own it does not disturb tests that run theirs."""


def in_thread(act: Callable[[], T]) -> T:
    return THREAD.submit(act).result()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool:
    """Tests of this folder run where the browser is."""
    asked = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    in_thread(lambda: pyfuncitem.obj(**asked))
    return True


def find_chromium() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


@pytest.fixture(scope="session")
def chromium() -> str:
    """Where it is; installed if this machine lets us, as ``make test`` has done already."""
    if find_chromium() is None:
        with (Path(tempfile.gettempdir()) / "nearcast-install-browser.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # other workers want it too
            subprocess.run(["sh", str(INSTALL)], check=False)
    found = find_chromium()
    return there_is(found)


def there_is(chromium: str | None) -> str:
    """Elsewhere tests of the page may be left out; where it is decided what lands they may not."""
    if chromium is None:
        reason = "there is no Chromium here, and it could not be installed: see scripts/install-browser"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    return chromium


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    started = in_thread(lambda: sync_playwright().start())
    yield started
    in_thread(started.stop)


@pytest.fixture(scope="session")
def browser(playwright: Playwright, chromium: str) -> Iterator[Browser]:
    launched = in_thread(lambda: playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS))
    yield launched
    in_thread(launched.close)


class Watched:
    """Pages of one test; what they complain about is a failure, unless the test says that it is expected."""

    def __init__(self, context: BrowserContext) -> None:
        self.context = context
        self.complaints: list[str] = []
        self.expected: tuple[str, ...] = ()

    def open(self, url: str) -> Page:
        page = self.context.new_page()
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.complaints.append(f"uncaught: {error}"))
        page.goto(url)
        return page

    def expect(self, *parts: str) -> None:
        """Refusals that the test asks for: Chromium logs every answer from 400 on."""
        self.expected = parts

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            where = message.location.get("url", "")
            self.complaints.append(f"{message.type}: {message.text} ({where})")

    def unexpected(self) -> list[str]:
        return [each for each in self.complaints if not any(part in each for part in self.expected)]


def watched(browser: Browser, **options: Any) -> Iterator[Watched]:
    options = {"viewport": {"width": 1360, "height": 850}, **options}
    context = in_thread(lambda: browser.new_context(**options))
    pages = Watched(context)
    yield pages
    in_thread(context.close)
    assert pages.unexpected() == []


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A broker with four people: two who want to hear of the traffic, far from each other, one who walks, and a stranger."""
    with staged(tmp_path_factory.mktemp("stage")) as set_up:
        set_up.enter("ada", wants="traffic/#", transport="/vehicle/motorized/car")
        set_up.enter("bob", at=(PLACE[0] + 0.02, PLACE[1]), wants="traffic/#")
        set_up.enter(ATTACK, at=(PLACE[0], PLACE[1] + 0.02), wants=f"{ATTACK}/#", mood=ATTACK)
        set_up.enter("walker")
        set_up.walk("walker")
        yield set_up


def opened(pages: Watched, stage: Stage, query: str = "") -> Page:
    """The page, when it is live and somebody is on the map."""
    page = pages.open(stage.page + query)
    page.wait_for_selector(LIVE)
    return page


def until(page: Page, script: str, argument: Any = None) -> Any:
    """Wait for what an asynchronous function in the page gives; it is asked again until that is true."""
    for _ in range(600):
        if found := page.evaluate(script, argument):
            return found
        page.wait_for_timeout(50)
    raise AssertionError(f"not true after 30 s: {script}")


@pytest.fixture
def pages(browser: Browser) -> Iterator[Watched]:
    yield from watched(browser)


@pytest.fixture
def phone(browser: Browser) -> Iterator[Watched]:
    """390 pixels wide, and touched."""
    yield from watched(browser, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)


@pytest.fixture(params=["light", "dark"])
def system(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Watched]:
    """A machine whose owner likes it light, and one whose owner likes it dark."""
    yield from watched(browser, color_scheme=request.param)
