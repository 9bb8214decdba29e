"""Logs: for people, or one JSON object a line for machines."""

from __future__ import annotations

import copy
import logging
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from nearcast.broker.settings import LogSettings

log: Final = logging.getLogger(__name__)
_encode: Final = msgspec.json.encode


_OPENING: Final = re.compile(r"""(?<!\w)b?['"]""")
"""Not the apostrophe within a word."""


def unquoted(text: str) -> str:
    """A message up to the first name, topic or content in it: what clients say stands in quotation marks.

    A log outlives the people in it, and nobody can be erased from one: it tells clients by their identities.  Not only the
    quotation is left out: long ones are cut off, and where such a one ends nobody can tell.
    """
    found = _OPENING.search(text)
    return text if found is None else f"{text[: found.start()]}'...'"


class TextFormatter(logging.Formatter):
    """One line, and what comes of an exception."""

    def format(self, record: logging.LogRecord) -> str:
        plain = copy.copy(record)
        plain.msg, plain.args = unquoted(record.getMessage()), None
        return super().format(plain)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the name it has there
        lines = super().formatException(ei).splitlines()
        # Files and code stay as they are: they are ours.
        return "\n".join(line if line.startswith("  ") else unquoted(line) for line in lines)


class JsonFormatter(TextFormatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S") + f".{int(record.msecs):03d}",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": unquoted(record.getMessage()),
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
        handler.setFormatter(TextFormatter("%(asctime)s %(levelname)-7s %(message)s"))
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
