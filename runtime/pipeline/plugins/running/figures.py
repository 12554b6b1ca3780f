"""The metrics of plugin hosts as Kafka has them, and what they say of each task.

A module that every verb of the command line can afford.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from .....events.model import Resource

CONNECT: Final = "kafka.connect"
"""The domain of the metrics of Connect itself."""


class Bean(NamedTuple):
    """A bean of JMX with its numbers; others are left out."""

    domain: str
    """`CONNECT`, and those of clients."""
    type: str
    """`source-task-metrics`, say."""
    labels: Mapping[str, str]
    values: Mapping[str, float]


class TaskFigures(NamedTuple):
    """The counts of a task since it started, and what is left."""

    rows_in: int = 0
    """Records that a source has polled, or that a sink has read."""
    rows_out: int = 0
    """Records that were written to Kafka, or put into the sink."""
    skipped: int = 0
    """Records that were left out, of which `dead_letters` are in the dead letter queue."""
    dead_letters: int = 0
    lag: int | None = None
    """Records that a sink has to read; None: a source, or it has fetched nothing yet."""

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """All but the lag."""
        return self.rows_in, self.rows_out, self.skipped, self.dead_letters


_OF_TASKS: Final = {"source-task-metrics", "sink-task-metrics", "task-error-metrics"}
_CONSUMER: Final = "consumer-fetch-manager-metrics"
_READ: Final = "sink-record-read-total"


def figures_of_tasks(beans: Iterable[Bean]) -> dict[Resource, TaskFigures]:
    """Return the figures of each task of a host with these beans."""
    values: dict[Resource, dict[str, float]] = {}
    lags: dict[str, float] = {}
    for each in beans:
        if each.type in _OF_TASKS:
            task = Resource(each.labels["connector"], int(each.labels["task"]))
            values.setdefault(task, {}).update(each.values)
        elif each.type == _CONSUMER and "records-lag" in each.values:
            lags[each.labels["client-id"]] = each.values["records-lag"]
    return {
        # A source that writes exactly once has a consumer as well, of the topic of offsets.
        task: _figures(found, lags.get(f"connector-consumer-{task}") if _READ in found else None)
        for task, found in values.items()
    }


def _figures(values: Mapping[str, float], lag: float | None) -> TaskFigures:
    def sum_of(*names: str) -> int:
        return int(sum(values.get(name, 0.0) for name in names))

    asked, failed = "deadletterqueue-produce-requests", "deadletterqueue-produce-failures"
    letters = max(0, sum_of(asked) - sum_of(failed))
    return TaskFigures(
        sum_of("source-record-poll-total", _READ),
        sum_of("source-record-write-total", "sink-record-send-total"),
        max(letters, sum_of("total-records-skipped")),
        letters,
        None if lag is None else max(0, int(lag)),
    )
