"""What a worker does about an assignment: stop, take over, start, and perhaps rejoin.

See KIP-415, and `WorkerCoordinator` and `DistributedHerder` of Connect.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ....events.model import Resource
from .config import AssignmentError
from .protocols import EAGER

AT_ONCE = 0


@dataclass(frozen=True, slots=True)
class Received:
    """A worker's part of an incremental assignment; the delay in milliseconds, 0 for none."""

    assigned: Sequence[Resource] = ()
    revoked: Sequence[Resource] = ()
    delay_ms: int = 0
    config_offset: int = 0
    error: AssignmentError = AssignmentError.NO_ERROR


@dataclass(frozen=True, slots=True)
class Reaction:
    """What to stop, then what to start, what the worker then has, and in how long it rejoins.

    None for the last means that it need not rejoin.
    """

    stop: Sequence[Resource]
    start: Sequence[Resource]
    has: Sequence[Resource]
    rejoin_in_ms: int | None


def react(received: Received, had: Sequence[Resource], config_offset: int) -> Reaction:
    """Return what a worker does that has read the configs up to this offset.

    It must have read just what the leader had: else what it has been given is not started,
    but waits until it has rejoined. What it takes over comes behind what it keeps; a worker of
    Connect reports it before that, so that other items are revoked there, but no more of them.
    """
    if received.error is not AssignmentError.NO_ERROR:
        return Reaction((), (), had, AT_ONCE)
    kept = [resource for resource in had if resource not in received.revoked]
    stop = [resource for resource in had if resource in received.revoked]
    has = [*kept, *(resource for resource in received.assigned if resource not in kept)]
    if received.config_offset != config_offset:
        return Reaction(stop, (), has, AT_ONCE)
    rejoin_in_ms = AT_ONCE if received.revoked else received.delay_ms or None
    return Reaction(stop, received.assigned, has, rejoin_in_ms)


def stopped_to_rejoin(protocol: int, had: Sequence[Resource]) -> Sequence[Resource]:
    """Return what a worker stops before it rejoins: all in the eager protocol, else nothing."""
    return had if protocol == EAGER else ()
