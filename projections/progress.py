"""The progress of all tasks of a group, read again only where its offset log has changed."""

from collections.abc import Collection, Mapping
from typing import Final

from ..events.catalogue import entry_key
from ..events.commits import Lag, TaskProgress
from ..events.entries.codec import decode
from ..events.group import Group
from ..events.log.errors import TrimmedError
from ..events.log.frame import Entry
from ..events.log.reader import LogReader
from ..events.model import Resource
from .views import Progress, is_at_rest, is_behind, task_progress

MOST_FOLLOWED: Final = 20_000
"""So many new entries are followed one by one; after more all is read again."""
SILENT_MS: Final = 300_000
"""How long a connector that is behind commits nothing until its source is looked at."""
_PROGRESS, _ = entry_key(TaskProgress)

TasksProgress = Mapping[str, Mapping[int, Progress]]
"""By connector and number of the task."""


def is_lag_outdated(group: Group, connector: str, progress: Progress, now_ms: int) -> bool:
    """Return whether the last plans of a connector may no longer tell what it has to read.

    It plans nothing while it is paused, stopped or has a failed task. And one that was behind and
    commits nothing hangs, or what it had to read is gone.
    """
    is_silent = progress.last_commit_ms < now_ms - SILENT_MS
    is_stuck = is_silent and progress.lag is not None and is_behind(progress.lag)
    return is_stuck or is_at_rest(group, connector)


class ProgressFollower:
    """Follows an offset log on demand, for one thread at a time."""

    def __init__(self) -> None:
        self._next: int | None = None
        """The first entry that was not followed yet; None: nothing was read."""
        self._tasks: TasksProgress = {}
        self._caught_up: dict[Resource, int] = {}
        """When each task had last read all there was, in ms of the wall clock; at the earliest
        when it was first looked at."""

    def catch_up(self, log: LogReader, connectors: Collection[str], now_ms: int) -> TasksProgress:
        """Return the progress of each task; raises `LogError`, `CodecError`.

        What has not changed is the same object as at the last call.
        """
        changed = self._follow(log)
        unchanged = {*connectors} & self._tasks.keys() if changed is not None else set[str]()
        unchanged -= changed or set()
        if gone := self._tasks.keys() - {*connectors}:  # another one may get the name
            for resource in [each for each in self._caught_up if each.connector in gone]:
                del self._caught_up[resource]
        self._tasks = {
            name: self._tasks[name] if name in unchanged else task_progress(log, name)
            for name in connectors
        }
        for name in self._tasks.keys() - unchanged:
            for task, each in self._tasks[name].items():
                self._note(Resource(name, task), each.lag, each.last_commit_ms, now_ms)
        return self._tasks

    def caught_up_ms(self, connector: str) -> int | None:
        """Return since when a connector may have something to read; None: it has never read.

        That is the earliest time at which one of its tasks that are behind had read all there was,
        or of all its tasks, if none of them knows of more.
        """
        tasks = self._tasks.get(connector, {})
        behind = [task for task, each in tasks.items() if each.lag and is_behind(each.lag)]
        times = (self._caught_up.get(Resource(connector, task)) for task in behind or tasks)
        return min((each for each in times if each is not None), default=None)

    def _follow(self, log: LogReader) -> set[str] | None:
        """Return the connectors with new entries; None: all have to be read again."""
        start, end = self._next, log.end()
        self._next = end
        if start is None or end - start > MOST_FOLLOWED:
            return None
        changed: set[str] = set()
        try:
            for entries in log.tail(start):
                for entry in entries:
                    changed.add(self._apply(entry))
                self._next = max(end, entries[-1].offset + 1)
        except TrimmedError:
            return None
        return changed

    def _apply(self, entry: Entry) -> str:
        """Follow an entry; return its connector."""
        if entry.type == _PROGRESS and entry.value is not None:
            record = decode(entry)
            if isinstance(record, TaskProgress) and record.lag and not is_behind(record.lag):
                resource = Resource(record.last.connector, record.last.task)
                self._caught_up[resource] = record.time_ms
        return entry.key.partition(b"\0")[0].decode()  # what keys of the log begin with

    def _note(self, task: Resource, lag: Lag | None, time_ms: int, now_ms: int) -> None:
        if lag is not None and time_ms and not is_behind(lag):
            self._caught_up[task] = time_ms
        else:
            self._caught_up.setdefault(task, now_ms)
