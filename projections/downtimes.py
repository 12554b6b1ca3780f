"""For how long nobody ran what changed hands: measured in the log, connector by connector.

From the word of whoever gave a resource up to the first batch of whoever has it next, or,
where no batch was run yet, to the word that it runs. Of a worker that was killed no word
comes, so its work does not count here.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ..events.codec import TYPES, decode
from ..events.log.errors import TrimmedError
from ..events.log.reader import LogReader
from ..events.model import Resource, RunState
from ..events.records import TaskStatus
from .moves import BATCHES_RUN

LATEST = 1_000
"""How many hand-overs of a connector are remembered, the latest ones."""

RECENT = 50_000
"""How many of the log's last entries are looked at: a second's reading, however long it is."""

_STATUS = TYPES[TaskStatus][0]


@dataclass(frozen=True, slots=True)
class Downtime:
    """What past hand-overs took, in milliseconds, and how many of them were measured."""

    median_ms: int
    p99_ms: int
    measured: int

    @classmethod
    def of(cls, took_ms: Iterable[int]) -> "Downtime | None":
        """Return the figures of these hand-overs, None of none."""
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


@dataclass(frozen=True, slots=True)
class _Taking:
    """A resource that runs at its new worker, and has not run a batch there that is known."""

    status: TaskStatus
    stopped_ms: int

    @property
    def took_ms(self) -> int:
        return max(0, self.status.time_ms - self.stopped_ms)


class Downtimes:
    """A fold of the log's statuses that goes on where it ended the last time."""

    def __init__(self) -> None:
        self._stopped: dict[Resource, TaskStatus] = {}
        self._taking: dict[Resource, _Taking] = {}
        self._took_ms: defaultdict[str, deque[int]] = defaultdict(lambda: deque(maxlen=LATEST))
        self._next = 0

    def catch_up(self, log: LogReader) -> None:
        """Measure what was written of late, since the last look.

        Raises `LogError`, `CodecError`.
        """
        self._next = max(self._next, log.end() - RECENT)
        try:
            self._fold_all(log)
        except TrimmedError as trimmed:
            self._next = trimmed.low
            self._fold_all(log)

    def fold(self, status: TaskStatus) -> None:
        """Take the next status of the log."""
        resource = status.resource
        if status.state is RunState.UNASSIGNED:
            self._end(resource)
            self._stopped[resource] = status
        elif status.state is RunState.RUNNING:
            self._run(status)

    def measured(self) -> Measured:
        """Return what is known so far."""
        took_ms = {name: list(each) for name, each in self._took_ms.items()}
        for resource, taking in self._taking.items():
            took_ms.setdefault(resource.connector, []).append(taking.took_ms)
        found = {name: Downtime.of(each) for name, each in took_ms.items()}
        return Measured(
            {name: each for name, each in found.items() if each is not None},
            Downtime.of(ms for each in took_ms.values() for ms in each),
        )

    def _fold_all(self, log: LogReader) -> None:
        for entries in log.tail(self._next):
            for entry in entries:
                if entry.type == _STATUS and isinstance(record := decode(entry), TaskStatus):
                    self.fold(record)
            self._next = entries[-1].offset + 1

    def _run(self, status: TaskStatus) -> None:
        resource = status.resource
        stopped = self._stopped.pop(resource, None)
        if stopped is not None and stopped.worker != status.worker:
            self._taking[resource] = _Taking(status, stopped.time_ms)
        taking = self._taking.get(resource)
        if taking is not None and status.reason == BATCHES_RUN:
            if taking.status.token == status.token:
                self._taking[resource] = replace(taking, status=status)
            self._end(resource)

    def _end(self, resource: Resource) -> None:
        """Keep what a hand-over took of which nothing more is to be learned."""
        taking = self._taking.pop(resource, None)
        if taking is not None:
            self._took_ms[resource.connector].append(taking.took_ms)
