"""Who is asking."""

from __future__ import annotations

import base64
import binascii
from typing import Final, cast

from litestar.types import Scope

from nearcast.broker.access import Access, Peer, Principal
from nearcast.broker.http.browsers import Asking, check_nameless
from nearcast.errors import NotAuthenticated

CLIENT: str = "http"


_PRINCIPAL: Final = "nearcast.principal"


def keep(access: Access, scope: Scope, principal: Principal) -> None:
    """That this is who asks was found out."""
    cast("dict[str, object]", scope)[_PRINCIPAL] = access.generation, principal


def _kept(access: Access, scope: Scope) -> Principal | None:
    """Unless it would not be found out again: bodies take their time, and users and rules change meanwhile."""
    match cast("dict[str, object]", scope).get(_PRINCIPAL):
        case (access.generation, Principal() as principal) if access.holds(principal):
            return principal
        case _:
            return None


async def principal_of(access: Access, request: Asking) -> Principal:
    """By HTTP Basic, or by a token (Bearer); without, as the rules for anonymous clients say."""
    kept = _kept(access, request.scope)
    if kept is not None:
        return kept
    user, password = credentials_in(request.headers.get("authorization"))
    if not user and not password:
        check_nameless(request)
    address = request.client.host if request.client else ""
    peer = Peer(address, request.client.port if request.client else 0, request.scope["scheme"] == "https")
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
