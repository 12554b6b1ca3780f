"""How far the work has come, as the offset log tells: rows, batches, bytes and lag of each task."""

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ..events.catalogue import entry_key
from ..events.entries.codec import decode
from ..events.log.reader import ReadableLog
from ..events.model import Commit, Lag
from ..events.records import Committed, Record, TaskProgress

NO_LAG: Final = Lag(0, 0)


@dataclass(frozen=True, slots=True)
class Progress:
    """All that one task, or a connector's tasks together, ever committed.

    `last_commit_ms` is wall clock; `unpublished` counts the batches that are committed but
    not yet known to be in place. `lag` is what was left to read when the last batch was planned,
    None where a task's source cannot tell.
    """

    batches: int = 0
    rows_in: int = 0
    rows_out: int = 0
    bytes_out: int = 0
    last_commit_ms: int = 0
    unpublished: int = 0
    lag: Lag | None = NO_LAG

    def plus(self, other: "Progress") -> "Progress":
        """Return this progress and another together."""
        return Progress(
            self.batches + other.batches,
            self.rows_in + other.rows_in,
            self.rows_out + other.rows_out,
            self.bytes_out + other.bytes_out,
            max(self.last_commit_ms, other.last_commit_ms),
            self.unpublished + other.unpublished,
            _sum(self.lag, other.lag),
        )


def connector_progress(log: ReadableLog, connector: str, tasks: Container[int]) -> Progress:
    """Return the progress of a connector's tasks together; raises `LogError`, `CodecError`.

    `tasks` are those of its present split: others did their part, and have nothing left to read.
    """
    total = Progress()
    for task, progress in task_progress(log, connector).items():
        total = total.plus(progress if task in tasks else replace(progress, lag=NO_LAG))
    return total


def task_progress(log: ReadableLog, connector: str) -> Mapping[int, Progress]:
    """Return the progress of each task that ever committed; raises `LogError`, `CodecError`."""
    waiting = Counter(each.commit_id.task for each in unpublished(log, connector))
    told = {
        record.last.task: _of_task(record, waiting.pop(record.last.task, 0))
        for record in _scan(log, TaskProgress, connector)
        if isinstance(record, TaskProgress)
    }
    return told | {task: Progress(unpublished=count) for task, count in waiting.items()}


def unpublished(log: ReadableLog, connector: str) -> Sequence[Commit]:
    """Return the batches that count and are not yet known to be in place, by task, oldest first.

    Raises `LogError`, `CodecError`.
    """
    found = _scan(log, Committed, connector)
    return [record.commit for record in found if isinstance(record, Committed)]


def _of_task(record: TaskProgress, unpublished: int) -> Progress:
    return Progress(
        record.batches,
        record.rows_in,
        record.rows_out,
        record.bytes_out,
        record.time_ms,
        unpublished,
        record.lag,
    )


def _scan(log: ReadableLog, kind: type, connector: str) -> list[Record | None]:
    return [decode(entry) for entry in log.scan(*entry_key(kind, (connector,)))]


def _sum(one: Lag | None, other: Lag | None) -> Lag | None:
    if one is None or other is None:
        return None
    return Lag(one.ranges + other.ranges, one.bytes + other.bytes)
