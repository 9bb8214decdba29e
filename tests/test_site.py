"""The site of docs/ builds without a warning, is whole, and loads nothing from elsewhere."""

from __future__ import annotations

import json
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.documents import ROOT

import nearcast
from nearcast.cli.app import app

sys.path.insert(0, str(ROOT))
from scripts.website.building import build
from scripts.website.finishing import broken_links, make_self_contained
from scripts.website.staging import relinked


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("website")
    assert build(folder) == []
    return folder / "site"


class _Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def handle_data(self, data: str) -> None:
        self.text += data


def text_of(page: Path) -> str:
    words = _Words()
    words.feed(page.read_text())
    return words.text


def test_every_document_is_a_page_that_can_be_found(site: Path) -> None:
    home = (site / "index.html").read_text()
    documents = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert len(documents) > 30
    for page in documents | {Path("contributing.html"), Path("changelog.html")}:
        assert (site / page).is_file()
    # Tabs name the first page of their part; the other pages are named by these.
    named = home + "".join((site / page).read_text() for page in documents)
    assert [page.name for page in documents if f"{page.name}" not in named] == []


def commands(path: str, command: Any) -> list[tuple[str, Any]]:
    inner = getattr(command, "commands", {})
    return [(path, command), *(each for name, it in inner.items() for each in commands(f"{path} {name}", it))]


def test_the_command_line_is_there_with_all_options(site: Path) -> None:
    page = text_of(site / "reference" / "cli.html")
    for path, command in commands("nearcast", typer.main.get_command(app)):
        assert path in page
        for parameter in command.params:
            if parameter.param_type_name == "option" and not parameter.hidden:
                assert parameter.opts[0] in page, path


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    page = (site / "reference" / "python.html").read_text()
    missing = [name for name in nearcast.__all__ if name != "__version__" and f'id="nearcast.{name}"' not in page]
    assert not missing


def test_http_and_settings_say_what_there_is(site: Path) -> None:
    paths = json.loads((site / "reference" / "openapi.json").read_text())["paths"]
    http, settings = text_of(site / "reference" / "http.html"), text_of(site / "reference" / "settings.html")
    assert "/events" in paths
    assert all(f"{method.upper()} {path}" in http for path, methods in paths.items() for method in methods)
    for said in ("[listen]", "tls_port", "[[access.rule]]", "custody_bytes", "256 MiB", "shuffle_partitions"):
        assert said in settings


def test_search_knows_the_pages(site: Path) -> None:
    assert "slow_consumer" in (site / "search.json").read_text()


def test_what_leads_nowhere_or_is_loaded_from_elsewhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<script src="https://cdn/x.js"></script><p id="here"><a href="b.html#there">b</a><a href="c.html">c</a>'
        '<a href="#here">a</a><a href="https://example.org">out</a><img src="no.svg">'
    )
    (tmp_path / "b.html").write_text("<p>b")
    assert broken_links(tmp_path) == [
        "a.html: b.html#there names no heading",
        "a.html: c.html leads nowhere",
        "a.html: loads https://cdn/x.js",
        "a.html: no.svg leads nowhere",
    ]
    make_self_contained(tmp_path)
    assert "cdn" not in (tmp_path / "a.html").read_text()


def test_links_are_those_of_the_site_and_code_stays_as_it_is(tmp_path: Path) -> None:
    text = "[a](../CONTRIBUTING.md#habits) [b](../src/nearcast/errors.py) [c](../src/nearcast)\n```py\n[a](../README.md)\n```\n"
    changed = relinked(text, ROOT / "docs" / "mqtt.md", tmp_path)
    assert changed == (
        "[a](contributing.md#habits) [b](source/src/nearcast/errors.py.txt) c\n```py\n[a](../README.md)\n```\n"
    )
    assert (tmp_path / "source/src/nearcast/errors.py.txt").read_text().startswith('"""Everything a caller may catch')
