"""What the page is made of: nothing that could make markup of a stranger's words, nothing from elsewhere, nothing left out of the wheel."""

from __future__ import annotations

import re
import tomllib

from tests.browser.moving_points import KINDS, STATIC
from tests.documents import ROOT

MARKUP = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|srcdoc")
ELSEWHERE = re.compile(r"https?://(?!www\.w3\.org/2000/svg)")


def test_words_never_become_markup() -> None:
    modules = sorted(STATIC.glob("*.js"))
    assert len(modules) > 20
    assert [module.name for module in modules if MARKUP.search(module.read_text())] == []


def test_nothing_is_fetched_from_elsewhere_and_nothing_runs_in_line() -> None:
    files = [path for path in sorted(STATIC.iterdir()) if path.suffix in KINDS]
    assert [path.name for path in files if ELSEWHERE.search(path.read_text())] == []
    page = (STATIC / "index.html").read_text()
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=|javascript:", page) == []


def test_every_module_that_is_imported_is_there_and_every_one_there_is_used() -> None:
    imported = {"main.js", "theme.js"}
    for module in STATIC.glob("*.js"):
        imported |= set(re.findall(r'from "\./([\w.]+)"', module.read_text()))
    assert imported == {module.name for module in STATIC.glob("*.js")}


def test_the_wheel_takes_the_whole_package_with_its_static_files() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel == {"packages": ["src/nearcast"]}
