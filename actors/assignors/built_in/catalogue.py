"""The built-in assignors by name: those of a worker, and those that the group itself can run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...messages.assignors import MemberAssignment, Metadata, Worker
from ...messages.computing import Assignment, Snapshot
from ..sdk import AssignorFactory, ConnectAssignor, plain_metadata
from . import balanced, counting, incremental

Computes = Callable[[Snapshot], Assignment]
"""Returns where everything configured in a group is to go."""

SERVER_ASSIGNORS: Mapping[str, Computes] = {
    counting.UNIFORM: counting.assign_uniformly,
    counting.RANGE: counting.assign_ranges,
}
"""What the group itself can compute with."""

NO_ASSIGNORS: Mapping[str, Computes] = {}

FALLBACK = counting.UNIFORM
"""What the group computes with where no member can compute."""


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A built-in assignor of a worker: a pure function of the snapshot, without state."""

    name: str
    minimum_version: int
    maximum_version: int
    computes: Computes

    def metadata(self, worker: Worker) -> Metadata:
        """Return the worker's capacity and tags."""
        return plain_metadata(worker)

    def assign(self, group: Snapshot) -> Assignment:
        """Return the assignment of all configured resources."""
        return self.computes(group)

    def on_assignment(self, assignment: MemberAssignment) -> None:
        """Do nothing: the next snapshot has all that the assignor needs."""


def _make_incremental(conf: Mapping[str, str]) -> ConnectAssignor:
    moves = int(conf.get("moves.per.round", incremental.MOVES_PER_ROUND))
    interval_ms = int(conf.get("moves.interval.ms", incremental.MOVES_INTERVAL_MS))
    paces_drains = conf.get("moves.drain", incremental.AT_ONCE) == incremental.PACED

    def computes(snapshot: Snapshot) -> Assignment:
        return incremental.assign(snapshot, moves, interval_ms, paces_drains=paces_drains)

    return BuiltIn(incremental.NAME, 0, 0, computes)


def _always(name: str, computes: Computes) -> AssignorFactory:
    """Return a factory for an assignor without settings."""
    return lambda _: BuiltIn(name, 0, 0, computes)


BUILT_IN: Mapping[str, AssignorFactory] = {
    balanced.NAME: _always(balanced.NAME, balanced.assign),
    counting.DEFERRED: _always(counting.DEFERRED, counting.assign_deferred),
    counting.SIMPLE: _always(counting.SIMPLE, counting.assign_at_once),
    counting.EAGER: _always(counting.EAGER, counting.assign_eagerly),
    incremental.NAME: _make_incremental,
}
"""What makes each that a worker can compute with, from the settings `assignor.*`."""
