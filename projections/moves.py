"""Moves and their downtime: which resource went from whom to whom, why, and what that cost.

Downtime is defined here, once, for `explain`, `plan` and the demo (`Outage`): the time during
which nobody ran a resource that changed hands. It begins when the giver stopped, and ends when
the taker is up, which is its first batch or, where no batch is known, its word that it runs.
When the giver stopped is known from its own word (a status UNASSIGNED), or from the group, which
saw its process end. A giver that fell silent leaves bounds only (`explain/handovers.py`).

`Moves` follows all resources by their statuses alone, so that it may begin anywhere in a log: a
plan has to be made at once, however long the log is. `explain` follows what one target moved,
through the grants of its members as well, and so also knows what became of a killed worker's work.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Self

from ..events.catalogue import TYPE_OF
from ..events.entries.codec import decode
from ..events.log.errors import TrimmedError
from ..events.log.reader import LogReader
from ..events.model import BATCHES_RUN, Cause, Resource, RunState, Token
from ..events.records import GroupMetadata, Record, TargetAssignment, TaskStatus

LATEST: Final = 1_000
"""How many moves of a connector the figures are made of, the latest ones."""
RECENT: Final = 50_000
"""How many of a log's last entries the figures are made of: less than a second's reading."""

_STATUS: Final = TYPE_OF[TaskStatus].number


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """What is known of the time during which nobody ran a resource that changed hands.

    All times are wall clock in milliseconds, None while unknown. Clocks that differ between
    workers make no time less than none.
    """

    stopped_ms: int | None = None
    """When the giver stopped."""
    running_ms: int | None = None
    """When the taker first said that it runs."""
    first_batch_ms: int | None = None
    """When the taker's first batch began."""

    @property
    def up_ms(self) -> int | None:
        """When it ran again: its first batch, or, where none is known, the word that it runs."""
        return self.running_ms if self.first_batch_ms is None else self.first_batch_ms

    @property
    def downtime_ms(self) -> int | None:
        """From the stop to running again, None if either is not known."""
        return between(self.stopped_ms, self.up_ms)

    def taken_up(self, status: TaskStatus) -> Self:
        """Return the outage after a word of the taker."""
        if status.state is not RunState.RUNNING or self.first_batch_ms is not None:
            return self
        running_ms = status.time_ms if self.running_ms is None else self.running_ms
        first_batch_ms = status.time_ms if status.reason == BATCHES_RUN else None
        return replace(self, running_ms=running_ms, first_batch_ms=first_batch_ms)


def between(start_ms: int | None, end_ms: int | None) -> int | None:
    """Return the time between two moments, None if either is not known."""
    return None if start_ms is None or end_ms is None else max(0, end_ms - start_ms)


@dataclass(frozen=True, slots=True)
class Move(Outage):
    """One resource that went from a worker to another, each named by its url.

    `stopped_ms` is None where the giver never said that it stopped, as one that was killed.
    """

    resource: Resource
    token: Token
    """The taker's."""
    giver: str
    taker: str
    causes: tuple[Cause, ...] = ()
    """What raised the epochs that the target answers under which the taker has it."""


class Moves:
    """A fold of control records, in the log's order, that follows who runs each resource."""

    def __init__(self) -> None:
        self.latest: dict[Resource, TaskStatus] = {}
        """The last word of the worker that runs each resource, or ran it last."""
        self.open: dict[Resource, Move] = {}
        """Moves whose takers run and have had no batch yet."""
        self._stopped: dict[Resource, TaskStatus] = {}
        """The last word of givers that stopped, until anybody takes over."""
        self._raised: list[tuple[int, Cause]] = []
        """The epochs, each with its cause, that no target has answered yet."""
        self._answered: dict[int, tuple[Cause, ...]] = {}
        """The causes that each target answers, by its assignment epoch."""

    def take(self, record: Record) -> list[Move]:
        """Take the next record; return the moves of which nothing more is to be learned now."""
        if isinstance(record, TaskStatus):
            return self.take_status(record)
        if isinstance(record, GroupMetadata):
            self._raised.append((record.group_epoch, record.cause))
        elif isinstance(record, TargetAssignment) and not record.error:
            epoch = record.assignment_epoch
            self._answered[epoch] = tuple(cause for at, cause in self._raised if at <= epoch)
            self._raised = [(at, cause) for at, cause in self._raised if at > epoch]
        return []

    def take_status(self, status: TaskStatus) -> list[Move]:
        """Take the next status; return as `take` does."""
        resource, runner = status.resource, self.latest.get(status.resource)
        if status.state is RunState.UNASSIGNED:
            if runner is None or runner.worker == status.worker:
                self._stopped[resource] = status
                return self._close(resource)
            move = self.open.get(resource)
            if move is not None and move.giver == status.worker:
                self.open[resource] = replace(move, stopped_ms=status.time_ms)
            return []
        self.latest[resource] = status
        return self._take_run(status, runner) if status.state is RunState.RUNNING else []

    def _take_run(self, status: TaskStatus, runner: TaskStatus | None) -> list[Move]:
        resource, closed = status.resource, list[Move]()
        stopped = self._stopped.pop(resource, None)
        giver = stopped or runner
        if giver is not None and giver.worker != status.worker:
            closed += self._close(resource)
            causes = self._answered.get(status.token.grant_epoch, ())
            stopped_ms = stopped.time_ms if stopped else None
            way = (giver.worker, status.worker, causes)
            self.open[resource] = Move(resource, status.token, *way, stopped_ms=stopped_ms)
        move = self.open.get(resource)
        if move is not None and move.token == status.token:
            self.open[resource] = move.taken_up(status)
        return closed + self._close(resource) if status.reason == BATCHES_RUN else closed

    def _close(self, resource: Resource) -> list[Move]:
        move = self.open.pop(resource, None)
        return [] if move is None else [move]


@dataclass(frozen=True, slots=True)
class Downtime:
    """What past moves took, in milliseconds, and how many of them were measured."""

    median_ms: int
    p99_ms: int
    measured: int

    @classmethod
    def of(cls, took_ms: Iterable[int]) -> "Downtime | None":
        """Return the figures of these moves, None of none."""
        ordered = sorted(took_ms)
        if not ordered:
            return None
        return cls(_nearest_rank(ordered, 50), _nearest_rank(ordered, 99), len(ordered))


def _nearest_rank(ordered: list[int], percent: int) -> int:
    """Return the smallest value that so many per cent of the values do not exceed."""
    return ordered[-(-len(ordered) * percent // 100) - 1]


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures of each connector that has any, and those of all together."""

    by_connector: Mapping[str, Downtime]
    overall: Downtime | None


class Downtimes:
    """Measures the moves of a log whose givers told that they stopped.

    It goes on where it ended the last time, and looks at the last `RECENT` entries only.
    """

    def __init__(self) -> None:
        self._moves = Moves()
        self._took_ms: defaultdict[str, deque[int]] = defaultdict(lambda: deque(maxlen=LATEST))
        """What the latest moves of each connector took."""
        self._next = 0

    def catch_up(self, log: LogReader) -> None:
        """Measure what was written since the last look; raises `LogError`, `CodecError`."""
        self._next = max(self._next, log.end() - RECENT)
        try:
            self._take_all(log)
        except TrimmedError as trimmed:
            self._next = trimmed.low
            self._take_all(log)

    def take(self, status: TaskStatus) -> None:
        """Take the next status of the log."""
        for move in self._moves.take_status(status):
            if move.downtime_ms is not None:
                self._took_ms[move.resource.connector].append(move.downtime_ms)

    def measured(self) -> Measured:
        """Return what is known so far, moves without a batch included."""
        took_ms = {name: list(each) for name, each in self._took_ms.items()}
        for move in self._moves.open.values():
            if move.downtime_ms is not None:
                took_ms.setdefault(move.resource.connector, []).append(move.downtime_ms)
        found = {name: Downtime.of(each) for name, each in took_ms.items()}
        return Measured(
            {name: each for name, each in found.items() if each is not None},
            Downtime.of(ms for each in took_ms.values() for ms in each),
        )

    def _take_all(self, log: LogReader) -> None:
        for entries in log.tail(self._next):
            for entry in entries:
                if entry.type == _STATUS and isinstance(record := decode(entry), TaskStatus):
                    self.take(record)
            self._next = entries[-1].offset + 1
