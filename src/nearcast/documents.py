"""Documents of which a section is made from the code."""

from __future__ import annotations

from typing import Final

from nearcast.errors import InvalidInput

END: Final = "<!-- do not edit above -->\n"


def with_section(text: str, begin: str, section: str) -> str:
    """The document with what stands between ``begin`` and ``END`` as it should be."""
    before, begun, rest = text.partition(begin)
    _, ended, after = rest.partition(END)
    if not (begun and ended):
        raise InvalidInput(f"the document has no section between {begin.strip()} and {END.strip()}")
    return f"{before}{begin}\n{section}\n{END}{after}"
