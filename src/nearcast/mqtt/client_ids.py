"""Client ids for whoever brings none: nobody comes back by them once their session is over."""

from __future__ import annotations

import re
import secrets
from typing import Final

_BYTES: Final = 8
_GENERATED: Final = re.compile(rf"nearcast-[0-9a-f]{{{2 * _BYTES}}}")


def generated() -> str:
    return f"nearcast-{secrets.token_hex(_BYTES)}"


def is_generated(client: str) -> bool:
    return _GENERATED.fullmatch(client) is not None
