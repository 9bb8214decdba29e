"""For schemathesis: what words of nearcast's own languages look like (loaded by it, by way of SCHEMATHESIS_HOOKS)."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import schemathesis
from hypothesis import strategies as st

from nearcast.records.answers import ANSWERS
from nearcast.records.arrow import plain_schema

ARROW = "application/vnd.apache.arrow.stream"


def _stream() -> bytes:
    """No answers, in the form in which answers come."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, plain_schema(ANSWERS)):
        pass
    return sink.getvalue()


schemathesis.openapi.format("mqtt-topic-filter", st.sampled_from(["#", "a/#", "+/b", "a", "a/+/c"]))
schemathesis.openapi.format("cql2-text", st.sampled_from(["severity > 3", "kind = 'jam'", "a = 1 AND b = 2"]))
schemathesis.openapi.format("nearcast-time", st.sampled_from(["-2h", "..", "2026-11-15T09:30:00Z"]))
schemathesis.openapi.media_type(ARROW, st.just(_stream()))


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Changes by the dashboard need a header that no other site's page can send; it is no part of a page's question."""
    if case.path.startswith("/dashboard"):
        case.headers = {**(case.headers or {}), "X-Nearcast": "1"}
