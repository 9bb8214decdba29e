"""Trace contexts among user properties: read as the W3C's own rules say, and as OpenTelemetry reads them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.trace import get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from nearcast.mqtt.trace_context import TRACEPARENT, TRACESTATE, TraceContext, trace_context, with_context

_hex = st.text("0123456789abcdef", min_size=1, max_size=34)
_near = st.builds("{}-{}-{}-{}{}".format, _hex, _hex, _hex, _hex, st.sampled_from(["", "-", "-x", "\n"]))
_right = st.builds(
    "{:02x}-{:032x}-{:016x}-{:02x}{}".format,
    st.integers(0, 255),
    st.integers(0, 2**128 - 1),
    st.integers(0, 2**64 - 1),
    st.integers(0, 255),
    st.sampled_from(["", "-x"]),
)


@given(st.one_of(_right, _near, st.text(max_size=60)))
def test_what_is_a_context_is_what_opentelemetry_takes_for_one(text: str) -> None:
    found = trace_context([("other", "1"), (TRACEPARENT, text)])
    peer = get_current_span(TraceContextTextMapPropagator().extract({TRACEPARENT: text})).get_span_context()
    # The peer takes surrounding blanks and line ends for nothing: of a header, not of a property.
    if text == text.strip():
        assert (found is not None) == peer.is_valid
    if found is not None:
        assert (found.trace, found.span, found.sampled) == (peer.trace_id, peer.span_id, peer.trace_flags.sampled)


@given(st.integers(1, 2**128 - 1), st.integers(1, 2**64 - 1), st.booleans())
def test_what_is_written_is_read_again(trace: int, span: int, sampled: bool) -> None:
    context = TraceContext(trace, span, sampled, "a=1,b@c=2")
    old = [("x", "1"), (TRACEPARENT, "old"), (TRACESTATE, "old"), ("y", "2")]
    properties = with_context(old, context)
    assert trace_context(properties) == context
    assert properties[:2] == [("x", "1"), ("y", "2")]
    assert len(properties) == 4


@given(st.lists(st.text(max_size=80), max_size=4))
def test_a_state_is_kept_or_left_out_but_never_ends_a_trace(states: list[str]) -> None:
    parent = (TRACEPARENT, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    found = trace_context([parent, *((TRACESTATE, state) for state in states)])
    assert found is not None
    assert found.state.isascii()
    assert len(found.state) <= 512
