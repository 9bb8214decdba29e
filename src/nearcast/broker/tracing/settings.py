"""What is traced, and where it goes."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from nearcast.errors import InvalidSettings
from nearcast.settings_files import Section


class TracingSettings(Section, frozen=True, kw_only=True):
    """OpenTelemetry traces of messages (docs/how-to/trace-a-message.md). Needs the extra ``tracing``."""

    endpoint: str | None = None
    """Where a collector takes OTLP over HTTP, such as ``http://127.0.0.1:4318/v1/traces``; none: nothing is traced."""

    sample: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.01
    """The share of messages that begin a trace here, of those that bring none."""

    follow: bool = True
    """Whether a trace that a publisher began, and records, is continued; if not, ``sample`` decides of these, too."""

    most_per_second: Annotated[float, msgspec.Meta(gt=0)] = 100.0
    """Messages that are traced, whoever asks for it."""

    topics: bool = False
    """Whether spans name topics; these may say more of people than a tracing system should know."""

    service: Annotated[str, msgspec.Meta(min_length=1)] = "nearcast"
    """The name of this broker in traces."""

    def __post_init__(self) -> None:
        if self.endpoint is None:
            return
        parts = urlsplit(self.endpoint)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise InvalidSettings(
                f"endpoint must be an address such as http://127.0.0.1:4318/v1/traces, not {self.endpoint!r:.80}"
            )
        if parts.username is not None or parts.password is not None:
            raise InvalidSettings(
                "endpoint must hold no user or password: give them by OTEL_EXPORTER_OTLP_HEADERS in the environment"
            )

    @property
    def is_on(self) -> bool:
        return self.endpoint is not None
