"""Logs: for people, or one JSON object a line for machines."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from nearcast.broker.settings import LogSettings

log: Final = logging.getLogger(__name__)
_encode: Final = msgspec.json.encode


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S") + f".{int(record.msecs):03d}",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return _encode(line).decode()


def set_up(settings: LogSettings) -> None:
    """To standard error, as everything that is not a result."""
    handler = logging.StreamHandler(sys.stderr)
    if settings.format == "json":
        handler.setFormatter(JsonFormatter())
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(message)s"))
    logger = logging.getLogger("nearcast")
    logger.handlers = [handler]
    logger.setLevel(settings.level.upper())
    logger.propagate = False


class ProblemLog:
    """What is in somebody's way, said when it begins and when it ends.

    Looked at from time to time, and not told at once: what comes and goes with every write would fill the log.
    """

    def __init__(self, problems: Mapping[str, Callable[[], str | None]]) -> None:
        self._problems: Final = problems
        self._said: Final[set[str]] = set()

    def look(self) -> None:
        for name, problem in self._problems.items():
            text = problem()
            if text is not None and name not in self._said:
                self._said.add(name)
                log.error("%s", text)
            elif text is None and name in self._said:
                self._said.discard(name)
                log.warning("the %s can be written again", name)
