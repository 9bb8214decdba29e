"""OpenTelemetry's own SDK makes and sends the spans: in a thread of its own, and what a collector does not take is dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nearcast.errors import SetupError
from nearcast.mqtt.trace_context import TraceContext

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider

    from nearcast.broker.tracing.settings import TracingSettings


def provider_for(settings: TracingSettings) -> TracerProvider:
    """Raises ``SetupError`` where OpenTelemetry is not installed."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.sampling import ALWAYS_ON
    except ImportError as error:
        raise SetupError(
            f"tracing.endpoint is set, but OpenTelemetry is not installed ({error}); install nearcast[tracing], or leave it out"
        ) from None
    from importlib.metadata import version

    resource = Resource.create({"service.name": settings.service, "service.version": version("nearcast")})
    # Which message is traced is decided before a span is made: see ``tracer``.
    provider = TracerProvider(sampler=ALWAYS_ON, resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(settings.endpoint)))
    return provider


def parent_of(context: TraceContext | None) -> Context:
    """As the SDK takes the context of somebody else; without one, a trace begins."""
    from opentelemetry.context import Context
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, TraceState, set_span_in_context

    if context is None:
        return Context()
    state = TraceState.from_header([context.state]) if context.state else None
    remote = SpanContext(context.trace, context.span, True, TraceFlags(int(context.sampled)), state)
    return set_span_in_context(NonRecordingSpan(remote), Context())


def context_of(span: Any) -> TraceContext:
    """By which others name the span as their parent."""
    own = span.get_span_context()
    return TraceContext(own.trace_id, own.span_id, True, own.trace_state.to_header())
