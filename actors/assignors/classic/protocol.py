"""What a group of Connect's workers agrees on: the protocol it speaks, and the configs that count.

A worker offers the protocol that it is configured for and all older ones, the newest first.
Every member says how far it has read the log of configs; the leader must have read as far as
the furthest of them. See KIP-415, KIP-507, `ConnectProtocolCompatibility` of Connect, and its
`EagerAssignor` and `IncrementalCooperativeAssignor`, which begin with the same few steps.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from ....events.model import CONNECTOR, Resource, Resources

EAGER = 0
"""The version of the protocol in which everybody stops everything before it rejoins."""

VERSIONS: Mapping[str, int] = {"default": EAGER, "compatible": 1, "sessioned": 2}
"""Protocols by their names on the wire."""

MODES: Mapping[str, str] = {
    "eager": "default",
    "compatible": "compatible",
    "sessioned": "sessioned",
}
"""The newest protocol that a worker offers, by its setting `connect.protocol`."""


def offer_protocols(mode: str) -> Sequence[str]:
    """Return what a worker of this mode offers, the preferred one first."""
    newest = VERSIONS[MODES[mode]]
    older = [name for name, version in VERSIONS.items() if version <= newest]
    return sorted(older, key=VERSIONS.__getitem__, reverse=True)


def select_protocol(offers: Iterable[Sequence[str]]) -> str | None:
    """Return the protocol of a group, or None where its members have none in common.

    Every member votes for the first on its list that all of them offer; most votes win. Of
    equals the first name by the alphabet wins, where Kafka takes the first of a hash map.
    """
    lists = list(offers)
    if not lists:
        return None
    common = frozenset(lists[0]).intersection(*lists)
    if not common:
        return None
    votes = Counter(next(name for name in each if name in common) for each in lists)
    return min(votes, key=lambda name: (-votes[name], name))


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
class AgreedConfigs:
    """The configs to compute from, and the offset that every member is told.

    Without configs nothing is computed: every member gets the error, empty lists and no delay, and
    the leader's memory stays as it is. The leader then reads its log to the end, and all rejoin.
    """

    error: AssignmentError
    config_offset: int
    configs: ConfigSnapshot | None


def agree_on_configs(
    snapshot: ConfigSnapshot, fresh: ConfigSnapshot, reported: Collection[int]
) -> AgreedConfigs:
    """Return which of the leader's snapshots counts, given the offset of every member.

    The fresh snapshot, taken now, is looked at only where a member has read further than the
    other. The offset of the snapshot that counts is told, even where it is above all reported
    ones: Connect tells the furthest reported instead, which is the same as long as the leader, a
    member too, reported its own.
    """
    furthest = max(reported, default=snapshot.offset)
    for configs in (snapshot, fresh):
        if configs.offset >= furthest:
            return AgreedConfigs(AssignmentError.NO_ERROR, configs.offset, configs)
    return AgreedConfigs(AssignmentError.CONFIG_MISMATCH, furthest, None)
