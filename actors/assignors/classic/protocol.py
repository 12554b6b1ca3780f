"""Connect's protocol around an assignment: what workers offer, and what they do with their part.

A worker offers the protocol that it is configured for and all older ones, the newest first. With an
assignment it stops what is revoked, takes over what is new, starts that, and perhaps rejoins. One
that has not read the configs that its assignment rests on starts nothing. Workers of the eager
protocol have stopped everything before and only wait.

See KIP-415, KIP-507, and `ConnectProtocolCompatibility` and `WorkerCoordinator` of Connect.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from ....events.model import Resource

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
    """Return the protocols that a worker of this mode offers, the preferred one first."""
    newest = VERSIONS[MODES[mode]]
    older = [name for name, version in VERSIONS.items() if version <= newest]
    return sorted(older, key=VERSIONS.__getitem__, reverse=True)


class AssignmentError(IntEnum):
    """An error that an assignment has for all members in place of work; numbers as on the wire."""

    NO_ERROR = 0
    CONFIG_MISMATCH = 1


AT_ONCE = 0
"""A delay to rejoin, in milliseconds."""


@dataclass(frozen=True, slots=True)
class ReceivedAssignment:
    """A worker's part of an assignment; its bytes are in `actors/classic/bytes`."""

    assigned: Sequence[Resource] = ()
    """What the worker takes over beside what it has; all that it is to run in the eager protocol,
    and in what it tells of itself when it joins."""
    revoked: Sequence[Resource] = ()
    delay_ms: int = 0
    """In how many milliseconds the worker rejoins; 0: it need not."""
    config_offset: int = 0
    error: int = AssignmentError.NO_ERROR
    """Any other number of an AssignmentError, or one that nobody knows, is an error."""
    leader: str | None = None
    """The leader's member id, and where its REST interface is; on the wire both are there."""
    leader_url: str | None = None
    version: int = VERSIONS["compatible"]
    """The version of the protocol in which it is written."""


@dataclass(frozen=True, slots=True)
class Reaction:
    """A worker's reaction to an assignment: its stops, its starts, and when it rejoins."""

    stop: Sequence[Resource]
    start: Sequence[Resource]
    has: Sequence[Resource]
    """The worker's resources afterwards."""
    rejoin_in_ms: int | None
    """None: it need not rejoin."""


def react(received: ReceivedAssignment, had: Sequence[Resource], config_offset: int) -> Reaction:
    """Return the reaction of a worker that has read the configs up to this offset.

    If it has not read just what the leader had, it starts nothing of what it was assigned before it
    has rejoined. Work that it takes over comes after the work that it keeps; a worker of Connect
    reports it in front, so that other items are revoked there, but no more of them.
    """
    if received.error != AssignmentError.NO_ERROR:
        return Reaction((), (), had, AT_ONCE)
    kept = [resource for resource in had if resource not in received.revoked]
    stop = [resource for resource in had if resource in received.revoked]
    has = [*kept, *(resource for resource in received.assigned if resource not in kept)]
    if received.config_offset != config_offset:
        return Reaction(stop, (), has, AT_ONCE)
    rejoin_in_ms = AT_ONCE if received.revoked else received.delay_ms or None
    return Reaction(stop, received.assigned, has, rejoin_in_ms)


def stop_to_rejoin(protocol: int, had: Sequence[Resource]) -> Sequence[Resource]:
    """Return the resources to stop before a rejoin: all in the eager protocol, else none."""
    return had if protocol == EAGER else ()


def is_behind(config_offset: int, read_offset: int) -> bool:
    """Return whether a worker must read further in the log before it starts anything."""
    return config_offset > read_offset
