"""What every answer below ``/dashboard`` tells the browser: run nothing but what comes from here, and nowhere but on top."""

from __future__ import annotations

from typing import Final

from litestar.types import ASGIApp, Message, Receive, Scope, Send

_ALLOWED: Final = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data: blob:",
    "font-src": "'self'",
    "connect-src": "'self'",
    "worker-src": "'self' blob:",
    "manifest-src": "'self'",
    "frame-ancestors": "'none'",
    "base-uri": "'none'",
    "form-action": "'self'",
}
POLICY: Final = "; ".join(f"{what} {whence}" for what, whence in _ALLOWED.items())
HEADERS: Final[tuple[tuple[bytes, bytes], ...]] = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"geolocation=(), camera=(), microphone=()"),
)
_UNSTORED: Final = (b"cache-control", b"no-store")
"""Of what says how it wants to be kept, that holds; all else is about people's positions, and nobody's cache is to have it."""


def guarded(app: ASGIApp) -> ASGIApp:
    """The same application with these headers on all that it answers, refusals included."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = list(message["headers"])
                if not any(name.lower() == b"cache-control" for name, _ in given):
                    given.append(_UNSTORED)
                message["headers"] = [*given, *HEADERS]
            await send(message)

        await app(scope, receive, with_headers)

    return answer
