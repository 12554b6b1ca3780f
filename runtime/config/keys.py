"""Every setting of a node: its default, what is allowed, and what it means.

Kafka Connect's names are kept where the meaning is Connect's. A `Config` that exists is
sound: values that contradict one another are refused with the smallest one that would do.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from ...actors.assignors.built_in.incremental import MOVES_INTERVAL_MS, MOVES_PER_ROUND
from ...actors.group.state.soft_state import GroupSettings
from ...actors.settings import Setting, SettingType
from ...actors.worker.instructions import Timing, flaw_in_session
from ...events.placement import ORDINARY, Abilities, split_list
from ..pipeline.connectors.context import Reach
from . import kinds
from .kinds import Domain, Endpoint, bracketed, bytes_of, cores_of, parse_listener

SHORTEST_ANSWER_MS: Final = 1_000
SPARK_CONF: Final = "spark.conf"
ASSIGNOR_CONF: Final = "assignor.conf"
ASSIGNOR: Final = "assignor."
"""Settings that begin so are the assignors': all but their memory is handed to each."""


class Contradiction(NamedTuple):
    """Two or more settings that cannot stand together, and what would do."""

    keys: tuple[str, ...]
    text: str


class Contradictory(Exception):  # noqa: N818  # says what the settings are
    """Settings that are each sound cannot stand together; `found` has all of it."""

    def __init__(self, found: Sequence[Contradiction]) -> None:
        self.found = found
        super().__init__("; ".join(each.text for each in found))


@dataclass(frozen=True, slots=True)
class NodeSetting(Setting):
    """One setting of a node, beside what each setting has."""

    in_connect: str = ""
    """The name that it has in Kafka Connect, or in Kafka's broker."""


def _setting(domain: Domain, default: str | int, documentation: str, in_connect: str = "") -> Any:  # noqa: ANN401  # what a dataclass takes for a field
    """Return the field of `Config` that a setting is; its name follows from the field's."""
    made = NodeSetting(
        "",
        domain.type,
        documentation,
        default,
        convert=domain.convert,
        allowed=domain.allowed,
        unit=domain.unit,
        in_connect=in_connect,
    )
    return field(default=default, metadata={NodeSetting: made})


def _handed_on(allowed: str, documentation: str) -> Any:  # noqa: ANN401
    """Return the field of settings that are not fairlead's own, by the names they have there."""
    made = NodeSetting("", SettingType.STRING, documentation, allowed=allowed)
    return field(default_factory=dict[str, str], repr=False, metadata={NodeSetting: made})


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All settings of a node; times in milliseconds. Raises `Contradictory`."""

    group_id: str = _setting(
        kinds.GROUP_ID,
        "connect",
        "The group that the workers join.",
        in_connect="group.id",
    )
    listeners: str = _setting(
        kinds.LISTENER_URL,
        "http://127.0.0.1:8083",
        "Where the REST interface listens; loopback only. Port 0: a free one.",
        in_connect="listeners",
    )
    rest_advertised_host_name: str = _setting(
        kinds.HOST,
        "",
        "The host that others are told to reach this node at. Empty: listeners'.",
        in_connect="rest.advertised.host.name",
    )
    rest_advertised_port: int = _setting(
        kinds.PORT,
        0,
        "The port that others are told to reach this node at. 0: listeners'.",
        in_connect="rest.advertised.port",
    )
    rest_allowed_hosts: str = _setting(
        kinds.HOSTS,
        "",
        "Further names, with commas, that requests may give this node's REST"
        " interface and their pages may be from: those of a proxy in front of it.",
    )
    session_timeout_ms: int = _setting(
        kinds.MILLISECONDS,
        10_000,
        "A worker that is silent for so long has lost its work to others.",
        in_connect="session.timeout.ms",
    )
    heartbeat_interval_ms: int = _setting(
        kinds.MILLISECONDS,
        3_000,
        "How often a worker reports when there is nothing to say.",
        in_connect="heartbeat.interval.ms",
    )
    rebalance_timeout_ms: int = _setting(
        kinds.MILLISECONDS,
        60_000,
        "How long a worker may take to give work up, or to compute a target.",
        in_connect="rebalance.timeout.ms",
    )
    fence_margin_ms: int = _setting(
        kinds.MILLISECONDS,
        1_000,
        "So long before its session can end, a worker cancels all its work.",
    )
    scheduled_rebalance_max_delay_ms: int = _setting(
        kinds.MILLISECONDS_OR_NONE,
        300_000,
        "How long the work of a lost worker waits for its return. 0: not at all.",
        in_connect="scheduled.rebalance.max.delay.ms",
    )
    task_shutdown_graceful_timeout_ms: int = _setting(
        kinds.MILLISECONDS_OR_NONE,
        5_000,
        "How long tasks may take to stop before they are cancelled.",
        in_connect="task.shutdown.graceful.timeout.ms",
    )
    group_max_size: int = _setting(
        kinds.COUNT,
        (1 << 31) - 1,
        "How many members a group can have.",
        in_connect="group.consumer.max.size",
    )
    group_remote_assignor: str = _setting(
        kinds.REMOTE_ASSIGNOR,
        "",
        "Which assignor the group itself runs. Empty: its workers compute.",
    )
    group_local_assignors: str = _setting(
        kinds.ASSIGNOR_NAMES,
        "balanced",
        "Which assignors the workers can compute with, the preferred ones first:"
        " built-in ones and those of installed distributions.",
    )
    assignor_memory_max: str = _setting(
        kinds.MEMORY,
        "1g",
        "What the assignor process of this node may take. Beyond it, a computation fails.",
    )
    assignor_moves_per_round: int = _setting(
        kinds.MOVE_COUNT,
        MOVES_PER_ROUND,
        "How much of what runs the assignor incremental moves in one interval,"
        " where it could as well stay.",
    )
    assignor_moves_interval_ms: int = _setting(
        kinds.MOVES_INTERVAL,
        MOVES_INTERVAL_MS,
        "How long the assignor incremental waits between such rounds of moves.",
    )
    assignor_conf: Mapping[str, str] = _handed_on(
        "a setting of an assignor",
        "assignor.conf.NAME is handed to assignors as NAME.",
    )
    group_instance_id: str = _setting(
        kinds.INSTANCE_ID,
        "",
        "Makes this node's workers static: each keeps its seat and its work while "
        "the node restarts. One name per node.",
    )
    client_rack: str = _setting(
        kinds.ZONE,
        "",
        "The zone that this node's workers are in; work may ask for a zone.",
        in_connect="client.rack",
    )
    worker_tags: str = _setting(
        kinds.TAGS,
        "",
        "The tags of this node's workers, with commas; work may ask for tags.",
    )
    worker_capacity: int = _setting(
        kinds.CAPACITY,
        1,
        "How much this node's workers take next to others: with 2 twice as much as with 1.",
    )
    assignment_interval_ms: int = _setting(
        kinds.MILLISECONDS_OR_NONE,
        0,
        "The least time between two computations of a target. 0: none.",
        in_connect="group.consumer.assignment.interval.ms",
    )
    member_request_rate: int = _setting(
        kinds.RATE,
        0,
        "How many heartbeats a worker may send in a second before it is told to "
        "wait. 0: any number.",
    )
    data_dir: str = _setting(
        kinds.FOLDER,
        "./fairlead-data",
        "The folder of the logs, and of what runs now.",
    )
    workers: int = _setting(
        kinds.WORKERS,
        2,
        "How many workers `fairlead up` runs and keeps running.",
    )
    worker_restart_backoff_ms: int = _setting(
        kinds.MILLISECONDS,
        1_000,
        "The pause before a worker that died is started again.",
    )
    worker_restart_backoff_max_ms: int = _setting(
        kinds.MILLISECONDS,
        30_000,
        "What that pause doubles up to while the worker goes on dying.",
    )
    process_answer_timeout_ms: int = _setting(
        kinds.MILLISECONDS,
        30_000,
        "How long the processes that lead a node (actor system, supervisor, group)"
        " may be silent before they are killed and started anew.",
    )
    actor_port: int = _setting(
        kinds.PORT,
        0,
        "The port, on loopback, of the actor system. 0: a free one.",
    )
    engine: str = _setting(
        kinds.ENGINE_KIND,
        "spark",
        "What runs tasks: Spark, or nothing at all (for trials).",
    )
    spark_master: str = _setting(
        kinds.SPARK_MASTER,
        "",
        "The cores of each worker's Spark. Empty: an equal share of all.",
    )
    spark_heap: str = _setting(
        kinds.HEAP,
        "1g",
        "The heap of each worker's Java virtual machine.",
    )
    spark_conf: Mapping[str, str] = _handed_on(
        "a setting of Spark that is not fairlead's own to choose",
        "spark.conf.NAME is passed on to Spark as NAME.",
    )
    paths_allow: str = _setting(
        kinds.FOLDERS,
        "",
        "The folders that sources and sinks may lie in, links followed. Empty: any"
        " but the node's own.",
    )
    sql_allow: str = _setting(
        kinds.SQL_NAMES,
        "",
        "What SQL of transforms may use beside its input: functions of clock,"
        " chance, node or Java, formats and tables by name; script for TRANSFORM USING.",
    )
    log_level: str = _setting(
        kinds.LOG_LEVEL,
        "INFO",
        "What is worth a line in the logs.",
    )
    connect_protocol: str = _setting(
        kinds.CONNECT_PROTOCOL,
        "sessioned",
        "Accepted for Connect's sake; group.protocol decides.",
        in_connect="connect.protocol",
    )
    group_protocol: str = _setting(
        kinds.GROUP_PROTOCOL,
        "connect",
        "How workers and group speak: connect is KIP-848's way.",
        in_connect="group.protocol",
    )
    offset_flush_interval_ms: int = _setting(
        kinds.MILLISECONDS,
        60_000,
        "Accepted for Connect's sake; each batch commits its own offsets.",
        in_connect="offset.flush.interval.ms",
    )
    offset_flush_timeout_ms: int = _setting(
        kinds.MILLISECONDS,
        5_000,
        "Accepted for Connect's sake; each batch commits its own offsets.",
        in_connect="offset.flush.timeout.ms",
    )

    def __post_init__(self) -> None:
        if found := [*_contradictions(self)]:
            raise Contradictory(found)

    @property
    def data_path(self) -> Path:
        """The data folder as an absolute path."""
        return Path(self.data_dir).expanduser().absolute()

    @property
    def group_folder(self) -> Path:
        """Where the logs of the group lie: `control` and `offsets`."""
        return self.data_path / "groups" / quote(self.group_id, safe="")

    @property
    def listener(self) -> Endpoint:
        """Where the REST interface is to listen."""
        return parse_listener(self.listeners)

    def allowed_hosts(self) -> tuple[str, ...]:
        """Return the names that lead to the REST interface, beside those of its listener."""
        told = self.rest_advertised_host_name
        return (*([bracketed(told)] if told else []), *split_list(self.rest_allowed_hosts))

    def reach(self) -> Reach:
        """Return what connectors may reach on this node."""
        names = frozenset(name.lower() for name in split_list(self.sql_allow))
        return Reach(str(self.data_path), split_list(self.paths_allow), names)

    def place(self, port: int | None = None) -> str:
        """Return `host:port` as others are told; `port` is the one really listened on."""
        listener = self.listener
        host = self.rest_advertised_host_name or listener.host
        return f"{bracketed(host)}:{self.rest_advertised_port or port or listener.port}"

    def cores(self) -> int:
        """Return the cores of each worker's engine."""
        available = len(os.sched_getaffinity(0))
        if self.spark_master:
            return cores_of(self.spark_master, available)
        return max(1, available // max(1, self.workers))

    def assignor_names(self) -> tuple[str, ...]:
        """Return the assignors of the workers, in the order of preference."""
        return tuple(name.strip() for name in self.group_local_assignors.split(","))

    def assignor_settings(self) -> Mapping[str, str]:
        """Return what assignors are handed: settings `assignor.*`, without that prefix."""
        apart = {"assignor_conf", "assignor_memory_max"}
        own = {
            key.removeprefix(ASSIGNOR): str(getattr(self, name))
            for key, name in KEYS.items()
            if key.startswith(ASSIGNOR) and name not in apart
        }
        return {**self.assignor_conf, **own}

    def assignor_memory(self) -> int:
        """Return what the assignor process may take, in bytes."""
        return bytes_of(self.assignor_memory_max)

    def settings(self) -> GroupSettings:
        """Return what a group's coordinator goes by."""
        return GroupSettings(
            session_timeout_ms=self.session_timeout_ms,
            heartbeat_interval_ms=self.heartbeat_interval_ms,
            max_delay_ms=self.scheduled_rebalance_max_delay_ms,
            max_size=self.group_max_size,
            assignment_interval_ms=self.assignment_interval_ms,
            requests_per_second=self.member_request_rate,
            fence_margin_ms=self.fence_margin_ms,
        )

    def abilities(self) -> Abilities:
        """Return what this node's workers can take."""
        return Abilities(self.worker_capacity, frozenset(split_list(self.worker_tags)))

    def timing(self) -> Timing:
        """Return what a member goes by."""
        return Timing(
            heartbeat_interval_ms=self.heartbeat_interval_ms,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            fence_margin_ms=self.fence_margin_ms,
        )


KEYS: Final[Mapping[str, str]] = {each.name.replace("_", "."): each.name for each in fields(Config)}
"""The fields of `Config` by the names of their settings."""

SETTINGS: Final[Mapping[str, NodeSetting]] = {
    each.name.replace("_", "."): replace(
        each.metadata[NodeSetting], name=each.name.replace("_", ".")
    )
    for each in fields(Config)
}
"""All settings by name."""


def _contradictions(config: Config) -> Iterator[Contradiction]:
    session = config.session_timeout_ms
    flaw = flaw_in_session(session, config.heartbeat_interval_ms, config.fence_margin_ms)
    if flaw:
        yield Contradiction(
            ("session.timeout.ms", "heartbeat.interval.ms", "fence.margin.ms"),
            flaw,
        )
    if config.rebalance_timeout_ms < session:
        yield Contradiction(
            ("rebalance.timeout.ms", "session.timeout.ms"),
            f"rebalance.timeout.ms = {config.rebalance_timeout_ms} is too short: a worker that is"
            " asked to give work up may be noticed as lost only after its session, so it must be"
            f" at least session.timeout.ms = {session}",
        )
    if config.group_remote_assignor and config.abilities() != ORDINARY:
        yield Contradiction(
            ("group.remote.assignor", "worker.tags", "worker.capacity"),
            f"group.remote.assignor = {config.group_remote_assignor} is run by the group itself,"
            " and workers that leave the computing to it say nothing of tags or of a capacity:"
            " leave these out, or have the workers compute",
        )
    if config.actor_port and config.actor_port == config.listener.port:
        yield Contradiction(
            ("listeners", "actor.port"),
            f"listeners and actor.port name the same port, {config.actor_port}: the REST interface"
            " and the actors need one each",
        )
    if config.process_answer_timeout_ms < SHORTEST_ANSWER_MS:
        yield Contradiction(
            ("process.answer.timeout.ms",),
            f"process.answer.timeout.ms = {config.process_answer_timeout_ms} is too short: a busy"
            " machine would have all processes killed, so it must be at least"
            f" {SHORTEST_ANSWER_MS}",
        )
    if config.worker_restart_backoff_max_ms < config.worker_restart_backoff_ms:
        yield Contradiction(
            ("worker.restart.backoff.max.ms", "worker.restart.backoff.ms"),
            f"worker.restart.backoff.max.ms = {config.worker_restart_backoff_max_ms} must be at"
            f" least worker.restart.backoff.ms = {config.worker_restart_backoff_ms}",
        )
