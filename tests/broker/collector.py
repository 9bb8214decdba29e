"""A collector that takes OTLP over HTTP, as OpenTelemetry's own does, and remembers what came."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from tests.waiting import wait_until


@dataclass(frozen=True)
class Seen:
    """A span as it came over the wire."""

    service: str
    name: str
    trace: str
    id: str
    parent: str
    start: int
    end: int
    values: dict[str, Any]
    failed: bool


class Collector:
    def __init__(self) -> None:
        self.spans: list[Seen] = []
        self.raw = b""
        """All that came, to look for what must not be in it."""

        self._lock = threading.Lock()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                assert self.path == "/v1/traces"
                assert self.headers["Content-Type"] == "application/x-protobuf"
                collector.take(body)
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.end_headers()
                self.wfile.write(ExportTraceServiceResponse().SerializeToString())

            def log_message(self, *_arguments: object) -> None:
                """Not on the terminal of the tests."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1/traces"

    def take(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        with self._lock:
            self.raw += body
            for resource in request.resource_spans:
                service = {each.key: each.value.string_value for each in resource.resource.attributes}["service.name"]
                for scope in resource.scope_spans:
                    self.spans += [_seen(service, span) for span in scope.spans]

    def wait(self, *names: str) -> list[Seen]:
        """All spans, once there are some of these names."""
        missing = lambda: set(names) - {span.name for span in self.spans}  # noqa: E731
        wait_until(lambda: not missing(), problem=lambda: f"no {missing()} among {self.spans}")  # type: ignore[no-untyped-call]
        return list(self.spans)

    def one(self, name: str, service: str | None = None) -> Seen:
        [found] = [each for each in self.spans if each.name == name and service in (None, each.service)]
        return found

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _seen(service: str, span: Any) -> Seen:
    values = {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes}
    return Seen(
        service,
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        values,
        span.status.code == 2,
    )


@contextmanager
def collecting() -> Iterator[Collector]:
    collector = Collector()
    try:
        yield collector
    finally:
        collector.close()
