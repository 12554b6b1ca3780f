"""The specification of a node: its group, workers, engine, assignors and Kafka listener."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import quote

from ...actors.group.state.settings import (
    DEFAULT_ASSIGNOR,
    DEFAULT_LIMITS,
    GroupSettings,
    ShardLimits,
)
from ...actors.timing import Backoff
from ...actors.transport.log_format import LogOutput
from ...actors.worker.instructions import Timing
from ...events.entries.retention import UNLIMITED, Retention
from ...events.placement import ORDINARY, Abilities
from ...events.stores.opening import StoreSpec
from ..pipeline.plugins.options import PluginSpec
from ..pipeline.spi.context import NO_LIMITS, AccessLimits
from .kafka_security import NO_SECURITY, KafkaSecurity

RESTART_BACKOFF_MS: Final = Backoff(1_000, 30_000)
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9._-]")
"""What the name of a node may have and that of a worker may not."""
_LONGEST_NODE: Final = 48
"""How much of a node's name its workers' names have."""


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """How a worker runs tasks: `kind` is spark or noop, `heap` has Java's syntax (`1g`).

    `batches` is how many batches a worker runs at once. If the engine is shared, cores and heap
    are those of the one JVM of all workers.
    """

    kind: str
    cores: int = 1
    heap: str = "1g"
    conf: Mapping[str, str] = field(default_factory=dict[str, str])
    grace_ms: int = 5_000
    batches: int = 2
    is_shared: bool = False
    master: str = ""
    """The URL of a Spark cluster whose executors run the jobs; empty: threads of the JVM do."""
    memory_bytes: int = 0
    """The most memory of each worker, without a JVM; 0: there is no limit."""
    by_arrow: bool = True
    """Whether Arrow may read and write rows; see `Context.by_arrow`."""


def assignor_log(data_dir: Path) -> Path:
    """Return the file with the output of assignors, and their stack when they are aborted."""
    return data_dir / "logs" / "assignor.log"


@dataclass(frozen=True, slots=True)
class AssignorSpec:
    """The workers' assignors: names in order of preference, and their settings.

    `conf` is passed to each assignor; `memory_bytes` is the memory limit of their process.
    """

    names: tuple[str, ...] = (DEFAULT_ASSIGNOR,)
    conf: Mapping[str, str] = field(default_factory=dict[str, str])
    memory_bytes: int = 1 << 30
    serves: bool = False
    """Whether they are server assignors, which groups run."""


@dataclass(frozen=True, slots=True)
class WorkerTraits:
    """The properties of one worker: its zone, its capacity and tags, and its protocol."""

    zone: str | None = None
    abilities: Abilities = ORDINARY
    classic_mode: str = ""
    """Its `connect.protocol` as a member of the classic protocol; empty: a KIP-848 member."""


@dataclass(frozen=True, slots=True)
class KafkaSpec:
    """The Kafka listener of a node: its address, the brokers behind it, and its limits."""

    host: str
    port: int
    advertised_host: str
    brokers: tuple[tuple[str, int], ...]
    shards: int
    """How many processes the groups of Kafka clients are spread over."""
    connections: int
    of_address: int
    """How many connections one address may have."""
    session_timeout_ms: int
    """The session timeout of KIP-848 consumers."""
    heartbeat_interval_ms: int
    offsets_retention_ms: int
    """How long committed offsets that no member uses are kept."""
    offsets_check_interval_ms: int
    assignment_interval_ms: int = 1_000
    """The least time between two targets of a group."""
    limits: ShardLimits = DEFAULT_LIMITS
    """What clients may make each process of their groups keep."""
    security: KafkaSecurity = NO_SECURITY
    protocols: tuple[str, ...] = ("connect", "classic", "consumer")
    """By which protocols clients may join groups."""

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> Self:
        """Return the spec of a decoded JSON object."""
        values: dict[str, Any] = dict(content)
        values["protocols"] = tuple(map(str, content["protocols"]))
        values["brokers"] = tuple((str(host), int(port)) for host, port in content["brokers"])
        values["limits"] = ShardLimits(**content["limits"])
        values["security"] = KafkaSecurity.read(content["security"])
        return cls(**values)


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """The specification of a whole node; `place` is host:port of its REST interface."""

    data_dir: Path
    group_id: str
    place: str
    workers: tuple[str, ...]
    settings: GroupSettings
    timing: Timing
    engine: EngineSpec
    backoff_ms: Backoff[int] = RESTART_BACKOFF_MS
    """The delay before a process that ended is restarted."""
    server_assignor: str | None = None
    """The assignor that the group itself runs for these workers; None: the workers compute."""
    instance: str = ""
    """The prefix of the workers' static member ids; empty: they are dynamic members."""
    traits: WorkerTraits = WorkerTraits()
    """The default properties of this node's workers."""
    assignors: AssignorSpec = field(default_factory=AssignorSpec)
    reach: AccessLimits = NO_LIMITS
    """Which paths and SQL functions connectors may use on this node."""
    answer_timeout_ms: int = 30_000
    """The liveness timeout of the supervisor and the groups: then the process is replaced."""
    node_id: str = ""
    """Which node this is: it distinguishes its former workers from those of other nodes."""
    retention: Retention = UNLIMITED
    """How much of their history the control logs keep."""
    log: LogOutput = field(default_factory=LogOutput)
    """What its processes log, and where to."""
    kafka: KafkaSpec | None = None
    """The listener for Kafka clients, None if it is off."""
    plugins: PluginSpec = field(default_factory=PluginSpec)
    """Which plugins of Kafka Connect there are."""
    store: StoreSpec | None = None
    """Where the commits of its logs count; None: in its data folder."""

    def name_worker(self, number: int) -> str:
        """Return the name of one of its workers that was given none.

        Where there may be other nodes it begins with this one's: a worker is shown by its name.
        """
        if self.store is None:
            return f"w{number}"
        return f"{_NO_NAME.sub('-', self.store.node)[:_LONGEST_NODE]}-w{number}"

    @property
    def store_id(self) -> str:
        """The store whose copies its logs are, as all nodes have it; empty: there is none."""
        return f"{self.store.kind}/{self.store.name}" if self.store else ""

    @property
    def shards(self) -> int:
        """How many processes the groups of Kafka clients are spread over; 0: no listener."""
        return self.kafka.shards if self.kafka else 0

    @property
    def client_settings(self) -> GroupSettings:
        """The settings of the groups of Kafka clients."""
        if self.kafka is None:
            return self.settings
        return replace(
            self.settings,
            session_timeout_ms=self.kafka.session_timeout_ms,
            heartbeat_interval_ms=self.kafka.heartbeat_interval_ms,
            offsets_retention_ms=self.kafka.offsets_retention_ms,
            offsets_check_interval_ms=self.kafka.offsets_check_interval_ms,
            assignment_interval_ms=self.kafka.assignment_interval_ms,
        )

    @property
    def client_limits(self) -> ShardLimits:
        """The limits of what each process of groups keeps for Kafka's clients."""
        return self.kafka.limits if self.kafka else DEFAULT_LIMITS

    def group_folder(self, group_id: str) -> Path:
        """Return the folder of a group's logs."""
        return self.data_dir / "groups" / quote(group_id, safe="")

    def shard_folder(self, number: int) -> Path:
        """Return the folder of the logs of one group shard."""
        return self.data_dir / "shards" / str(number)

    @property
    def assignor_log(self) -> Path:
        """Return the log file of this node's assignors."""
        return assignor_log(self.data_dir)

    def url(self, worker: str) -> str:
        """Return a worker's url in its group, which stays the same when its process is replaced."""
        return f"{self.place}/{worker}"

    def instance_id(self, worker: str) -> str | None:
        """Return a worker's static member id; None for workers added by a command."""
        return f"{self.instance}-{worker}" if self.instance and worker in self.workers else None
