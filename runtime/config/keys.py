"""All settings of a node: the domain, the default and the documentation of each.

Settings with the meaning of a Kafka Connect setting have its name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Final

from ...actors.assignors.built_in.incremental import MOVES_INTERVAL_MS, MOVES_PER_ROUND
from ...actors.group.state.settings import DEFAULT_ASSIGNOR
from . import kinds
from .kafka_keys import KafkaSettings
from .setting import SAME, NodeSetting
from .setting import handed_on as _handed_on
from .setting import setting as _setting

SPARK_CONF: Final = "spark.conf"
ASSIGNOR_CONF: Final = "assignor.conf"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings(KafkaSettings):
    """All settings of a node, each of them valid; times in milliseconds."""

    group_id: str = _setting(kinds.GROUP_ID, "connect", "The group that the workers join.", SAME)
    listeners: str = _setting(
        kinds.LISTENER_URL,
        "http://127.0.0.1:8083",
        "Where the REST interface listens; loopback only. Port 0: a free one.",
        SAME,
    )
    rest_advertised_host_name: str = _setting(
        kinds.HOST,
        "",
        "The host that others are told to reach this node at. Empty: listeners'.",
        SAME,
    )
    rest_advertised_port: int = _setting(
        kinds.PORT, 0, "The port that others are told to reach this node at. 0: listeners'.", SAME
    )
    rest_allowed_hosts: str = _setting(
        kinds.HOSTS,
        "",
        "Further names, with commas, that requests may give this node's REST interface and"
        " their pages may be from: those of a proxy in front of it.",
    )
    session_timeout_ms: int = _setting(
        kinds.MILLISECONDS,
        10_000,
        "A worker that is silent for so long has lost its work to others.",
        SAME,
    )
    heartbeat_interval_ms: int = _setting(
        kinds.MILLISECONDS, 3_000, "How often a worker reports when there is nothing to say.", SAME
    )
    rebalance_timeout_ms: int = _setting(
        kinds.MILLISECONDS,
        60_000,
        "How long a worker may take to give work up, or to compute a target.",
        SAME,
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
        SAME,
    )
    task_shutdown_graceful_timeout_ms: int = _setting(
        kinds.MILLISECONDS_OR_NONE,
        5_000,
        "How long tasks may take to stop before they are cancelled.",
        SAME,
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
        DEFAULT_ASSIGNOR,
        "Which assignors the workers can compute with, the preferred ones first: built-in ones"
        " and those of installed distributions.",
    )
    assignor_memory_max: str = _setting(
        kinds.MEMORY,
        "1g",
        "What the assignor process of this node may take. Beyond it, a computation fails.",
    )
    assignor_moves_per_round: int = _setting(
        kinds.MOVE_COUNT,
        MOVES_PER_ROUND,
        "How much of what runs the assignor incremental moves in one interval, where it could"
        " as well stay.",
    )
    assignor_moves_interval_ms: int = _setting(
        kinds.MOVES_INTERVAL,
        MOVES_INTERVAL_MS,
        "How long the assignor incremental waits between such rounds of moves.",
    )
    assignor_conf: Mapping[str, str] = _handed_on(
        "a setting of an assignor", "assignor.conf.NAME is handed to assignors as NAME."
    )
    group_instance_id: str = _setting(
        kinds.INSTANCE_ID,
        "",
        "Makes this node's workers static: each keeps its seat and its work while the node"
        " restarts. One name per node.",
    )
    client_rack: str = _setting(
        kinds.ZONE, "", "The zone that this node's workers are in; work may ask for a zone.", SAME
    )
    worker_tags: str = _setting(
        kinds.TAGS, "", "The tags of this node's workers, with commas; work may ask for tags."
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
    group_initial_rebalance_delay_ms: int = _setting(
        kinds.MILLISECONDS_OR_NONE,
        3_000,
        "How long an empty group of the classic protocol waits for more members before it"
        " assigns. 0: not at all.",
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
        kinds.MIGRATION_POLICY,
        "bidirectional",
        "Whether groups with members go over to the connect protocol (upgrade), and back.",
        in_connect="group.consumer.migration.policy",
    )
    member_request_rate: int = _setting(
        kinds.RATE,
        0,
        "How many heartbeats a worker may send in a second before it is told to wait. 0: any"
        " number.",
    )
    data_dir: str = _setting(
        kinds.FOLDER, "./fairlead-data", "The folder of the logs, and of what runs now."
    )
    workers: int = _setting(
        kinds.WORKERS, 2, "How many workers `fairlead up` runs and keeps running."
    )
    worker_restart_backoff_ms: int = _setting(
        kinds.MILLISECONDS, 1_000, "The pause before a worker that died is started again."
    )
    worker_restart_backoff_max_ms: int = _setting(
        kinds.MILLISECONDS, 30_000, "What that pause doubles up to while the worker goes on dying."
    )
    process_answer_timeout_ms: int = _setting(
        kinds.ANSWER_MILLISECONDS,
        30_000,
        "How long the processes that lead a node (actor system, supervisor, group) may be"
        " silent before they are killed and started anew.",
    )
    actor_port: int = _setting(
        kinds.PORT, 0, "The port, on loopback, of the actor system. 0: a free one."
    )
    engine: str = _setting(
        kinds.ENGINE_KIND, "spark", "What runs tasks: Spark, or nothing at all (for trials)."
    )
    engine_kind: str = _setting(
        kinds.JVM_KIND,
        "auto",
        "Where Spark's Java virtual machine is: one embedded in each worker, or one shared by all"
        " workers of the node, which takes less memory; its end interrupts the tasks of all. auto:"
        " shared by two workers or more.",
    )
    engine_concurrent_batches: int = _setting(
        kinds.BATCHES,
        0,
        "How many batches a worker runs at once; others wait, those first that waited longest by"
        " their placement.weight. 0: twice its cores, or its share of the node's.",
    )
    spark_master: str = _setting(
        kinds.SPARK_MASTER,
        "",
        "The cores of each worker's Spark, or of the shared one (empty: an equal share of all, or"
        " all), the cluster whose executors run the jobs, or the Spark Connect server that does.",
    )
    spark_heap: str = _setting(
        kinds.HEAP, "1g", "The heap of each Java virtual machine that Spark runs in."
    )
    spark_conf: Mapping[str, str] = _handed_on(
        "a setting of Spark that is not fairlead's own to choose",
        "spark.conf.NAME is passed on to Spark as NAME.",
    )
    paths_allow: str = _setting(
        kinds.FOLDERS,
        "",
        "The folders that sources and sinks may lie in, links followed. Empty: any but the"
        " node's own.",
    )
    jdbc_allow: str = _setting(
        kinds.JDBC_URLS,
        "",
        "The databases that connectors of jdbc may reach: the beginnings of their URLs, behind"
        " which only a database's name may follow. Empty: none.",
    )
    sql_allow: str = _setting(
        kinds.SQL_NAMES,
        "",
        "What SQL of transforms may use beside its input: functions of clock, chance, node or"
        " Java, formats and tables by name; script for TRANSFORM USING.",
    )
    log_level: str = _setting(kinds.LOG_LEVEL, "INFO", "What is worth a line in the logs.")
    connect_protocol: str = _setting(
        kinds.CONNECT_PROTOCOL,
        "sessioned",
        "What classic workers offer: eager stops all for a rebalance, the others what moves.",
        SAME,
    )
    group_protocol: str = _setting(
        kinds.GROUP_PROTOCOL,
        "connect",
        "How workers and group speak: connect is KIP-848's way; by classic, one of them assigns.",
        SAME,
    )
    offset_flush_interval_ms: int = _setting(
        kinds.MILLISECONDS,
        60_000,
        "Accepted for Connect's sake; each batch commits its own offsets.",
        SAME,
    )
    offset_flush_timeout_ms: int = _setting(
        kinds.MILLISECONDS,
        5_000,
        "Accepted for Connect's sake; each batch commits its own offsets.",
        SAME,
    )


def _setting_of(name: str, made: NodeSetting) -> NodeSetting:
    return replace(made, name=name, in_connect=name if made.in_connect == SAME else made.in_connect)


KEYS: Final[Mapping[str, str]] = {
    each.name.replace("_", "."): each.name for each in fields(NodeSettings)
}
"""The name of the field of each setting, by the setting's name."""

SETTINGS: Final[Mapping[str, NodeSetting]] = {
    name: _setting_of(name, each.metadata[NodeSetting])
    for each in fields(NodeSettings)
    for name in [each.name.replace("_", ".")]
}
"""All settings by name."""
