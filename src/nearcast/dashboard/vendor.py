"""Libraries for the browser that come inside of Python packages on which nearcast depends: nothing is fetched from elsewhere."""

from __future__ import annotations

from typing import Final

VENDOR: Final[dict[str, tuple[str, str]]] = {}
"""Below ``/dashboard/vendor/``: of each name, the package and the path of the file inside it."""
