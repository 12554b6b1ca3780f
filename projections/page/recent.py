"""Follows a control log for a page: the group, its last lines and epochs, and what has changed.

The group here is a fold of its own, statuses included. So whoever builds a page holds up no reader
of the same log, and all of a page is of one position. After each look it says which connectors a
record was about: a page of a thousand connectors is not built anew for one that has changed.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ...events.evolve import evolve
from ...events.group import Group
from ...events.model import NOTHING, Resource, Resources, RunState
from ...events.records import (
    ConnectorConfig,
    ConnectorsTasksMetadata,
    CurrentAssignment,
    GroupConfiguration,
    GroupMetadata,
    MemberMetadata,
    OffsetsAltered,
    Operator,
    Record,
    ScheduledRebalance,
    TargetAssignment,
    TargetState,
    TaskConfigs,
    TaskStatus,
    Tombstone,
)
from ..explain.diff import TargetChange
from ..explain.epochs import EpochReading
from ..explain.reader import EpochLog, EpochReader
from ..watch.lines import EventLine, EventLines
from .streaks import Streaks

MOST_LINES: Final = 50
MOST_EPOCHS: Final = 50
MOST_MARKS: Final = 50
"""How many events of each connector are kept for its picture."""
MOST_ENTRIES: Final = 10_000
"""How many entries of a log are read again at the start, for the last lines and epochs."""

Steps = frozenset[tuple[Resource, tuple[bool, int]]]
"""What a member has: whether it is to give it up, and the epoch of its grant."""
_WANTED: Final = {
    RunState.PAUSED: "paused",
    RunState.RUNNING: "resumed",
    RunState.STOPPED: "stopped",
}
_REPORTED: Final = {RunState.FAILED: "failed", RunState.RESTARTING: "restarted"}
_MARKED: Final[Mapping[type, str]] = {
    ConnectorConfig: "config",
    TargetAssignment: "move",
    OffsetsAltered: "offsets",
}


class ConnectorMark(NamedTuple):
    """Something that happened to a connector, for a picture of its last hour."""

    time_ms: int
    kind: str
    """config, move, failed, paused, resumed, stopped, restarted or offsets."""
    text: str
    """The event in a sentence."""


_HARMLESS: Final = (GroupMetadata, GroupConfiguration, Operator)
"""Records that change no connector: what they lead to has records of its own."""
_ABOUT_CONNECTORS: Final = (ConnectorConfig, TaskConfigs, TargetState, TaskStatus)


class RecentRecords:
    """Reads new records of a control log; for one thread at a time."""

    def __init__(self, log: EpochLog, end: int) -> None:
        """Begin so far before the log's end that there are lines to show; raises `LogError`."""
        self._log = log
        self.next = max(log.low(), end - MOST_ENTRIES)
        """The offset of the first entry that was not read yet."""
        self._reader = EpochReader.of(log, self.next, on_record=self._hear)
        self._events = EventLines(self.group)
        self._lines: deque[tuple[int, EventLine]] = deque(maxlen=MOST_LINES)
        """The last lines, each with the offset of its entry, the latest one last."""
        self.marks: dict[str, deque[ConnectorMark]] = {}
        """What happened to each connector, the latest last."""
        self.streaks = Streaks(self.group.statuses.values())
        """Since when connectors and tasks have been in trouble."""
        self._done: deque[EpochReading] = deque(maxlen=MOST_EPOCHS)
        """The last epochs that are over, the latest one last."""
        self._steps: dict[str, Steps] = {
            each.member_id: _steps_of(each.current) for each in self.group.workers()
        }
        """By member id."""
        self.task_counts = {each: _count_tasks(steps) for each, steps in self._steps.items()}
        """How many tasks each member has."""
        self._away = set(self.group.away)
        """The members that were away when that was looked at last."""
        self._waiting: Resources = NOTHING
        """What the target parked, or gave to nobody, when that was looked at last."""
        self._configured = self.group.configured
        """The connectors and tasks to be run when that was looked at last."""
        self._changed: set[str] | None = None
        """The connectors that records were about; None: all."""

    @property
    def group(self) -> Group:
        """The group at `next`."""
        return self._reader.group

    def lines(self, start: int = 0) -> list[EventLine]:
        """Return the last lines of entries from an offset on, the latest one last."""
        return [line for offset, line in self._lines if offset >= start]

    def epochs(self) -> list[EpochReading]:
        """Return the last epochs, the latest one last."""
        return [*self._done, *self._reader.unfinished()][-MOST_EPOCHS:]

    def read(self) -> bool:
        """Read what is new, and return whether that is anything; raises `LogError`."""
        start = self.next
        for entries in self._log.tail(start):
            for entry in entries:
                self._done += self._reader.apply(entry)
                self.next = entry.offset + 1
        return self.next > start

    def take_changed(self) -> set[str] | None:
        """Return the connectors that records since the last call were about; None: all."""
        changed, self._changed = self._changed, set()
        return changed

    def _hear(self, record: Record, change: TargetChange | None, now_ms: int) -> None:
        if isinstance(record, TaskStatus):  # the reader leaves it out, as no epoch needs it
            evolve(self.group, record, self.next)
            self.streaks.note_status(record, now_ms)
        kind = _kind_of_mark(record)
        for each in self._events.apply(record, change):
            self._lines.append((self.next, each._replace(time_ms=now_ms)))
            if kind and each.resource and each.resource.connector in self.group.connectors:
                marks = self.marks.setdefault(each.resource.connector, deque(maxlen=MOST_MARKS))
                marks.append(ConnectorMark(now_ms, kind, each.text))
        self._note(record, change, now_ms)

    def _note(self, record: Record, change: TargetChange | None, now_ms: int) -> None:
        match record:
            case (
                TaskStatus(Resource(name))
                | ConnectorConfig(name)
                | TaskConfigs(name)
                | TargetState(name)
                | OffsetsAltered(name)
            ):
                self._add((Resource(name),))
            case CurrentAssignment():
                self._note_step(record.member_id, _steps_of(record), now_ms)
            case ConnectorsTasksMetadata():
                self._add(self._configured ^ self.group.configured)
                self._configured = self.group.configured
            case TargetAssignment() if change is not None:
                moves = (*change.moved, *change.returned, *change.placed)
                self._add(each.resource for each in moves)
                self._add(change.displaced)
                self._note_waiting()
            case ScheduledRebalance():
                self._note_waiting()
            case Tombstone():
                self._note_end(record, now_ms)
            case _ if not isinstance(record, _HARMLESS):
                self._changed = None  # of members: the order of the workers changes, too
            case _:
                pass

    def _note_end(self, record: Tombstone, now_ms: int) -> None:
        if record.kind in _ABOUT_CONNECTORS:
            self._add((Resource(str(record.key[0])),))
            if record.kind is ConnectorConfig:
                self.marks.pop(str(record.key[0]), None)
            if record.kind is TaskStatus:
                self.streaks.drop(Resource(str(record.key[0]), int(record.key[1])))
            return
        self._changed = None
        if record.kind in {MemberMetadata, CurrentAssignment}:
            self._note_lost(self._steps.pop(str(record.key[0]), frozenset()), now_ms)
            self.task_counts.pop(str(record.key[0]), None)

    def _note_step(self, member_id: str, steps: Steps, now_ms: int) -> None:
        before = self._steps.get(member_id, frozenset())
        self._add(each for each, _ in before ^ steps)
        self._note_lost(before, now_ms)
        self._steps[member_id] = steps
        self.task_counts[member_id] = _count_tasks(steps)
        if self.group.away != self._away:  # what it has by the target begins, or ceases, to wait
            self._changed, self._away = None, set(self.group.away)

    def _note_lost(self, steps: Steps, now_ms: int) -> None:
        """Note which of what a member had is to run, and nobody has it now."""
        for each, _ in steps:
            if each in self.group.configured and each not in self.group.owner:
                self.streaks.begin(each, now_ms)

    def _note_waiting(self) -> None:
        """Note what began or ceased to wait for a worker."""
        waiting = frozenset((*self.group.target.unplaceable, *self.group.schedule.parked))
        self._add(self._waiting | waiting)
        self._waiting = waiting

    def _add(self, resources: Iterable[Resource]) -> None:
        if self._changed is not None:
            self._changed.update(each.connector for each in resources)


def _kind_of_mark(record: Record) -> str:
    """Return the kind of what a record tells of a connector; empty: its picture leaves it out."""
    match record:
        case TargetState(state=state):
            return _WANTED.get(state, "")
        case TaskStatus(state=state):
            return _REPORTED.get(state, "")
        case _:
            return _MARKED.get(type(record), "")


def _count_tasks(steps: Steps) -> int:
    return sum(each.is_task for each, _ in steps)


def _steps_of(current: CurrentAssignment) -> Steps:
    kept = ((each, (False, epoch)) for each, epoch in current.assigned.items())
    return frozenset((*kept, *((each, (True, epoch)) for each, epoch in current.pending.items())))
