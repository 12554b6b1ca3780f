"""The node, its workers and its JVMs as Prometheus sees them, and how long changes took."""

from collections.abc import Iterator

from prometheus_client.core import HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from ..events.model import MemberState, Why
from .figures import NodeFigures
from .group_metrics import Groups, counter, gauge
from .watch.group import SECONDS, Durations

SHARED = "shared"
"""The name of the JVM that workers share, where other JVMs have that of their worker."""
_BOUNDS = (*map(str, SECONDS), "+Inf")


def engines(node: NodeFigures) -> Iterator[Metric]:
    """Yield the families of JVMs, and of the disk."""
    up = gauge("engine_up", "Whether the JVM of a worker, or of all, runs jobs now.", "worker")
    restarts = counter("engine_restarts", "How often it was started again.", "worker")
    for worker, each in sorted(node.engines.items()):
        up.add_metric([worker or SHARED], float(each.is_up))
        restarts.add_metric([worker or SHARED], each.restarts)
    free = gauge("disk_free_bytes", "What may still be written where the logs are.")
    if node.free_bytes is not None:
        free.add_metric([], node.free_bytes)
    yield from (up, restarts, free)


def workers(groups: Groups) -> Iterator[Metric]:
    """Yield the families of workers: what each has, and how often it was lost."""
    labels = ("group", "worker")
    held = gauge("worker_resources", "What a worker holds, by kind.", *labels, "kind")
    lost = counter("worker_losses", "How often a worker was lost, by cause.", *labels, "cause")
    for each in groups:
        group = each.group
        for member in group.workers():
            if member.state is MemberState.AWAY:
                continue
            worker = member.metadata.worker_url.rpartition("/")[2]
            tasks = sum(resource.is_task for resource in member.current.assigned)
            connectors = len(member.current.assigned) - tasks
            for kind, count in (("connector", connectors), ("task", tasks)):
                held.add_metric([group.group_id, worker, kind], count)
            for why in (Why.PROCESS_ENDED, Why.SESSION_EXPIRED):
                count = each.failures.get((member.metadata.worker_url, why), 0)
                lost.add_metric([group.group_id, worker, why.value], count)
    yield from (held, lost)


def durations(groups: Groups) -> Iterator[Metric]:
    """Yield the histograms of rebalances and moves since this process started."""
    told = "Time from the cause of an epoch until everything ran again."
    rebalances = HistogramMetricFamily("fairlead_group_rebalance_seconds", told, labels=["group"])
    told = "Time for which nobody ran what went from one worker to another."
    moves = HistogramMetricFamily("fairlead_group_move_seconds", told, labels=["group"])
    for each in groups:
        for family, taken in (
            (rebalances, each.watched.rebalances),
            (moves, each.watched.moves),
        ):
            family.add_metric([each.group.group_id], _buckets(taken), taken.total_ms / 1000)
    yield from (rebalances, moves)


def _buckets(taken: Durations) -> list[tuple[str, float]]:
    """Return the counts with those below them, by bound."""
    found, total = list[tuple[str, float]](), 0
    for bound, count in zip(_BOUNDS, taken.counts, strict=True):
        total += count
        found.append((bound, total))
    return found
