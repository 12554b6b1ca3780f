"""The assignors that workers can name without installing anything, by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..messages.assignors import MemberAssignment, Metadata, Worker
from ..messages.computing import Assignment, Snapshot
from . import balanced, deferred, eager, incremental, simple
from .interface import AssignorFactory, ConnectAssignor
from .interface import plain_metadata as plain

Computes = Callable[[Snapshot], Assignment]


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A built-in assignor: it computes from the snapshot alone, and keeps nothing."""

    name: str
    minimum_version: int
    maximum_version: int
    computes: Computes

    def metadata(self, worker: Worker) -> Metadata:
        """Say how much the worker takes, and what its tags are."""
        return plain(worker)

    def assign(self, group: Snapshot) -> Assignment:
        """Compute."""
        return self.computes(group)

    def on_assignment(self, assignment: MemberAssignment) -> None:
        """Take no note: what counts is in the next snapshot."""


def _incremental(conf: Mapping[str, str]) -> ConnectAssignor:
    moves = int(conf.get("moves.per.round", incremental.MOVES_PER_ROUND))
    interval_ms = int(conf.get("moves.interval.ms", incremental.MOVES_INTERVAL_MS))

    def computes(snapshot: Snapshot) -> Assignment:
        return incremental.assign(snapshot, moves, interval_ms)

    return BuiltIn(incremental.NAME, 0, incremental.VERSION, computes)


def _made(
    name: str, minimum_version: int, maximum_version: int, computes: Computes
) -> AssignorFactory:
    """Return what makes an assignor that no setting changes."""
    return lambda _: BuiltIn(name, minimum_version, maximum_version, computes)


_MADE: tuple[tuple[str, int, int, Computes], ...] = (
    (balanced.NAME, balanced.MINIMUM_VERSION, balanced.MAXIMUM_VERSION, balanced.assign),
    (deferred.NAME, 0, deferred.VERSION, deferred.assign),
    (simple.NAME, 0, simple.VERSION, simple.assign),
    (eager.NAME, 0, eager.VERSION, eager.assign),
)

BUILT_IN: Mapping[str, AssignorFactory] = {
    **{each[0]: _made(*each) for each in _MADE},
    incremental.NAME: _incremental,
}
"""What makes each, from the settings `assignor.*`."""
