#!/usr/bin/env python3
"""The pictures of the live map in README and docs, taken from the running demo: ``make screenshots``.

Starts ``nearcast demo --headless`` and looks at it with Chromium (scripts/install-browser), as anybody would.  Each picture is reduced to
a palette, so that all of them stay small.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import shutil
import subprocess
import sys
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

IMAGES: Final = Path(__file__).parents[1] / "docs" / "images"
PICTURES: Final = {
    "dashboard-dark": "The live map in the dark: market day in the middle of Helsinki",
    "dashboard-light": "The same in the light, with the density of people",
    "dashboard-explanation": "Why somebody did not get an event",
    "dashboard-transitions": "What ran when: transitions on the timelines",
    "dashboard-phone": "The live map on a phone",
}
"""Name, and what is to be seen."""

LARGEST: Final = 300_000
"""Bytes of a picture."""

LARGEST_TOGETHER: Final = 1_500_000
DESKTOP: Final = {"width": 1360, "height": 850}
PHONE: Final = {"width": 390, "height": 844}
_BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
_ARGUMENTS: Final = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
_PATIENCE: Final = 600.0
"""Seconds; a fresh machine compiles, a busy one takes its time."""

SPREADING: Final = """async () => {
  const { spread } = (await import("./main.js")).map;
  return spread.active(performance.now());
}"""
LIVELY: Final = 5
"""Events that are spreading in the picture of a market day."""

_COLOURS: Final = (256, 128, 64, 32)


@dataclass
class Demo:
    """The running demo, and what it has said."""

    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)
    said: threading.Condition = field(default_factory=threading.Condition)

    def read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            print(line, end="", flush=True)
            with self.said:
                self.lines.append(line)
                self.said.notify_all()
        with self.said:
            self.lines.append("")
            self.said.notify_all()

    def wait_for(self, words: str) -> re.Match[str]:
        """The first line with these words; whatever ends before is a failure."""
        seen = 0
        with self.said:
            while True:
                for line in self.lines[seen:]:
                    if found := re.search(words, line):
                        return found
                    if not line:
                        raise SystemExit(f"the demo has ended before it said {words!r}")
                seen = len(self.lines)
                if not self.said.wait(_PATIENCE):
                    raise SystemExit(f"the demo did not say {words!r} within {_PATIENCE:.0f} s")


@contextmanager
def demo(seconds: float, arguments: list[str]) -> Iterator[Demo]:
    command = [str(Path(sys.executable).with_name("nearcast")), "demo", "--headless", "--seconds", str(seconds)]
    process = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True)
    running = Demo(process)
    threading.Thread(target=running.read, daemon=True).start()
    try:
        yield running
    finally:
        process.terminate()
        process.wait()


def take(live: str, running: Demo, browser: Browser, folder: Path) -> None:
    """All pictures, as the day goes on."""
    watching = _opened(
        browser, live, DESKTOP, theme="dark", view="plans"
    )  # from the beginning: its timelines are its own
    running.wait_for("everybody is there")
    lively = _opened(browser, live, DESKTOP, theme="dark")
    lively.select_option("#colour-by", "role")
    _look(lively, 6_000)
    for _ in range(100):  # on a busy machine there are moments in which nothing happens
        if lively.evaluate(SPREADING) >= LIVELY:
            break
        lively.wait_for_timeout(100)
    _keep(lively, folder, "dashboard-dark")
    light = _opened(browser, live, DESKTOP, theme="light", heat="density")
    _look(light, 4_000)
    _keep(light, folder, "dashboard-light")
    running.wait_for("carries out Spark's plan")
    watching.wait_for_timeout(6_000)  # by then the crowd has followed, and the word of it has gone from the map
    _keep(watching, folder, "dashboard-transitions")
    client, event = _withheld(live)
    why = _opened(browser, live, DESKTOP, theme="dark", client=client, event=event)
    why.wait_for_selector("#explanation:not([hidden])")
    why.wait_for_timeout(1_500)
    _keep(why, folder, "dashboard-explanation")
    phone = _opened(browser, live, PHONE, theme="dark", scale=2)
    _look(phone, 4_000)
    _keep(phone, folder, "dashboard-phone")


def _opened(browser: Browser, live: str, size: Any, scale: float = 1.0, **shown: str) -> Page:
    page = browser.new_context(viewport=size, device_scale_factor=scale).new_page()
    page.goto(f"{live}?{urllib.parse.urlencode(shown)}")
    page.wait_for_selector('html[data-state="live"]')
    return page


def _look(page: Page, milliseconds: float) -> None:
    """So long, from when the first people are there: a busy machine takes its time until then."""
    page.wait_for_selector('html[data-drawn="true"]')
    page.locator("#groups li").first.wait_for()
    page.wait_for_timeout(milliseconds)


def _withheld(live: str) -> tuple[str, str]:
    """A client, and an event that it did not get."""
    sessions = _asked(f"{live}api/sessions?search=walker&limit=50")["rows"]
    for row in sessions:
        seen = _asked(f"{live}api/clients/{urllib.parse.quote(row['client'])}")
        for withheld in seen["withheld"]:
            return row["client"], withheld["event"]
    raise SystemExit("everybody got everything: there is nothing to explain")


def _asked(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(url) as answer:  # noqa: S310 - the demo's own address
        found: dict[str, Any] = json.load(answer)
    return found


def _keep(page: Page, folder: Path, name: str) -> None:
    assert name in PICTURES
    (folder / f"{name}.png").write_bytes(reduced(page.screenshot()))
    page.context.close()


def reduced(png: bytes) -> bytes:
    """The same picture with as many colours as fit into the size that is allowed."""
    from PIL import Image

    picture = Image.open(io.BytesIO(png)).convert("RGB")
    for colours in _COLOURS:
        small = io.BytesIO()
        # Not by the median: rare colours, as those of a mark, would become their neighbours.  Then each is moved to the middle of those that
        # it stands for (kmeans): else large surfaces are darker than they were, and shadows have edges.
        few = picture.quantize(colours, method=Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE)
        few.save(small, "PNG", optimize=True)
        if small.tell() < LARGEST:
            return small.getvalue()
    raise SystemExit(f"a picture takes {small.tell()} bytes even with {colours} colours; {LARGEST} are allowed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=IMAGES, help="folder for the pictures")
    parser.add_argument("--seconds", type=float, default=150.0, help="length of the day in the demo")
    parser.add_argument("demo", nargs="*", help="more arguments for the demo, after --")
    given = parser.parse_args()
    chromium = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if chromium is None:
        raise SystemExit("there is no Chromium here: see scripts/install-browser")
    from playwright.sync_api import sync_playwright

    given.out.mkdir(parents=True, exist_ok=True)
    with demo(given.seconds, given.demo) as running, sync_playwright() as playwright:
        live = running.wait_for(r"live map is at (\S+)")[1]
        browser = playwright.chromium.launch(executable_path=chromium, args=_ARGUMENTS)
        try:
            take(live, running, browser, given.out)
        finally:
            browser.close()
    for name, shown in PICTURES.items():
        print(f"{(given.out / f'{name}.png').stat().st_size:>8,} bytes  {name}.png: {shown}")


if __name__ == "__main__":
    main()
