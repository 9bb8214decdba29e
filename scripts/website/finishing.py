"""What a built site still needs: nothing from elsewhere, and links that lead somewhere."""

from __future__ import annotations

import os
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

_FROM_ELSEWHERE: Final = re.compile(r'<script src="https?://[^"]*"[^>]*></script>')
_WORKER: Final = '<script src="{}assets/file-worker.js"></script>'


def make_self_contained(site: Path) -> None:
    """Browsers give pages of the file system no worker, which search needs; Zensical would fetch a substitute, we bring one."""
    for page in site.rglob("*.html"):
        up = "../" * (len(page.relative_to(site).parts) - 1)
        text = page.read_text()
        page.write_text(_FROM_ELSEWHERE.sub(_WORKER.format(up), text))


class _Page(HTMLParser):
    """Its anchors, where its links lead, and what it loads."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = {""}
        self.links: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attributes}
        self.anchors.update(said[name] for name in ("id", "name") if name in said)
        if tag == "a" and "href" in said:
            self.links.append(said["href"])
        elif "src" in said:
            self.loads.append(said["src"])
        elif tag == "link" and said.get("rel") != "canonical":
            self.loads.append(said["href"])


def broken_links(site: Path) -> list[str]:
    """Links that lead nowhere, and whatever a page would load from elsewhere."""
    pages = {path: _read(path) for path in sorted(site.rglob("*.html")) if path.name != "404.html"}
    problems = []
    for path, page in pages.items():
        for target in page.links + page.loads:
            place = urlsplit(target)
            name = path.relative_to(site)
            if place.scheme in {"http", "https"} or place.netloc:
                if target in page.loads:
                    problems.append(f"{name}: loads {target}")
                continue
            if place.scheme:  # data:, mailto:
                continue
            there = Path(os.path.normpath(path.parent / unquote(place.path))) if place.path else path
            if there.is_dir():
                there /= "index.html"
            if not there.exists():
                problems.append(f"{name}: {target} leads nowhere")
            elif there in pages and unquote(place.fragment) not in pages[there].anchors:
                problems.append(f"{name}: {target} names no heading")
    return sorted(set(problems))


def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text())
    return page
