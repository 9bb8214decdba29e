"""Topics and filters as clients write them that cannot send properties."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote

from nearcast.mqtt.names import MARK, PREFIX


def with_prefix(rest: str, properties: Iterable[tuple[str, str]]) -> str:
    """The topic or filter with the properties as its options."""
    options = ";".join(
        f"{quote(name.removeprefix(MARK), safe='')}={quote(value, safe=',:()<>.-_~')}" for name, value in properties
    )
    return f"{PREFIX}{options}/{rest}"
