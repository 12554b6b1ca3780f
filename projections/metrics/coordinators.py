"""The work of the coordinators of groups, as each of their processes counts it.

A coordinator is the process of the workers' group, or a shard of the groups of Kafka's clients: its
label is `group` or `shard`, the other one is empty.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from prometheus_client.core import HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from .families import counter, gauge

OF_COORDINATOR = ("group", "shard")


@dataclass(frozen=True, slots=True)
class CoordinatorFigures:
    """The figures of one process: of a `group`, or of a `shard` of groups."""

    group: str
    shard: str
    started_at: float
    """When its groups were rebuilt last, in seconds since 1970."""
    load_seconds: float
    """How long that took."""
    busy_seconds: float
    held_up_seconds: float
    """For how long the machine did not let it work."""
    requests: float
    expired_offsets: float = 0
    deleted_offsets: float = 0
    refusals: Mapping[str, float] = field(default_factory=dict[str, float])
    """By error."""
    durations: Mapping[str, tuple[Sequence[float], float]] = field(
        default_factory=dict[str, tuple[Sequence[float], float]]
    )
    """By phase the counts by `bounds`, with one more for what is longer, and the sum in seconds."""
    bounds: Sequence[float] = ()


def coordinators(figures: Sequence[CoordinatorFigures]) -> Iterator[Metric]:
    """Yield the families of coordinators."""
    yield from _phases(figures)
    yield from _numbers(figures)
    text = "Answers of a coordinator with an error."
    refusals = counter("coordinator_refusals", text, *OF_COORDINATOR, "error")
    expired = counter("kafka_expired_offsets", "Committed offsets that have expired.", "shard")
    text = "Committed offsets that were deleted, the expired ones among them."
    deleted = counter("kafka_deleted_offsets", text, "shard")
    for each in figures:
        for error, count in sorted(each.refusals.items()):
            refusals.add_metric([each.group, each.shard, error], count)
        if each.shard:
            expired.add_metric([each.shard], each.expired_offsets)
            deleted.add_metric([each.shard], each.deleted_offsets)
    yield from (refusals, expired, deleted)


def _phases(figures: Sequence[CoordinatorFigures]) -> Iterator[Metric]:
    text = "Time that a coordinator took, by phase."
    seconds = HistogramMetricFamily(
        "fairlead_coordinator_seconds", text, labels=(*OF_COORDINATOR, "phase")
    )
    for each in figures:
        bounds = [*map(str, each.bounds), "+Inf"]
        for phase, (counts, total) in each.durations.items():
            buckets = list(zip(bounds, accumulate(counts), strict=True))
            seconds.add_metric([each.group, each.shard, phase], buckets, total)
    yield seconds


def _numbers(figures: Sequence[CoordinatorFigures]) -> Iterator[Metric]:
    text = "When the coordinator had rebuilt its groups from their logs."
    started = gauge("coordinator_start_timestamp_seconds", text, *OF_COORDINATOR)
    load = gauge("coordinator_load_seconds", "How long it took to rebuild them.", *OF_COORDINATOR)
    text = "Time in which the coordinator worked, and did not wait."
    busy = counter("coordinator_busy_seconds", text, *OF_COORDINATOR)
    text = "Time in which the machine did not let the coordinator work."
    held_up = counter("coordinator_held_up_seconds", text, *OF_COORDINATOR)
    requests = counter("coordinator_requests", "Requests that were decided.", *OF_COORDINATOR)
    for each in figures:
        labels = [each.group, each.shard]
        started.add_metric(labels, each.started_at)
        load.add_metric(labels, each.load_seconds)
        busy.add_metric(labels, each.busy_seconds)
        held_up.add_metric(labels, each.held_up_seconds)
        requests.add_metric(labels, each.requests)
    yield from (started, load, busy, held_up, requests)
