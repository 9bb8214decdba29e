"""An application that traces sees its messages in its traces: OpenTelemetry's API, if the application has loaded it, and nothing otherwise.

Publishing is a span of whatever the application does at the moment, and the broker continues it.  What comes is a span from its arrival
until the application takes it; whoever works on it writes ``with nearcast.traced(event):`` around that.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from nearcast.model.event import Event
from nearcast.mqtt.trace_context import TRACEPARENT, TRACESTATE, Properties, TraceContext, trace_context

_API: Final = "opentelemetry.trace"


def publishing(
    topic: str, event: str, properties: Properties
) -> tuple[Properties, Callable[[BaseException | None], None]]:
    """Properties with which a message goes out, and what to call when it is acknowledged, or could not be sent."""
    api = sys.modules.get(_API)
    if api is None:
        return properties, _nothing
    span = _tracer(api).start_span(
        "publish", kind=api.SpanKind.PRODUCER, attributes={**_about(event), "messaging.destination.name": topic}
    )
    context = span.get_span_context()
    if not context.is_valid or any(name == TRACEPARENT for name, _ in properties):
        return (
            properties,
            _nothing,
        )  # it does not trace after all; or the application itself says of what this is a part
    own = TraceContext(
        context.trace_id, context.span_id, context.trace_flags.sampled, context.trace_state.to_header()
    ).properties()

    def over(error: BaseException | None) -> None:
        if error is not None:
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(api.Status(api.StatusCode.ERROR))
        span.end()

    return [*properties, *own], over


def received(event: Event) -> tuple[Event, Callable[[], None]]:
    """An event that has come, of which this client's span is the last one, and what to call when the application has taken it."""
    api = sys.modules.get(_API)
    parent = None if api is None else _context(event.attributes)
    if api is None or parent is None or not parent.sampled:
        return event, _taken
    span = _tracer(api).start_span(
        "receive", _context_with(api, parent), api.SpanKind.CONSUMER, attributes=_about(event.id)
    )
    context = span.get_span_context()
    if not span.is_recording():
        return event, _taken
    own = TraceContext(context.trace_id, context.span_id, True, context.trace_state.to_header())
    return replace(event, attributes={**event.attributes, **dict(own.properties())}), span.end


@contextmanager
def traced(event: Event) -> Iterator[None]:
    """What is done and published inside continues the trace that the event came with, if the application traces."""
    api = sys.modules.get(_API)
    context = None if api is None else _context(event.attributes)
    if api is None or context is None:
        yield
        return
    from opentelemetry.context import attach, detach

    token = attach(_context_with(api, context))
    try:
        yield
    finally:
        detach(token)


def _tracer(api: Any) -> Any:
    return api.get_tracer("nearcast.client")


def _about(event: str) -> dict[str, str]:
    return {"messaging.system": "nearcast", "messaging.message.id": event[:64]}


def _context(attributes: Mapping[str, object]) -> TraceContext | None:
    """Attributes are whatever others sent: what is no text is no context."""
    return trace_context(
        [(name, str(attributes[name])) for name in (TRACEPARENT, TRACESTATE) if name in attributes]
        if TRACEPARENT in attributes
        else ()
    )


def _context_with(api: Any, context: TraceContext) -> Any:
    state = api.TraceState.from_header([context.state]) if context.state else None
    flags = api.TraceFlags(int(context.sampled))
    return api.set_span_in_context(
        api.NonRecordingSpan(api.SpanContext(context.trace, context.span, True, flags, state))
    )


def _nothing(_error: BaseException | None) -> None: ...


def _taken() -> None: ...
