"""What a node runs: its workers, engines and assignors, and what sets them apart."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import quote

from ...actors.backoff import Backoff
from ...actors.group.state.settings import DEFAULT_ASSIGNOR, GroupSettings
from ...actors.worker.instructions import Timing
from ...events.placement import ORDINARY, Abilities
from ..pipeline.spi.context import NO_LIMITS, Reach

RESTART_BACKOFF_MS: Final = Backoff(1_000, 30_000)


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """How a worker runs tasks: `kind` is spark or noop, `heap` as Java spells it.

    `batches` is how many batches it runs at once. Where it is shared, cores and heap are those of
    the one JVM of all workers.
    """

    kind: str
    cores: int = 1
    heap: str = "1g"
    conf: Mapping[str, str] = field(default_factory=dict[str, str])
    grace_ms: int = 5_000
    batches: int = 2
    is_shared: bool = False
    master: str = ""
    """Of a cluster whose executors run the jobs; else threads of the JVM do."""


def assignor_log(data_dir: Path) -> Path:
    """Return where what assignors print is kept, and where one was when it was ended."""
    return data_dir / "logs" / "assignor.log"


@dataclass(frozen=True, slots=True)
class AssignorSpec:
    """What computes for the workers: names in the order of preference, and their settings.

    `conf` is handed to each assignor; `memory_bytes` is all that their process may take.
    """

    names: tuple[str, ...] = (DEFAULT_ASSIGNOR,)
    conf: Mapping[str, str] = field(default_factory=dict[str, str])
    memory_bytes: int = 1 << 30


@dataclass(frozen=True, slots=True)
class WorkerTraits:
    """What sets a worker apart: the zone that it is in, what it can take, and how it speaks."""

    zone: str | None = None
    abilities: Abilities = ORDINARY
    classic_mode: str = ""
    """What it speaks as a classic member, a value of `connect.protocol`; empty: it is a connect
    member."""


@dataclass(frozen=True, slots=True)
class KafkaSpec:
    """Where a node serves Kafka's clients, what is behind, and how many may come."""

    host: str
    port: int
    advertised_host: str
    brokers: tuple[tuple[str, int], ...]
    shards: int
    """How many processes their groups are spread over."""
    connections: int
    of_address: int
    """How many connections one address may have."""
    session_timeout_ms: int
    """How long a consumer by KIP-848 may be silent."""
    heartbeat_interval_ms: int
    offsets_retention_ms: int
    """How long committed offsets are kept that nobody uses any more."""
    offsets_check_interval_ms: int
    is_encrypted: bool = False
    keystore: str = ""
    truststore: str = ""

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> Self:
        """Return what came as JSON."""
        values: dict[str, Any] = dict(told)
        values["brokers"] = tuple((str(host), int(port)) for host, port in told["brokers"])
        return cls(**values)


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """All that a node runs; times in milliseconds, `place` is the host and port of its REST."""

    data_dir: Path
    group_id: str
    place: str
    workers: tuple[str, ...]
    settings: GroupSettings
    timing: Timing
    engine: EngineSpec
    backoff_ms: Backoff[int] = RESTART_BACKOFF_MS
    """How long a process that ended rests before it is started again."""
    server_assignor: str | None = None
    """Which assignor the group itself runs for these workers; None: they compute."""
    instance: str = ""
    """What makes this node's own workers static members, if anything."""
    traits: WorkerTraits = WorkerTraits()
    """What sets this node's workers apart, where nothing else is said of one."""
    assignors: AssignorSpec = field(default_factory=AssignorSpec)
    reach: Reach = NO_LIMITS
    """What connectors may reach on this node."""
    answer_timeout_ms: int = 30_000
    """How long the supervisor or the group may be silent before its process is replaced."""
    node_id: str = ""
    """What tells this node's former workers from those of others."""
    log_level: str = "INFO"
    """What is worth a line in the logs of its processes, as `logging` names it."""
    kafka: KafkaSpec | None = None
    """What is served to Kafka's clients, if anything."""

    @property
    def shards(self) -> int:
        """How many processes the groups of Kafka's clients are spread over; 0: there are none."""
        return self.kafka.shards if self.kafka else 0

    @property
    def client_settings(self) -> GroupSettings:
        """What the groups of Kafka's clients go by."""
        if self.kafka is None:
            return self.settings
        return replace(
            self.settings,
            session_timeout_ms=self.kafka.session_timeout_ms,
            heartbeat_interval_ms=self.kafka.heartbeat_interval_ms,
            offsets_retention_ms=self.kafka.offsets_retention_ms,
            offsets_check_interval_ms=self.kafka.offsets_check_interval_ms,
        )

    def group_folder(self, group_id: str) -> Path:
        """Return where the logs of a group lie."""
        return self.data_dir / "groups" / quote(group_id, safe="")

    def shard_folder(self, number: int) -> Path:
        """Return where the logs of a shard of the groups of Kafka's clients lie."""
        return self.data_dir / "shards" / str(number)

    @property
    def assignor_log(self) -> Path:
        """Return where that of this node is."""
        return assignor_log(self.data_dir)

    def url(self, worker: str) -> str:
        """Return a worker's identity in its group: it outlives the worker's processes."""
        return f"{self.place}/{worker}"

    def instance_id(self, worker: str) -> str | None:
        """Return a worker's static identity; workers that come and go by hand have none."""
        return f"{self.instance}-{worker}" if self.instance and worker in self.workers else None
