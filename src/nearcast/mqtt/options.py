"""``$near/<options>/<topic or filter>``: properties for clients that cannot send any.

Options are ``name=value`` joined by ``;``, values percent-encoded, names as those of the properties without ``nc-``.
Here they become the properties they stand for, so that the rest of the contract knows only those.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

from nearcast.errors import InvalidProperty
from nearcast.mqtt.names import MARK, PREFIX

Properties = list[tuple[str, str]]

_BROKEN_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


def without_prefix(text: str, known: frozenset[str]) -> tuple[str, Properties]:
    """The topic or filter behind the prefix, and the properties that its options stand for.

    A name in ``known`` (without ``nc-``) is nearcast's; any other is kept as it is.
    """
    options, slash, rest = text[len(PREFIX) :].partition("/")
    if not slash or not rest:
        raise InvalidProperty(f"{text!r:.80} ends before its topic: write {PREFIX}<options>/<topic or filter>")
    properties = []
    for option in options.split(";") if options else ():
        name, equals, value = option.partition("=")
        if not equals or not name:
            raise InvalidProperty(f"in {text!r:.80} the option {option!r} is not of the form name=value")
        name = _decoded(name)
        properties.append((MARK + name if MARK + name in known else name, _decoded(value)))
    return rest, properties


def _decoded(text: str) -> str:
    broken = _BROKEN_PERCENT.search(text)
    if broken is not None:
        raise InvalidProperty(
            f"in the option {text!r:.60} a '%' is not followed by two hexadecimal digits; a '%' itself is %25"
        )
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise InvalidProperty(f"the option {text!r:.60} is not percent-encoded UTF-8") from None
