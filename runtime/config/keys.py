"""Every setting of a node: its default, what is allowed, and what it means.

Kafka Connect's names are kept where the meaning is Connect's. A `Config` that exists is
sound: values that contradict one another are refused with the smallest one that would do.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final, NamedTuple, Self
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from ...actors.assignors.built_in.incremental import MOVES_INTERVAL_MS, MOVES_PER_ROUND
from ...actors.group.state.settings import GroupSettings
from ...actors.worker.instructions import REQUEST_GRACE_MS, Timing
from ...events.placement.abilities import ORDINARY, Abilities
from ...events.placement.config import listed
from ..connectors.reach import Reach
from .kinds import (
    AssignorNames,
    Capacity,
    ConnectProtocol,
    Count,
    Domain,
    Endpoint,
    EngineKind,
    Folder,
    Folders,
    GroupId,
    GroupProtocol,
    Heap,
    Host,
    Hosts,
    InConnect,
    InstanceId,
    ListenerUrl,
    LogLevel,
    Memory,
    Milliseconds,
    MillisecondsOrNone,
    MoveCount,
    MovesInterval,
    Port,
    Rate,
    RemoteAssignor,
    SparkMaster,
    SqlNames,
    Tags,
    Workers,
    Zone,
    bracketed,
    bytes_of,
    cores_of,
    parse_listener,
)

SHORTEST_ANSWER_MS: Final = 1_000
SPARK_CONF: Final = "spark.conf"
ASSIGNOR_CONF: Final = "assignor.conf"
ASSIGNOR: Final = "assignor."
"""Settings that begin so are the assignors': all but their memory is handed to each."""


class Contradiction(NamedTuple):
    """Two or more settings that cannot stand together, and what would do."""

    keys: tuple[str, ...]
    text: str


class Config(BaseModel):
    """All settings of a node; times in milliseconds."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=lambda name: name.replace("_", ".")
    )

    group_id: Annotated[
        GroupId, InConnect("group.id"), Field(description="The group that the workers join.")
    ] = "connect"
    listeners: Annotated[
        ListenerUrl,
        InConnect("listeners"),
        Field(description="Where the REST interface listens; loopback only. Port 0: a free one."),
    ] = "http://127.0.0.1:8083"
    rest_advertised_host_name: Annotated[
        Host,
        InConnect("rest.advertised.host.name"),
        Field(
            description="The host that others are told to reach this node at. Empty: listeners'."
        ),
    ] = ""
    rest_advertised_port: Annotated[
        Port,
        InConnect("rest.advertised.port"),
        Field(description="The port that others are told to reach this node at. 0: listeners'."),
    ] = 0
    rest_allowed_hosts: Annotated[
        Hosts,
        Field(
            description="Further names, with commas, that requests may give this node's REST"
            " interface and their pages may be from: those of a proxy in front of it."
        ),
    ] = ""
    session_timeout_ms: Annotated[
        Milliseconds,
        InConnect("session.timeout.ms"),
        Field(description="A worker that is silent for so long has lost its work to others."),
    ] = 10_000
    heartbeat_interval_ms: Annotated[
        Milliseconds,
        InConnect("heartbeat.interval.ms"),
        Field(description="How often a worker reports when there is nothing to say."),
    ] = 3_000
    rebalance_timeout_ms: Annotated[
        Milliseconds,
        InConnect("rebalance.timeout.ms"),
        Field(description="How long a worker may take to give work up, or to compute a target."),
    ] = 60_000
    fence_margin_ms: Annotated[
        Milliseconds,
        Field(description="So long before its session can end, a worker cancels all its work."),
    ] = 1_000
    scheduled_rebalance_max_delay_ms: Annotated[
        MillisecondsOrNone,
        InConnect("scheduled.rebalance.max.delay.ms"),
        Field(
            description="How long the work of a lost worker waits for its return. 0: not at all."
        ),
    ] = 300_000
    task_shutdown_graceful_timeout_ms: Annotated[
        MillisecondsOrNone,
        InConnect("task.shutdown.graceful.timeout.ms"),
        Field(description="How long tasks may take to stop before they are cancelled."),
    ] = 5_000
    group_max_size: Annotated[
        Count,
        InConnect("group.consumer.max.size"),
        Field(description="How many members a group can have."),
    ] = (1 << 31) - 1
    group_remote_assignor: Annotated[
        RemoteAssignor,
        Field(description="Which assignor the group itself runs. Empty: its workers compute."),
    ] = ""
    group_local_assignors: Annotated[
        AssignorNames,
        Field(
            description="Which assignors the workers can compute with, the preferred ones first:"
            " built-in ones and those of installed distributions."
        ),
    ] = "balanced"
    assignor_memory_max: Annotated[
        Memory,
        Field(
            description="What the assignor process of this node may take. Beyond it, a"
            " computation fails."
        ),
    ] = "1g"
    assignor_moves_per_round: Annotated[
        MoveCount,
        Field(
            description="How much of what runs the assignor incremental moves in one interval,"
            " where it could as well stay."
        ),
    ] = MOVES_PER_ROUND
    assignor_moves_interval_ms: Annotated[
        MovesInterval,
        Field(description="How long the assignor incremental waits between such rounds of moves."),
    ] = MOVES_INTERVAL_MS
    assignor_conf: Annotated[
        Mapping[str, str],
        Domain("a setting of an assignor"),
        Field(description="assignor.conf.NAME is handed to assignors as NAME.", repr=False),
    ] = Field(default_factory=dict[str, str])
    group_instance_id: Annotated[
        InstanceId,
        Field(
            description="Makes this node's workers static: each keeps its seat and its work while "
            "the node restarts. One name per node."
        ),
    ] = ""
    client_rack: Annotated[
        Zone,
        InConnect("client.rack"),
        Field(description="The zone that this node's workers are in; work may ask for a zone."),
    ] = ""
    worker_tags: Annotated[
        Tags,
        Field(description="The tags of this node's workers, with commas; work may ask for tags."),
    ] = ""
    worker_capacity: Annotated[
        Capacity,
        Field(
            description="How much this node's workers take next to others: with 2 twice as much "
            "as with 1."
        ),
    ] = 1
    assignment_interval_ms: Annotated[
        MillisecondsOrNone,
        InConnect("group.consumer.assignment.interval.ms"),
        Field(description="The least time between two computations of a target. 0: none."),
    ] = 0
    member_request_rate: Annotated[
        Rate,
        Field(
            description="How many heartbeats a worker may send in a second before it is told to "
            "wait. 0: any number."
        ),
    ] = 0
    data_dir: Annotated[
        Folder, Field(description="The folder of the logs, and of what runs now.")
    ] = "./fairlead-data"
    workers: Annotated[
        Workers, Field(description="How many workers `fairlead up` runs and keeps running.")
    ] = 2
    worker_restart_backoff_ms: Annotated[
        Milliseconds, Field(description="The pause before a worker that died is started again.")
    ] = 1_000
    worker_restart_backoff_max_ms: Annotated[
        Milliseconds,
        Field(description="What that pause doubles up to while the worker goes on dying."),
    ] = 30_000
    process_answer_timeout_ms: Annotated[
        Milliseconds,
        Field(
            description="How long the processes that lead a node (actor system, supervisor, group)"
            " may be silent before they are killed and started anew."
        ),
    ] = 30_000
    actor_port: Annotated[
        Port, Field(description="The port, on loopback, of the actor system. 0: a free one.")
    ] = 0
    engine: Annotated[
        EngineKind, Field(description="What runs tasks: Spark, or nothing at all (for trials).")
    ] = "spark"
    spark_master: Annotated[
        SparkMaster,
        Field(description="The cores of each worker's Spark. Empty: an equal share of all."),
    ] = ""
    spark_heap: Annotated[
        Heap, Field(description="The heap of each worker's Java virtual machine.")
    ] = "1g"
    spark_conf: Annotated[
        Mapping[str, str],
        Domain("a setting of Spark that is not fairlead's own to choose"),
        Field(description="spark.conf.NAME is passed on to Spark as NAME.", repr=False),
    ] = Field(default_factory=dict[str, str])
    paths_allow: Annotated[
        Folders,
        Field(
            description="The folders that sources and sinks may lie in, links followed. Empty: any"
            " but the node's own."
        ),
    ] = ""
    sql_allow: Annotated[
        SqlNames,
        Field(
            description="What SQL of transforms may use beside its input: functions of clock,"
            " chance, node or Java, formats and tables by name; script for TRANSFORM USING."
        ),
    ] = ""
    log_level: Annotated[LogLevel, Field(description="What is worth a line in the logs.")] = "INFO"
    connect_protocol: Annotated[
        ConnectProtocol,
        InConnect("connect.protocol"),
        Field(description="Accepted for Connect's sake; group.protocol decides."),
    ] = "sessioned"
    group_protocol: Annotated[
        GroupProtocol,
        InConnect("group.protocol"),
        Field(description="How workers and group speak: connect is KIP-848's way."),
    ] = "connect"
    offset_flush_interval_ms: Annotated[
        Milliseconds,
        InConnect("offset.flush.interval.ms"),
        Field(description="Accepted for Connect's sake; each batch commits its own offsets."),
    ] = 60_000
    offset_flush_timeout_ms: Annotated[
        Milliseconds,
        InConnect("offset.flush.timeout.ms"),
        Field(description="Accepted for Connect's sake; each batch commits its own offsets."),
    ] = 5_000

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        found = list(_contradictions(self))
        if found:
            raise PydanticCustomError("contradiction", "contradiction", {"found": found})
        return self

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
        return (*([bracketed(told)] if told else []), *listed(self.rest_allowed_hosts))

    def reach(self) -> Reach:
        """Return what connectors may reach on this node."""
        names = frozenset(name.lower() for name in listed(self.sql_allow))
        return Reach(str(self.data_path), listed(self.paths_allow), names)

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
        return Abilities(self.worker_capacity, frozenset(listed(self.worker_tags)))

    def timing(self) -> Timing:
        """Return what a member goes by."""
        return Timing(
            heartbeat_interval_ms=self.heartbeat_interval_ms,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            fence_margin_ms=self.fence_margin_ms,
        )


KEYS: Final[Mapping[str, str]] = {
    str(field.alias): name for name, field in Config.model_fields.items()
}
"""The fields of `Config` by the names of their settings."""


def kind_of(key: str) -> Domain:
    """Return what values of a setting are."""
    metadata = Config.model_fields[KEYS[key]].metadata
    return next(each for each in metadata if isinstance(each, Domain))


def _contradictions(config: Config) -> Iterator[Contradiction]:
    beat, margin = config.heartbeat_interval_ms, config.fence_margin_ms
    session = config.session_timeout_ms
    smallest = margin + 2 * (beat + REQUEST_GRACE_MS)
    if session < smallest:
        yield Contradiction(
            ("session.timeout.ms", "heartbeat.interval.ms", "fence.margin.ms"),
            f"session.timeout.ms = {session} is too short: a worker has to be able to miss one"
            " heartbeat and still to stop in time, so it must be at least fence.margin.ms"
            f" + 2 * (heartbeat.interval.ms + {REQUEST_GRACE_MS}) = {smallest} with"
            f" heartbeat.interval.ms = {beat} and fence.margin.ms = {margin}",
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
