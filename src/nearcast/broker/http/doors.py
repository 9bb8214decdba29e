"""Who is asking, and how errors are told."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from litestar import Request, Response
from litestar.exceptions import HTTPException

from nearcast.broker.access import Access, Peer, Principal
from nearcast.errors import (
    Denied,
    InvalidInput,
    JournalFailed,
    NearcastError,
    NotAuthenticated,
    OffsetTrimmed,
    QuotaExceeded,
    UnknownName,
)

CLIENT: str = "http"


async def principal_of(access: Access, request: Request[Any, Any, Any]) -> Principal:
    """By HTTP Basic; without, as the rules for anonymous clients say."""
    user, password = _credentials(request.headers.get("authorization"))
    address = request.client.host if request.client else ""
    peer = Peer(address, request.client.port if request.client else 0, request.url.scheme == "https")
    return await access.authenticate(CLIENT, user, password, peer)


def _credentials(header: str | None) -> tuple[str | None, bytes | None]:
    if header is None:
        return None, None
    scheme, _, token = header.partition(" ")
    try:
        if scheme.lower() != "basic":
            raise NotAuthenticated("only HTTP Basic is understood")
        user, _, password = base64.b64decode(token, validate=True).partition(b":")
        return user.decode(), password
    except (binascii.Error, UnicodeDecodeError):
        raise NotAuthenticated("the Authorization header cannot be read") from None


def status_of(error: NearcastError) -> int:
    match error:
        case NotAuthenticated():
            return 401
        case Denied():
            return 403
        case UnknownName():
            return 404
        case QuotaExceeded():
            return 429
        case InvalidInput():
            return 400
        case OffsetTrimmed():
            return 410
        case JournalFailed():
            return 503
        case _:
            return 500


def told(_request: Request[Any, Any, Any], error: NearcastError) -> Response[dict[str, Any]]:
    """As a problem document (RFC 9457)."""
    status = status_of(error)
    headers = {"WWW-Authenticate": 'Basic realm="nearcast"'} if status == 401 else {}
    problem = {"type": "about:blank", "title": type(error).__name__, "status": status, "detail": str(error)}
    return Response(problem, status_code=status, media_type="application/problem+json", headers=headers)


def told_by_framework(_request: Request[Any, Any, Any], error: HTTPException) -> Response[dict[str, Any]]:
    problem = {
        "type": "about:blank",
        "title": type(error).__name__,
        "status": error.status_code,
        "detail": error.detail,
    }
    return Response(problem, status_code=error.status_code, media_type="application/problem+json")
