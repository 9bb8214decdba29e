"""Which messages are traced, and the spans of one: receive, match, journal, deliver, and for single receivers acknowledge and queue.

Spans say how long something took and of how many; never who, where, or what.  Whoever is not traced costs a comparison with ``None``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from nearcast.broker.tracing.exporting import context_of, parent_of
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.mqtt.trace_context import Properties, TraceContext, trace_context, with_context
from nearcast.runtime.buckets import Bucket

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

    from nearcast.broker.tracing.settings import TracingSettings

MOST_RECEIVERS: Final = 16
"""Of one message that get spans of their own: a thousand would say no more."""

_NANOSECONDS: Final = 1_000
_IDS: Final = 1 << 64

Values = Mapping[str, str | int | bool]


@dataclass(frozen=True, slots=True)
class TracingStatistics:
    traced: int
    limited: int
    """Messages that were not traced because too many were."""


class Tracer:
    """Of one broker."""

    def __init__(self, settings: TracingSettings, now: Callable[[], Instant], provider: TracerProvider) -> None:
        self._settings: Final = settings
        self._provider: Final = provider
        self._spans: Final = provider.get_tracer("nearcast.broker")
        self._allowed: Final = Bucket(settings.most_per_second, MICROSECONDS)
        self._traced = self._limited = 0
        self.now: Final = now

    def statistics(self) -> TracingStatistics:
        return TracingStatistics(self._traced, self._limited)

    def begin(self, properties: Iterable[tuple[str, str]], source: str) -> Trace | None:
        """The trace of a message that comes with these properties, by ``source`` (mqtt, http, federation); nearly always none."""
        context = trace_context(properties) if properties else None
        if not self._wanted(context):
            return None
        at = self.now()
        if not self._allowed.take(at):
            self._limited += 1
            return None
        self._traced += 1
        return Trace(self, self.span("receive", parent_of(context), at, {"nearcast.source": source}, remote=True), at)

    def _wanted(self, context: TraceContext | None) -> bool:
        settings = self._settings
        if context is None:
            return random.random() < settings.sample
        if settings.follow:
            return context.sampled
        # By the trace's id, so that all brokers that it passes decide alike.
        return context.trace % _IDS < settings.sample * _IDS

    @property
    def names_topics(self) -> bool:
        return self._settings.topics

    def span(self, name: str, parent: Any, at: Instant, values: Values, *, remote: bool = False) -> Any:
        from opentelemetry.trace import SpanKind

        kind = SpanKind.CONSUMER if remote else SpanKind.INTERNAL
        given = {"messaging.system": "nearcast", **values} if remote else dict(values)
        return self._spans.start_span(name, parent, kind, attributes=given, start_time=at * _NANOSECONDS)

    def close(self) -> None:
        """Send what has not been sent; a collector that does not answer is not waited for long."""
        self._provider.force_flush(2_000)
        self._provider.shutdown()


class Trace:
    """Of one message, while it is in this broker."""

    __slots__ = ("_context", "_delivering", "_left", "_root", "_tracer", "began", "context")

    def __init__(self, tracer: Tracer, root: Any, began: Instant) -> None:
        from opentelemetry.context import Context
        from opentelemetry.trace import set_span_in_context

        self._tracer: Final = tracer
        self._root: Final = root
        self._context: Final = set_span_in_context(root, Context())
        self._delivering = self._context
        self._left = MOST_RECEIVERS
        self.began: Final = began
        self.context: Final = context_of(root)
        """By which receivers, and brokers behind this one, continue the trace."""

    def properties(self, properties: Iterable[tuple[str, str]]) -> Properties:
        """What the message says from here on: this broker's span is the parent of all that follows."""
        return with_context(properties, self.context)

    def now(self) -> Instant:
        return self._tracer.now()

    def about(self, event: str, topic: str, qos: int, size: int) -> None:
        """Once it is known what it is."""
        values: dict[str, str | int] = {
            "messaging.message.id": event[:64],
            "messaging.message.body.size": size,
            "nearcast.quality": qos,
        }
        if self._tracer.names_topics:
            values["messaging.destination.name"] = topic
        self._root.set_attributes(values)

    def took(self, name: str, since: Instant, **values: str | int | bool) -> None:
        """Something that is over."""
        attributes = {f"nearcast.{key}": value for key, value in values.items()}
        self._tracer.span(name, self._context, since, attributes).end(self.now() * _NANOSECONDS)

    def delivering(self, receivers: int) -> Callable[[], None]:
        """Copies go out; call what is returned when all of them have been handed over."""
        from opentelemetry.context import Context
        from opentelemetry.trace import set_span_in_context

        span = self._tracer.span("deliver", self._context, self.now(), {"nearcast.receivers": receivers})
        self._delivering = set_span_in_context(span, Context())
        return lambda: span.end(self.now() * _NANOSECONDS)

    def receiver(self, qos: int) -> ReceiverTrace | None:
        """For one receiver that will say that it has it; only some of very many are followed."""
        if not self._left:
            return None
        self._left -= 1
        return ReceiverTrace(self._tracer, self._delivering, qos)

    def end(self, outcome: str = "") -> None:
        """Nothing more is done for the publisher; ``outcome`` is why not, if it failed: the kind of error, no text of it."""
        if outcome:
            from opentelemetry.trace import Status, StatusCode

            self._root.set_attribute("error.type", outcome)
            self._root.set_status(Status(StatusCode.ERROR))
        self._root.end(self.now() * _NANOSECONDS)


class ReceiverTrace:
    """One copy of quality 1 or 2: from the hand-over until the receiver has confirmed it."""

    __slots__ = ("_context", "_queued", "_span", "_tracer")

    def __init__(self, tracer: Tracer, parent: Any, qos: int) -> None:
        from opentelemetry.context import Context
        from opentelemetry.trace import set_span_in_context

        self._tracer: Final = tracer
        self._span: Final = tracer.span("acknowledge", parent, tracer.now(), {"nearcast.quality": qos})
        self._context: Final = set_span_in_context(self._span, Context())
        self._queued: Instant | None = None

    def queued(self) -> None:
        """It waits: the client is away, or has not confirmed enough of what came before."""
        self._queued = self._tracer.now()

    def sent(self) -> None:
        if self._queued is not None:
            since, self._queued = self._queued, None
            span = self._tracer.span("queue", self._context, since, {})
            span.end(self._tracer.now() * _NANOSECONDS)

    def over(self) -> None:
        """Confirmed, or given up."""
        self.sent()
        self._span.end(self._tracer.now() * _NANOSECONDS)
