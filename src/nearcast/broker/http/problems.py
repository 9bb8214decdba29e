"""Errors as problem documents (RFC 9457)."""

from __future__ import annotations

import logging
from typing import Any, Final

from litestar import Request, Response
from litestar.exceptions import HTTPException

from nearcast.broker.core import Broker
from nearcast.errors import (
    ChangedMeanwhile,
    Denied,
    InvalidInput,
    JournalFailed,
    NearcastError,
    NotAuthenticated,
    OffsetTrimmed,
    QuotaExceeded,
    Refused,
    TransitionFailed,
    UnknownName,
)
from nearcast.model.time import MICROSECONDS

log: Final = logging.getLogger(__name__)


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
        case TransitionFailed() | ChangedMeanwhile():
            return 409
        case JournalFailed():
            return 503
        case _:
            return 500


def retry_after(error: NearcastError) -> dict[str, str]:
    """For whoever was too fast, in whole seconds, if it is known when it may ask again."""
    wait = error.wait if isinstance(error, QuotaExceeded) else 0
    return {"Retry-After": str(-(-wait // MICROSECONDS))} if wait else {}


def headers_of(error: NearcastError) -> dict[str, str]:
    return {"WWW-Authenticate": 'Basic realm="nearcast"'} if status_of(error) == 401 else retry_after(error)


def problem_of(error: NearcastError) -> dict[str, Any]:
    return {"type": "about:blank", "title": type(error).__name__, "status": status_of(error), "detail": str(error)}


def counted(broker: Broker, request: Request[Any, Any, Any], error: NearcastError) -> None:
    """Whoever may not is counted with those whom the other listeners refuse."""
    if isinstance(error, Refused):
        broker.services.refusals.add_error(str(request.url.scheme), error)


def told(broker: Broker, request: Request[Any, Any, Any], error: NearcastError) -> Response[dict[str, Any]]:
    counted(broker, request, error)
    headers = headers_of(error)
    return Response(
        problem_of(error), status_code=status_of(error), media_type="application/problem+json", headers=headers
    )


def failed(request: Request[Any, Any, Any], error: Exception) -> Response[dict[str, Any]]:
    """A mistake of ours: in the log, and not on the wire."""
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    problem = {
        "type": "about:blank",
        "title": "Failed",
        "status": 500,
        "detail": "the broker made a mistake; see its log",
    }
    return Response(problem, status_code=500, media_type="application/problem+json")


def told_of_depth(_request: Request[Any, Any, Any], _error: RecursionError) -> Response[dict[str, Any]]:
    """JSON within JSON, a hundred thousand times: not our mistake, and no page of the log for each."""
    problem = {"type": "about:blank", "title": "Bad Request", "status": 400, "detail": "the body nests too deeply"}
    return Response(problem, status_code=400, media_type="application/problem+json")


def told_by_framework(request: Request[Any, Any, Any], error: HTTPException) -> Response[dict[str, Any]]:
    if error.status_code >= 500:
        return failed(request, error)
    problem = {
        "type": "about:blank",
        "title": type(error).__name__,
        "status": error.status_code,
        "detail": error.detail,
    }
    headers = error.headers or {}  # such as Allow
    return Response(problem, status_code=error.status_code, media_type="application/problem+json", headers=headers)
