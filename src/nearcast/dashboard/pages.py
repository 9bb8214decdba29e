"""The page, its style and its modules: files of this package.

Only files that are there when they are asked for, below the folder, of a known kind; they are small, and kept in memory until they change.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from litestar import Request, Response, get
from litestar.params import FromPath
from litestar.response import Redirect

from nearcast.errors import UnknownName

STATIC: Final = Path(__file__).parent / "static"
INDEX: Final = "index.html"
KINDS: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class _Page:
    version: tuple[int, int]
    body: bytes
    tag: str


_KNOWN: Final[dict[Path, _Page]] = {}


@get("/", include_in_schema=False)
async def home() -> Redirect:
    """Whoever comes to the broker by a browser wants the map."""
    return Redirect("/dashboard/")


@get("/", include_in_schema=False)
async def index(request: Request[Any, Any, Any]) -> Response[bytes] | Redirect:
    if not request.scope["raw_path"].endswith(b"/"):  # addresses in the page are relative to its folder
        return Redirect("/dashboard/")
    return _answer(request, STATIC / INDEX)


@get("/{path:path}", include_in_schema=False)
async def page(request: Request[Any, Any, Any], path: FromPath[str]) -> Response[bytes]:
    file = STATIC / path.strip("/")
    if not _is_below(file):
        raise UnknownName("there is no such page")
    return _answer(request, file)


def _is_below(file: Path) -> bool:
    try:
        return file.resolve().is_relative_to(STATIC.resolve())
    except ValueError:  # a NUL in its name
        return False


def _answer(request: Request[Any, Any, Any], file: Path) -> Response[bytes]:
    kind = KINDS.get(file.suffix)
    found = None if kind is None else _read(file)
    if found is None:
        raise UnknownName("there is no such page")
    headers = {"etag": found.tag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == found.tag:
        return Response(b"", status_code=304, headers=headers)
    return Response(found.body, media_type=kind, headers=headers)


def _read(file: Path) -> _Page | None:
    try:
        state = os.stat(file)  # noqa: PTH116 - at every request
        version = state.st_mtime_ns, state.st_size
        known = _KNOWN.get(file)
        if known is None or known.version != version:
            body = file.read_bytes()
            known = _KNOWN[file] = _Page(version, body, f'"{hashlib.sha256(body).hexdigest()[:24]}"')
    except OSError:
        return None
    return known
