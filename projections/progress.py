"""How far the work has come, as the offset log tells: rows, batches and bytes of each task."""

from dataclasses import dataclass

from ..events.codec import TYPES, decode
from ..events.keys import pack_key
from ..events.log.store import LogFile
from ..events.records import Committed, TaskProgress


@dataclass(frozen=True, slots=True)
class Progress:
    """All that one task, or a connector's tasks together, ever committed.

    `last_commit_ms` is wall clock; `unpublished` counts the batches that are committed but
    not yet known to be in place.
    """

    batches: int = 0
    rows_in: int = 0
    rows_out: int = 0
    bytes_out: int = 0
    last_commit_ms: int = 0
    unpublished: int = 0

    def plus(self, task: TaskProgress) -> "Progress":
        """Return this progress with that of one more task."""
        return Progress(
            self.batches + task.batches,
            self.rows_in + task.rows_in,
            self.rows_out + task.rows_out,
            self.bytes_out + task.bytes_out,
            max(self.last_commit_ms, task.time_ms),
            self.unpublished,
        )


def connector_progress(log: LogFile, connector: str) -> Progress:
    """Return the progress of a connector's tasks together; raises `LogError`."""
    waiting = len(log.scan(TYPES[Committed][0], pack_key((connector,))))
    total = Progress(unpublished=waiting)
    for task in _scan(log, connector):
        total = total.plus(task)
    return total


def _scan(log: LogFile, connector: str) -> list[TaskProgress]:
    entries = log.scan(TYPES[TaskProgress][0], pack_key((connector,)))
    found = (decode(entry) for entry in entries)
    return [each for each in found if isinstance(each, TaskProgress)]
