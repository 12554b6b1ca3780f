"""What the demo sees: only what the group's two logs say."""

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from ...events.abilities import is_warm
from ...events.codec import TYPES, decode
from ...events.group import Group
from ...events.keys import pack_key
from ...events.log.reader import LogReader
from ...events.model import RunState
from ...events.records import Committed, TaskProgress
from ...events.restore import fold
from ...projections.moves import BATCHES_RUN, Move, Moves
from . import scenario

PROGRESS = TYPES[TaskProgress][0]
COMMITTED = TYPES[Committed][0]


@dataclass(slots=True)
class Seen:
    """The pipeline at one moment; `runs` has the tasks of each worker by its short name."""

    rows: int = 0
    unpublished: int = 0
    epoch: int = 0
    state: str = ""
    workers: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    warm: int = 0
    failed: dict[str, str] = field(default_factory=dict[str, str])


def short(url: str) -> str:
    """Return a worker's short name: the last part of its url."""
    return url.rsplit("/", 1)[-1]


class Watcher:
    """Follows the logs of the demo's group."""

    def __init__(self, folder: Path) -> None:
        self._control = LogReader.open(folder / "control", scenario.GROUP)
        self._offsets = LogReader.open(folder / "offsets", scenario.GROUP)
        self._group = Group(scenario.GROUP)
        self.moves = Moves()

    def look(self) -> tuple[Seen, list[Move]]:
        """Return what is to be seen now, and the moves that were completed since."""
        completed: list[Move] = []
        for entries in self._control.tail(self._group.end):
            fold(self._group, entries)
            decoded = (decode(entry) for entry in entries)
            moved = (self.moves.fold(record) for record in decoded if record is not None)
            completed += [move for move in moved if move is not None]
        return self._seen(), completed

    def runs_batches(self, worker: str) -> bool:
        """Tell whether a worker has begun a batch of a task that it holds."""
        return any(
            status.reason == BATCHES_RUN and short(status.worker) == worker
            for status in self._group.statuses.values()
        )

    def resumed_since(self, moment_ms: int, tasks: Collection[str]) -> bool:
        """Tell whether all these tasks have begun to run since then."""
        since = {
            str(resource)
            for resource, status in self.moves.running.items()
            if status.time_ms > moment_ms
        }
        return since.issuperset(tasks)

    def held_by(self, worker: str) -> list[str]:
        """Return the tasks that a worker holds, as the log says."""
        return self._seen().workers.get(worker, [])

    def close(self) -> None:
        """Let go of the logs."""
        self._control.close()
        self._offsets.close()

    def _seen(self) -> Seen:
        group = self._group
        seen = Seen(epoch=group.group_epoch, state=group.state.value)
        for member in group.members.values():
            held = sorted(str(each) for each in member.current.assigned if each.is_task)
            seen.workers[short(member.metadata.url)] = held
            seen.warm += all(is_warm(each.metadata) for each in member.metadata.assignors)
        seen.failed = {
            str(resource): status.reason
            for resource, status in group.statuses.items()
            if status.state is RunState.FAILED
        }
        for entry in self._offsets.scan(PROGRESS, pack_key((scenario.CONNECTOR,))):
            record = decode(entry)
            if isinstance(record, TaskProgress):
                seen.rows += record.rows_out
        seen.unpublished = len(self._offsets.scan(COMMITTED, pack_key((scenario.CONNECTOR,))))
        return seen
