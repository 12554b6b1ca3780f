"""The settings of a node about its group: members, times, protocols, and who computes a target.

Settings with the meaning of a Kafka Connect setting have its name.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ....actors.assignors.built_in.incremental import (
    AT_ONCE,
    DRAINS,
    MOVES_INTERVAL_MS,
    MOVES_PER_ROUND,
)
from ....actors.group.state.settings import DEFAULT_ASSIGNOR, MigrationPolicy
from ....actors.messages.computing import LONGEST_WAIT_MS, SHORTEST_WAIT_MS
from ....actors.settings import word
from . import kinds
from .access import AccessKeys
from .setting import SAME, Domain
from .setting import handed_on as _handed_on
from .setting import setting as _setting

ASSIGNOR_CONF: Final = "assignor.conf"

_RATE_MAX: Final = 100_000

_DELAY_OR_AS_ANOTHER: Final = kinds.milliseconds(-1)
_MOVES_INTERVAL: Final = kinds.milliseconds(SHORTEST_WAIT_MS, LONGEST_WAIT_MS)
_MOVE_COUNT: Final = kinds.number(1, kinds.INT32_MAX, "moves")
_DRAINS: Final = Domain(word(*DRAINS), " or ".join(DRAINS))
_MEMBERS: Final = kinds.number(1, kinds.INT32_MAX, "members")
_RATE: Final = kinds.number(0, _RATE_MAX, "requests/s", "a whole number of requests a second")
_CONNECT_PROTOCOL: Final = Domain(
    word("eager", "compatible", "sessioned"), "eager, compatible or sessioned"
)
_MIGRATION_POLICY: Final = Domain(word(*MigrationPolicy), ", ".join(MigrationPolicy))
_RETENTION: Final = 1 << 53
_RETENTION_MS: Final = kinds.number(-1, _RETENTION, "ms", "a whole number of milliseconds")
_RETENTION_EPOCHS: Final = kinds.number(-1, kinds.INT32_MAX, "epochs")
_RETENTION_BYTES: Final = kinds.number(-1, _RETENTION, "bytes", "a whole number of bytes")
_GROUP_PROTOCOL: Final = Domain(word("connect", "classic"), "connect or classic")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupKeys(AccessKeys):
    """The settings of a node about its group, each of them valid; times in milliseconds."""

    session_timeout_ms: int = _setting(
        kinds.MILLISECONDS,
        10_000,
        "A worker that is silent for this time loses its work to others. With a log.store other"
        " than lmdb: 15000.",
        SAME,
    )
    heartbeat_interval_ms: int = _setting(
        kinds.MILLISECONDS,
        3_000,
        "How often a worker reports when nothing has changed. With a log.store other than lmdb:"
        " 1000.",
        SAME,
    )
    rebalance_timeout_ms: int = _setting(
        kinds.MILLISECONDS,
        60_000,
        "How long a worker may take to give up work, or to compute a target.",
        SAME,
    )
    fence_margin_ms: int = _setting(
        kinds.MILLISECONDS,
        1_000,
        "How long before the end of its session a worker cancels all its work.",
    )
    scheduled_rebalance_max_delay_ms: int = _setting(
        kinds.MILLISECONDS_OR_NONE,
        300_000,
        "How long the work of a lost worker waits for its return. 0: no wait.",
        SAME,
    )
    scheduled_rebalance_leave_delay_ms: int = _setting(
        _DELAY_OR_AS_ANOTHER,
        -1,
        "How long the work of a worker that left in good order waits for its return. -1: as long"
        " as scheduled.rebalance.max.delay.ms, as in Connect; 0: no wait.",
    )
    group_max_size: int = _setting(
        _MEMBERS,
        (1 << 31) - 1,
        "The most members of a group.",
        in_connect="group.consumer.max.size",
    )
    group_remote_assignor: str = _setting(
        kinds.SERVER_ASSIGNOR,
        "",
        "The assignor that the group itself runs: a built-in one, or an entry point of"
        " fairlead.server_assignors. Empty: the workers compute.",
    )
    group_local_assignors: str = _setting(
        kinds.ASSIGNOR_NAMES,
        DEFAULT_ASSIGNOR,
        "The assignors that the workers can run, the preferred one first: built-in ones and those"
        " of installed distributions.",
    )
    assignor_memory_max: str = _setting(
        kinds.MEMORY,
        "1g",
        "The most memory of this node's assignor process. Beyond it a computation fails.",
    )
    assignor_moves_per_round: int = _setting(
        _MOVE_COUNT,
        MOVES_PER_ROUND,
        "How many running resources that could stay the assignor incremental moves in one"
        " interval.",
    )
    assignor_moves_interval_ms: int = _setting(
        _MOVES_INTERVAL,
        MOVES_INTERVAL_MS,
        "The interval between two such rounds of moves.",
    )
    assignor_moves_drain: str = _setting(
        _DRAINS,
        AT_ONCE,
        "Whether the assignor incremental moves the work of a drained worker at once, or paced:"
        " so much of it in an interval as it would move of any other.",
    )
    assignor_conf: Mapping[str, str] = _handed_on(
        "a setting of an assignor", "assignor.conf.NAME is passed to assignors as NAME."
    )
    assignment_interval_ms: int = _setting(
        kinds.MILLISECONDS_OR_NONE,
        0,
        "The least time between two computations of a target. 0: none.",
    )
    group_initial_rebalance_delay_ms: int = _setting(
        kinds.MILLISECONDS_OR_NONE,
        3_000,
        "How long an empty group of the classic protocol waits for more members before it"
        " assigns. 0: no wait.",
    )
    group_min_session_timeout_ms: int = _setting(
        kinds.MILLISECONDS, 6_000, "The shortest session that a classic member may ask for."
    )
    group_max_session_timeout_ms: int = _setting(
        kinds.MILLISECONDS, 1_800_000, "The longest session that a classic member may ask for."
    )
    connect_initial_rebalance_delay_ms: int = _setting(
        kinds.MILLISECONDS_OR_NONE,
        0,
        "How long an empty connect group waits for more members before its first target.",
    )
    group_migration_policy: str = _setting(
        _MIGRATION_POLICY,
        "bidirectional",
        "Which conversions of groups with members are allowed: to the connect protocol (upgrade),"
        " back (downgrade), both, or none.",
        in_connect="group.consumer.migration.policy",
    )
    member_request_rate: int = _setting(
        _RATE,
        0,
        "How many heartbeats a worker may send in a second; after more it must wait. 0: no limit.",
    )
    connect_protocol: str = _setting(
        _CONNECT_PROTOCOL,
        "sessioned",
        "What classic workers offer: eager stops all tasks for a rebalance, the others only those"
        " that move.",
        SAME,
    )
    group_protocol: str = _setting(
        _GROUP_PROTOCOL,
        "connect",
        "The protocol of workers and group: connect follows KIP-848; with classic one of the"
        " workers assigns.",
        SAME,
    )
    log_retention_ms: int = _setting(
        _RETENTION_MS,
        7_776_000_000,
        "How long the history of a group is kept, in its control log; the last ten epochs stay"
        " however old they are. What is older is summed up. -1 or 0: for ever.",
        SAME,
    )
    log_retention_epochs: int = _setting(
        _RETENTION_EPOCHS,
        -1,
        "How many of its last epochs the history of a group keeps. -1 or 0: no limit.",
    )
    log_retention_bytes: int = _setting(
        _RETENTION_BYTES,
        1 << 30,
        "How many bytes the history in a control log may take; the oldest part of it is summed up."
        " -1 or 0: no limit.",
        SAME,
    )
