"""What all pages have in common."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from typing import Final

from nearcast.experiment.checks import Verdict
from nearcast.experiment.site.markup import Content, Html, element, html

INDEX: Final = "index.html"
STATEMENTS: Final = "statements.html"
STYLE: Final = "report.css"
SCRIPT: Final = "report.js"

MEANING: Final[dict[Verdict, str]] = {
    "reproduced": "all that was measured is within what was accepted",
    "deviates": "at least one number is not; the table says which, and by how much",
    "not checkable": "the text does not say it; what was checked instead is listed",
    "not run": "a run that it needs is missing, was too short for it, or did not come to its end",
}
_SIGN: Final[dict[Verdict, str]] = {"reproduced": "✓", "deviates": "≠", "not checkable": "?", "not run": "–"}


@dataclass(frozen=True, slots=True)
class Link:
    """To another page: where it lies, and what it is called."""

    target: str
    text: str


def asset(name: str) -> str:
    """The text of the style sheet or of the script."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def page(title: str, *content: Content, path: tuple[Link, ...] = (), current: str = "", alone: bool = False) -> str:
    """A whole document; one that stands ``alone`` has its style within, and no other pages around it."""
    style = element("style", Html(asset(STYLE))) if alone else element("link", rel="stylesheet", href=STYLE)
    head = html(
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="generator", content=f"nearcast {version('nearcast')}"),
        element("title", title),
        style,
        None if alone else element("script", src=SCRIPT, defer=True),
    )
    body = html(
        element("a", "To the content", class_="skip", href="#content"),
        None if alone else _header(current),
        element("main", _path(path) if path else None, *content, id="content"),
        element("footer", element("p", f"Written by nearcast {version('nearcast')}, nearcast experiment report.")),
    )
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>{head}</head>\n<body>\n{body}\n</body>\n</html>\n'


def pill(verdict: Verdict, *, count: int | None = None) -> Html:
    """A verdict, told apart by its word and its sign, not only by its colour."""
    sign = element("span", _SIGN[verdict], aria_hidden="true")
    shown = verdict if count is None else f"{count} {verdict}"
    return element("span", sign, " ", shown, class_=f"pill {verdict.replace(' ', '-')}")


def table(columns: tuple[str, ...], *bodies: Content, caption: Content = None, class_: str | None = None) -> Html:
    names = [element("th", name, scope="col") for name in columns]
    return element(
        "table",
        element("caption", caption) if caption else None,
        element("thead", element("tr", *names)),
        *bodies,
        class_=class_,
    )


def body(*rows: Content, **attributes: str | None) -> Html:
    return element("tbody", *rows, **attributes)


def row(*cells: Content, **attributes: str | None) -> Html:
    return element("tr", *cells, **attributes)


def cell(column: str, *content: Content, **attributes: str | int | None) -> Html:
    """``column`` is said beside it where there is no room for columns."""
    return element("td", *content, data_label=column, **attributes)


def heading(*content: Content, scope: str = "row", **attributes: str | None) -> Html:
    return element("th", *content, scope=scope, **attributes)


def _header(current: str) -> Html:
    links = [
        element("a", text, href=target, aria_current="page" if target == current else None)
        for target, text in ((INDEX, "Experiments"), (STATEMENTS, "All statements"))
    ]
    brand = element("span", "nearcast", class_="brand")
    return element("header", element("nav", brand, *links, aria_label="Pages"))


def _path(path: tuple[Link, ...]) -> Html:
    items = [element("li", element("a", link.text, href=link.target)) for link in path]
    return element("nav", element("ol", *items), aria_label="Where you are", class_="path")
