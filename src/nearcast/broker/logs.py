"""Logs: for people, or one JSON object a line for machines."""

from __future__ import annotations

import logging
import sys
from typing import Final

import msgspec

from nearcast.broker.settings import LogSettings

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
