"""What a worker does: about an assignment, about new configs, and when it cannot read them.

About an assignment: stop, take over, start, and perhaps rejoin. A worker that could not read
the configs that its assignment rests on leaves the group, and what it ran goes on running for a
while, a longer one after each failure; after the last it gives up everything and counts anew.
Workers of the eager protocol have stopped everything before and only wait. See KIP-415, and
`WorkerCoordinator` and `DistributedHerder` of Connect.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from ....events.model import Resource
from .protocol import EAGER, AssignmentError

AT_ONCE = 0
"""A delay to rejoin, in milliseconds."""


@dataclass(frozen=True, slots=True)
class ReceivedAssignment:
    """A worker's part of an incremental assignment; the delay in milliseconds, 0 for none."""

    assigned: Sequence[Resource] = ()
    revoked: Sequence[Resource] = ()
    delay_ms: int = 0
    config_offset: int = 0
    error: AssignmentError = AssignmentError.NO_ERROR


@dataclass(frozen=True, slots=True)
class Reaction:
    """What a worker stops, then starts, has after that, and when it rejoins."""

    stop: Sequence[Resource]
    start: Sequence[Resource]
    has: Sequence[Resource]
    rejoin_in_ms: int | None
    """None: it need not rejoin."""


def react(received: ReceivedAssignment, had: Sequence[Resource], config_offset: int) -> Reaction:
    """Return what a worker does that has read the configs up to this offset.

    If it has not read just what the leader had, it starts nothing of what it was assigned before it
    has rejoined. Work that it takes over comes after the work that it keeps; a worker of Connect
    reports it in front, so that other items are revoked there, but no more of them.
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


def stop_to_rejoin(protocol: int, had: Sequence[Resource]) -> Sequence[Resource]:
    """Return what a worker stops before it rejoins: all in the eager protocol, else nothing."""
    return had if protocol == EAGER else ()


class ConfigNews(Enum):
    """What the log of configs can tell a worker."""

    CONNECTORS = "a connector was created or deleted"
    CONNECTOR_CONFIG = "a connector that was there already has another config"
    TASK_CONFIGS = "the configs of a connector's tasks were written"
    TARGET_STATE = "a connector is to be paused, resumed or stopped"


class LocalChange(Enum):
    """What a worker changes of what it runs, without waiting for an assignment."""

    NOTHING = "nothing"
    RESTART_CONNECTOR = "restart the connector, if it runs here"
    STOP_TASKS = "stop the connector's tasks: they start again after the rebalance"
    APPLY_STATE = "bring the connector and its tasks to that state"


@dataclass(frozen=True, slots=True)
class ConfigResponse:
    """Whether the worker rejoins, so that all is assigned anew, and what it changes at once."""

    rejoins: bool
    change: LocalChange


RESPONSES: Mapping[ConfigNews, ConfigResponse] = {
    ConfigNews.CONNECTORS: ConfigResponse(rejoins=True, change=LocalChange.NOTHING),
    ConfigNews.CONNECTOR_CONFIG: ConfigResponse(
        rejoins=False, change=LocalChange.RESTART_CONNECTOR
    ),
    ConfigNews.TASK_CONFIGS: ConfigResponse(rejoins=True, change=LocalChange.STOP_TASKS),
    ConfigNews.TARGET_STATE: ConfigResponse(rejoins=False, change=LocalChange.APPLY_STATE),
}


ATTEMPTS = 5
SHARE = 10
"""Into how many parts the longest delay is cut, of which the last pause is one."""


def is_behind(config_offset: int, read_offset: int) -> bool:
    """Tell whether a worker that has read so far has to read on before it starts anything."""
    return config_offset > read_offset


def pause_ms(max_delay_ms: int, failures: int) -> int | None:
    """Return how long work goes on after so many failures in a row, the first being 1.

    None if everything is to be given up.
    """
    left = ATTEMPTS - failures + 1
    return max_delay_ms // SHARE // left if left > 0 else None
