"""The broker by HTTP.  Whatever is asked here may be asked again: so a broker that is busy, or starting anew, is waited for."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import random
import time
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from nearcast.errors import ConnectionFailed, Denied, InvalidInput, NearcastError, OffsetTrimmed, TimedOut
from nearcast.pipeline.source.options import BrokerAddress

ARROW: Final = "application/vnd.apache.arrow.stream"
PATIENCE: Final = 60.0
"""Seconds in which the broker is expected to come back."""

_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 2.0
_BUSY: Final = frozenset({429, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class BrokerLink:
    """A connection for each question: they are few and large, and nothing is left open in a worker that is killed."""

    address: BrokerAddress
    patience: float = PATIENCE

    def extent(self) -> dict[str, int]:
        """``oldest``, ``exported`` and ``stored``: see the broker's ``JournalExtent``."""
        found: dict[str, int] = json.loads(self._asked("GET", "/journal/extent"))
        return found

    def stretches(self, first: int, last: int, kind: str, since: int | None, until: int | None) -> bytes:
        """An Arrow stream, as ``journal.tail`` makes it; ``OffsetTrimmed`` if some of it is no longer there."""
        wanted = {"first": first, "last": last, "kinds": kind, "since": since, "until": until}
        query = urlencode({name: value for name, value in wanted.items() if value is not None})
        return self._asked("GET", f"/journal/stretches?{query}")

    def post(self, path: str, body: bytes, media_type: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._asked("POST", path, body, media_type))
        return found

    def _asked(self, method: str, path: str, body: bytes | None = None, media_type: str | None = None) -> bytes:
        deadline = time.monotonic() + self.patience
        pause = _FIRST_PAUSE
        while True:
            try:
                status, answer = self._request(method, path, body, media_type)
                if status not in _BUSY:
                    return _accepted(self.address.url, status, answer)
                problem = _detail(answer)
            except (OSError, http.client.HTTPException) as error:
                problem = str(error) or type(error).__name__
            if time.monotonic() + pause > deadline:
                raise ConnectionFailed(
                    f"the broker at {self.address.url} has not answered for {self.patience:.0f} s ({problem}); "
                    "is it running, with HTTP on that port?"
                )
            # Not all tasks of a stage at the same moment.
            time.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _request(self, method: str, path: str, body: bytes | None, media_type: str | None) -> tuple[int, bytes]:
        headers = {} if media_type is None else {"Content-Type": media_type}
        if self.address.user is not None:
            secret = f"{self.address.user}:{self.address.password or ''}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(secret).decode()}"
        parts = urlsplit(self.address.url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        with contextlib.closing(kind(parts.hostname or "", parts.port, timeout=self.patience)) as connection:
            connection.request(method, f"{parts.path}{path}", body, headers)
            response = connection.getresponse()
            return response.status, response.read()


def _accepted(url: str, status: int, answer: bytes) -> bytes:
    if status < 300:
        return answer
    detail = _detail(answer)
    match status:
        case 401 | 403:
            error: NearcastError = Denied(f"{url}: {detail}; set the options user and password of an operator")
        case 410:
            error = OffsetTrimmed(f"{url}: {detail}", -1)
        case 408:
            error = TimedOut(f"{url}: {detail}")
        case _ if status < 500:
            error = InvalidInput(f"{url} refused it: {detail}")
        case _:
            error = NearcastError(f"{url} failed ({status}): {detail}")
    raise error


def _detail(answer: bytes) -> str:
    try:
        return str(json.loads(answer)["detail"])
    except (ValueError, KeyError, TypeError):
        return answer[:200].decode(errors="replace")
