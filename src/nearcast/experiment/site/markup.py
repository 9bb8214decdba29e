"""Markup that is well-formed and escaped because it cannot be otherwise: text becomes markup here, and nowhere else."""

from __future__ import annotations

import re
from html import escape
from typing import Final, TypeAlias


class Html(str):
    """Markup; any other string is text."""

    __slots__ = ()


Content: TypeAlias = "str | Html | int | list[Content] | None"

_UNPRINTABLE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""What may not stand in a page, not even escaped."""

EMPTY: Final = frozenset({"meta", "link", "img", "input", "br"})
"""Elements that never have content."""


def html(*content: Content) -> Html:
    """All of it together; what is no markup yet is escaped, and None is nothing."""
    return Html("".join(_one(each) for each in content))


def element(name: str, /, *content: Content, **attributes: str | int | bool | None) -> Html:
    """``class_`` is the attribute ``class``, ``data_verdict`` is ``data-verdict``; None and False leave an attribute out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_escaped("" if value is True else str(value))}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in EMPTY:
        return Html(f"<{name}{written} />")
    return Html(f"<{name}{written}>{html(*content)}</{name}>")


def _one(content: Content) -> str:
    if content is None:
        return ""
    if isinstance(content, list):
        return html(*content)
    return content if isinstance(content, Html) else _escaped(str(content))


def _escaped(text: str) -> str:
    return escape(_UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text))
