"""Which state of the configs an assignment is computed from: the config offset rule.

Every member says how far it has read the log of configs; the leader must have read as far as
the furthest of them. See KIP-415, and `EagerAssignor` and `IncrementalCooperativeAssignor` of
Connect, which begin with the same few steps.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import IntEnum

from ....events.model import CONNECTOR, Resource, Resources


class AssignmentError(IntEnum):
    """What an assignment tells every member instead of work; the numbers are on the wire."""

    NO_ERROR = 0
    CONFIG_MISMATCH = 1


@dataclass(frozen=True, slots=True)
class ConfigSnapshot:
    """The configs up to an offset of their log: each connector with its number of tasks."""

    offset: int
    task_counts: Mapping[str, int]

    @property
    def resources(self) -> Resources:
        """Every connector, and every task of it from 0 on."""
        counts = self.task_counts.items()
        return frozenset(Resource(name, task) for name, n in counts for task in range(CONNECTOR, n))


@dataclass(frozen=True, slots=True)
class Settled:
    """The configs to compute from, and the offset that every member is told.

    Without configs nothing is computed: everybody gets the error, empty lists and no delay,
    and no history is touched. The leader then reads its log to the end, and all rejoin.
    """

    error: AssignmentError
    config_offset: int
    configs: ConfigSnapshot | None


def settle(snapshot: ConfigSnapshot, fresh: ConfigSnapshot, reported: Collection[int]) -> Settled:
    """Return which of the leader's snapshots counts, given the offset of every member.

    The fresh one, taken now, is looked at only where a member has read further than the
    other; then its own offset counts, even where it is above all that is reported. So does
    that of the other: Connect tells the furthest reported instead, which is the same as long
    as the leader, a member too, reported what it has.
    """
    furthest = max(reported, default=snapshot.offset)
    for configs in (snapshot, fresh):
        if configs.offset >= furthest:
            return Settled(AssignmentError.NO_ERROR, configs.offset, configs)
    return Settled(AssignmentError.CONFIG_MISMATCH, furthest, None)
