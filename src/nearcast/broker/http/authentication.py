"""Who is asking."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from litestar import Request

from nearcast.broker.access import Access, Peer, Principal
from nearcast.broker.http.browsers import check_nameless
from nearcast.errors import NotAuthenticated

CLIENT: str = "http"


async def principal_of(access: Access, request: Request[Any, Any, Any]) -> Principal:
    """By HTTP Basic, or by a token (Bearer); without, as the rules for anonymous clients say."""
    user, password = credentials_in(request.headers.get("authorization"))
    if not user and not password:
        check_nameless(request)
    address = request.client.host if request.client else ""
    peer = Peer(address, request.client.port if request.client else 0, request.url.scheme == "https")
    return await access.authenticate(CLIENT, user, password, peer)


def credentials_in(header: str | None) -> tuple[str | None, bytes | None]:
    """User and password of an Authorization header; nobody's without one.  A token is a password that names its user itself."""
    if header is None:
        return None, None
    scheme, _, token = header.partition(" ")
    try:
        if scheme.lower() == "bearer":
            return None, token.strip().encode()
        if scheme.lower() != "basic":
            raise NotAuthenticated("only HTTP Basic and Bearer are understood")
        user, _, password = base64.b64decode(token, validate=True).partition(b":")
        return user.decode(), password
    except (binascii.Error, UnicodeDecodeError):
        raise NotAuthenticated("the Authorization header cannot be read") from None
