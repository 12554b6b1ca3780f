"""How many rows were committed today: read from the offset log once, and then counted."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from ...events.commits import Committed, TaskProgress
from ...events.entries.codec import decode
from ...events.log.errors import TrimmedError
from ...events.log.reader import LogReader
from ...events.model import Resource
from ...events.records import Record
from ..progress import TasksProgress

DAY_MS: Final = 86_400_000
MOST_READ: Final = 50_000
"""How many entries of a day are read at most: half a second."""


def rows_since(log: LogReader, since_ms: int, tasks: TasksProgress) -> int | None:
    """Return how many rows the tasks have committed since a moment; None: it is not known.

    Each task's sum by then is in its first progress after that moment, less that batch. So no more
    is read than up to the first batch of each. Raises `LogError`, `CodecError`.
    """
    left = {
        Resource(name, number): each.rows_in
        for name, of_name in tasks.items()
        for number, each in of_name.items()
        if each.last_commit_ms >= since_ms
    }
    if not left:
        return 0
    rows, batch = 0, Counter[Resource]()
    try:
        start = first_since(log, since_ms)
        if start is None:
            return None
        for record in _records(log, start):
            if isinstance(record, Committed):
                batch[Resource(*record.commit_id[:2])] += record.commit.rows_in
                continue
            task = Resource(record.last.connector, record.last.task)
            if task in left:
                of_batch = record.rows_in if record.batches == 1 else batch[task]
                rows += left.pop(task) - (record.rows_in - of_batch)
            if not left:
                return rows
    except TrimmedError:
        pass
    return None


def _records(log: LogReader, start: int) -> Iterator[Committed | TaskProgress]:
    """Yield the commits and the progress of tasks from an offset on, of so many entries."""
    for entries in log.tail(start):
        for entry in entries:
            record: Record | None = None if entry.value is None else decode(entry)
            if isinstance(record, Committed | TaskProgress):
                yield record
        if entries[-1].offset - start > MOST_READ:
            return


def first_since(log: LogReader, since_ms: int) -> int | None:
    """Return the offset of the first entry since a moment; None: it may have been trimmed.

    Raises `LogError`.
    """
    low, end = log.low(), log.end()
    first, last = low, end
    while first < last:
        middle = (first + last) // 2
        ((entry, *_), _) = log.read(middle, 1)
        if entry.timestamp_ms < since_ms:
            first = middle + 1
        else:
            last = middle
    return None if first == low and low else first
