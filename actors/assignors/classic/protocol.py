"""Connect's protocol around an assignment: what a group agrees on before, what workers do after.

A worker offers the protocol that it is configured for and all older ones, the newest first.
Every member says how far it has read the log of configs; the leader must have read as far as
the furthest of them.

About an assignment a worker does this: stop, take over, start, and perhaps rejoin. One that could
not read the configs that its assignment rests on leaves the group, and what it ran goes on running
for a while, a longer one after each failure; after the last it gives up everything and counts anew.
Workers of the eager protocol have stopped everything before and only wait.

See KIP-415, KIP-507, and `ConnectProtocolCompatibility`, `WorkerCoordinator` and
`DistributedHerder` of Connect, and the few steps with which both of its assignors begin.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum

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
"""How often in a row a worker may fail to read the configs before it gives up everything."""
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
