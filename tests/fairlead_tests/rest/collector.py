"""A collector of OpenTelemetry: it takes spans by OTLP over HTTP, and keeps them."""

from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, NamedTuple


class KeptSpan(NamedTuple):
    """A span as it was received; ids in hexadecimal digits, times in nanoseconds."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    start_ns: int
    end_ns: int
    attributes: dict[str, str | int]
    events: list[str]
    links: list[str]
    """The ids of the spans that led to it."""


class Collector:
    """The server, and what it was sent."""

    def __init__(self) -> None:
        self.spans: list[KeptSpan] = []
        self.resources: list[dict[str, str | int]] = []
        self.headers: list[dict[str, str]] = []
        """Those of each request, their names in lower case."""
        self.bodies: list[bytes] = []
        self.status = 200
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.headers.append({k.lower(): v for k, v in self.headers.items()})
                if collector.status == 200:
                    assert self.path == "/v1/traces"
                    collector.keep(body)
                self.send_response(collector.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def keep(self, body: bytes) -> None:
        """Decode a request."""
        from opentelemetry.proto.collector.trace.v1 import (  # noqa: PLC0415  # needs an extra
            trace_service_pb2,
        )

        self.bodies.append(body)
        request: Any = trace_service_pb2.ExportTraceServiceRequest()
        request.ParseFromString(body)
        for each in request.resource_spans:
            self.resources.append(_values(each.resource.attributes))
            self.spans += [_kept(span) for scope in each.scope_spans for span in scope.spans]

    def named(self, name: str) -> list[KeptSpan]:
        """The spans of a name, in the order of their starts."""
        return sorted((each for each in self.spans if each.name == name), key=lambda s: s.start_ns)


def _kept(span: Any) -> KeptSpan:
    return KeptSpan(
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        _values(span.attributes),
        [each.name for each in span.events],
        [each.span_id.hex() for each in span.links],
    )


def _values(attributes: Any) -> dict[str, str | int]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


@contextmanager
def collecting() -> Generator[Collector]:
    """Run a collector."""
    collector = Collector()
    thread = Thread(target=collector.server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield collector
    finally:
        collector.server.shutdown()
        thread.join()
        collector.server.server_close()
