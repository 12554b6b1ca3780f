"""Sends spans to a collector by OTLP over HTTP, with OpenTelemetry's own exporter.

Whoever imports this module needs the extra `otel`. The exporter repeats what a collector refuses
for a while, for at most ten seconds; whoever calls `send` waits for that.
"""

import logging
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, TraceFlags
from opentelemetry.trace import SpanContext as OtelContext

from .....projections.traces.spans import SpanContext, TraceSpan
from ....config.references.trace_target import TraceTarget

NS_PER_MS: Final = 1_000_000
_LIBRARY: Final = "opentelemetry"
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)


class ExporterWords(logging.Handler):
    """Keeps the first thing that the exporter logs of a call.

    It repeats itself with each attempt, and names the reason only there.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.first = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the message, if it is the first."""
        told = record.getMessage().removeprefix("Transient error ")
        self.first = self.first or told.partition(" encountered while exporting")[0]


@contextmanager
def _heard() -> Generator[ExporterWords]:
    """Keep what the exporter logs in the context, and out of the log; for one call at a time."""
    words, logger = ExporterWords(), logging.getLogger(_LIBRARY)
    before = logger.propagate
    logger.addHandler(words)
    logger.propagate = False
    try:
        yield words
    finally:
        logger.propagate = before
        logger.removeHandler(words)


class SpanSender:
    """A connection to one collector, for one thread."""

    def __init__(self, target: TraceTarget, facts: Mapping[str, str]) -> None:
        """`facts` are those of this node, beside the name of the service."""
        self._exporter = OTLPSpanExporter(target.endpoint, headers=dict(target.headers))
        self._resource = Resource({"service.name": target.service_name, **facts})
        self._scope = InstrumentationScope("fairlead", facts.get("service.version"))

    def send(self, spans: Sequence[TraceSpan]) -> str:
        """Send spans; return why they did not arrive, "" if they did."""
        with _heard() as words:
            result = self._exporter.export([self._readable(each) for each in spans])
        if result is SpanExportResult.SUCCESS:
            return ""
        return words.first or "the collector did not take them"

    def close(self) -> None:
        """End an attempt that is under way, and the connection; for any thread."""
        self._exporter.shutdown()

    def _readable(self, span: TraceSpan) -> ReadableSpan:
        return ReadableSpan(
            span.name,
            _otel(span.context),
            _otel(span.parent) if span.parent else None,
            self._resource,
            span.attributes,
            [Event(name, timestamp=at_ms * NS_PER_MS) for name, at_ms in span.events],
            [Link(_otel(span.link))] if span.link else (),
            start_time=span.start_ms * NS_PER_MS,
            end_time=span.end_ms * NS_PER_MS,
            instrumentation_scope=self._scope,
        )


def _otel(context: SpanContext) -> OtelContext:
    return OtelContext(*context, is_remote=False, trace_flags=_SAMPLED)
