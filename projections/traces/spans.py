"""Spans in OpenTelemetry's sense, with ids that follow from what they are about.

The same epoch or batch has the same ids whoever reads the log, and whenever: a span that is sent
again is the same span. No library is needed for that.
"""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Final, NamedTuple, Self

from ...events.commits import CommitId
from ...events.model import Resource

TRACE_BYTES: Final = 16
SPAN_BYTES: Final = 8
PREFIX: Final = "fairlead."
"""What the names of all attributes begin with."""

Attributes = Mapping[str, str | int]


class SpanContext(NamedTuple):
    """The ids of a span: of its trace (128 bits), and its own within that (64 bits)."""

    trace_id: int
    span_id: int

    @classmethod
    def of(cls, *names: object) -> Self:
        """Return the context of the root span of what has these names."""
        digest = _digest(names, TRACE_BYTES + SPAN_BYTES)
        return cls(int.from_bytes(digest[:TRACE_BYTES]), int.from_bytes(digest[TRACE_BYTES:]))

    @property
    def trace_hex(self) -> str:
        """The id of the trace as tools show it."""
        return f"{self.trace_id:0{2 * TRACE_BYTES}x}"

    def child(self, *names: object) -> "SpanContext":
        """Return the context of the part of this span that has these names."""
        digest = _digest((self.trace_id, self.span_id, *names), SPAN_BYTES)
        return self._replace(span_id=int.from_bytes(digest))


class SpanEvent(NamedTuple):
    """A moment within a span, in ms of the wall clock."""

    name: str
    time_ms: int


class TraceSpan(NamedTuple):
    """A span that has ended; times in ms of the wall clock."""

    name: str
    context: SpanContext
    start_ms: int
    end_ms: int
    attributes: Attributes
    parent: SpanContext | None = None
    """The span that this one is a part of; None: it is the root of its trace."""
    events: tuple[SpanEvent, ...] = ()
    link: SpanContext | None = None
    """The span of another trace that led to this one."""


def epoch_context(cluster_id: str, group_id: str, epoch: int) -> SpanContext:
    """Return the context of a group epoch."""
    return SpanContext.of(cluster_id, group_id, "epoch", epoch)


def batch_context(cluster_id: str, group_id: str, batch: CommitId) -> SpanContext:
    """Return the context of a batch."""
    connector, task, token, number = batch
    return SpanContext.of(cluster_id, group_id, "batch", connector, task, token, number)


def attributes(values: Mapping[str, str | int | None]) -> Attributes:
    """Return attributes with the prefix before their names; what is None has no attribute."""
    return {f"{PREFIX}{name}": value for name, value in values.items() if value is not None}


def about(group_id: str, resource: Resource) -> Attributes:
    """Return the attributes that name a connector or a task."""
    task = resource.task if resource.is_task else None
    return attributes({"group": group_id, "connector": resource.connector, "task": task})


def _digest(names: tuple[object, ...], size: int) -> bytes:
    return blake2b("\0".join(map(str, names)).encode(errors="replace"), digest_size=size).digest()
