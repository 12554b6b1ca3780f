"""All settings of a node: the domain, the default and the documentation of each.

Settings with the meaning of a Kafka Connect setting have its name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from inspect import get_annotations
from typing import Final

from ...actors.transport.log_format import LogOutput
from .node_keys import kinds
from .node_keys.plugin import PluginKeys
from .node_keys.setting import SAME, NodeSetting
from .node_keys.setting import handed_on as _handed_on
from .node_keys.setting import setting as _setting

SPARK_CONF: Final = "spark.conf"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings(PluginKeys):
    """All settings of a node, each of them valid; times in milliseconds."""

    group_id: str = _setting(kinds.GROUP_ID, "connect", "The group that the workers join.", SAME)
    task_shutdown_graceful_timeout_ms: int = _setting(
        kinds.MILLISECONDS_OR_NONE,
        5_000,
        "How long tasks may take to stop before they are cancelled.",
        SAME,
    )
    group_instance_id: str = _setting(
        kinds.INSTANCE_ID,
        "",
        "Makes this node's workers static members: each keeps its seat and its work while the"
        " node restarts. Each node needs its own name.",
    )
    client_rack: str = _setting(
        kinds.ZONE, "", "The zone of this node's workers; a connector may ask for a zone.", SAME
    )
    worker_tags: str = _setting(
        kinds.TAGS,
        "",
        "The tags of this node's workers, with commas; a connector may ask for tags.",
    )
    worker_memory_max: str = _setting(
        kinds.WORKER_MEMORY,
        "",
        "The most memory of each worker, without its JVM. Beyond it a plugin's call gets a"
        " MemoryError. Empty: no limit.",
    )
    worker_capacity: int = _setting(
        kinds.CAPACITY,
        1,
        "How much work this node's workers take, compared with others: with 2 twice as much as"
        " with 1.",
    )
    data_dir: str = _setting(
        kinds.FOLDER,
        "./fairlead-data",
        "The folder of the event logs, and of the running node's files.",
    )
    cluster_key_file: str = _setting(
        kinds.FILE,
        "",
        "A file with the cluster's key, 32 random bytes for their owner only, the same on all its"
        " nodes; it is copied into data.dir. Empty: the first start makes a key there.",
    )
    workers: int = _setting(
        kinds.WORKERS, 2, "How many workers `fairlead up` runs and keeps running."
    )
    worker_restart_backoff_ms: int = _setting(
        kinds.MILLISECONDS, 1_000, "The pause before a worker that died is started again."
    )
    worker_restart_backoff_max_ms: int = _setting(
        kinds.MILLISECONDS,
        30_000,
        "The longest pause: it doubles up to this while the worker keeps dying.",
    )
    process_answer_timeout_ms: int = _setting(
        kinds.ANSWER_MILLISECONDS,
        30_000,
        "How long the processes that lead a node (actor system, supervisor, group) may be silent"
        " before they are killed and started again.",
    )
    actor_port: int = _setting(
        kinds.PORT, 0, "The port, on loopback, of the actor system. 0: a free one."
    )
    engine: str = _setting(
        kinds.ENGINE_KIND,
        "spark",
        "What runs tasks: spark, or noop, which runs nothing (for trials).",
    )
    engine_kind: str = _setting(
        kinds.JVM_KIND,
        "auto",
        "Where Spark's JVM is: one embedded in each worker, or one shared by all workers of the"
        " node. The shared one takes less memory; its end interrupts the tasks of all workers."
        " auto: shared with two workers or more.",
    )
    engine_concurrent_batches: int = _setting(
        kinds.BATCHES,
        0,
        "How many batches a JVM runs at once. Workers that share it have equal parts, of at least"
        " one. The longest wait in a worker, weighted by placement.weight, is next. 0: twice the"
        " JVM's cores.",
    )
    engine_lane: str = _setting(
        kinds.LANE,
        "auto",
        "What reads and writes rows that nothing transforms: Arrow, in tasks of Spark, where that"
        " is proved to be the same (auto), or always Spark (spark). A connector may choose spark.",
    )
    spark_master: str = _setting(
        kinds.SPARK_MASTER,
        "",
        "Where Spark jobs run: local cores of each worker's Spark or of the shared one (empty: an"
        " equal share of all, or all), a cluster's executors, or a Spark Connect server.",
    )
    spark_heap: str = _setting(kinds.HEAP, "1g", "The heap of each JVM that Spark runs in.")
    spark_conf: Mapping[str, str] = _handed_on(
        "a setting of Spark that is not fairlead's own to choose",
        "spark.conf.NAME is passed on to Spark as NAME.",
    )
    paths_allow: str = _setting(
        kinds.FOLDERS,
        "",
        "The folders that sources and sinks may use; links are followed. Empty: any except the"
        " node's own.",
    )
    jdbc_allow: str = _setting(
        kinds.JDBC_URLS,
        "",
        "The databases that JDBC connectors may use: the beginnings of their URLs, after which"
        " only a database's name may follow. Empty: none.",
    )
    sql_allow: str = _setting(
        kinds.SQL_NAMES,
        "",
        "What SQL of transforms may use in addition to its input: functions of the clock, random"
        " values, the node or Java; formats and tables by name; script for TRANSFORM USING.",
    )
    connectors_dir: str = _setting(
        kinds.FOLDER_OR_NONE,
        "",
        "A folder of connector files that the connectors are kept in step with. Empty: none.",
    )
    connectors_dir_mode: str = _setting(
        kinds.FOLDER_MODE,
        "plan",
        "Whether what differs from connectors.dir is only told (plan), or changed (apply).",
    )
    connectors_dir_prune: str = _setting(
        kinds.TRUE_OR_FALSE,
        "false",
        "Whether connectors that came from connectors.dir are deleted once their file is gone.",
    )
    log_level: str = _setting(kinds.LOG_LEVEL, "INFO", "The lowest level of messages in the logs.")
    log_format: str = _setting(
        kinds.LOG_FORMAT, "text", "How log lines are written: as text, or each as a JSON object."
    )
    log_to: str = _setting(
        kinds.LOG_TO,
        "file",
        "Where all processes of the node log: file (in logs/ of data.dir), or stdout of"
        " `fairlead up`, for containers.",
    )
    log_file_max_bytes: int = _setting(
        kinds.LOG_BYTES, 16 << 20, "The size of a log file at which the next one begins."
    )
    log_file_count: int = _setting(
        kinds.LOG_FILES, 2, "How many files each log of the node has, the older ones included."
    )
    metrics_task_series: str = _setting(
        kinds.TRUE_OR_FALSE,
        "false",
        "Whether /metrics has series of each task, beside those of its connector: true or false.",
    )
    traces_endpoint: str = _setting(
        kinds.TRACE_ENDPOINT,
        "",
        "The URL of an OpenTelemetry collector that gets traces of batches and epochs, by OTLP over"
        " HTTP; without a path, /v1/traces is added. Empty: none are sent.",
    )
    traces_headers: str = _setting(
        kinds.TRACE_HEADERS,
        "",
        "Headers of requests to traces.endpoint, NAME=VALUE with commas; a value may be"
        " ${file:PATH:KEY}, ${dir:PATH:FILE} or ${env:NAME}.",
    )
    traces_service_name: str = _setting(
        kinds.SERVICE_NAME, "fairlead", "The name of the service that the traces are of."
    )
    offset_flush_interval_ms: int = _setting(
        kinds.MILLISECONDS,
        60_000,
        "How often connectors of Kafka Connect's own classes commit their offsets; a sink of"
        " theirs is asked then which rows are safe. All others commit with each batch.",
        SAME,
    )
    offset_flush_timeout_ms: int = _setting(
        kinds.MILLISECONDS,
        5_000,
        "Accepted for Connect's sake; each batch commits its own offsets.",
        SAME,
    )

    def log_output(self) -> LogOutput:
        """Return the logging of the node's processes."""
        files = self.log_file_max_bytes, self.log_file_count
        return LogOutput(self.log_level, self.log_format, self.log_to, *files)


def _setting_of(name: str, made: NodeSetting) -> NodeSetting:
    return replace(made, name=name, in_connect=name if made.in_connect == SAME else made.in_connect)


KEYS: Final[Mapping[str, str]] = {
    name.replace("_", "."): name
    for settings in NodeSettings.__mro__
    for name in get_annotations(settings)
}
"""The field of each setting by the setting's name: the node's own, its group's, the listener's."""

_FIELDS: Final = {each.name: each for each in fields(NodeSettings)}

SETTINGS: Final[Mapping[str, NodeSetting]] = {
    key: _setting_of(key, _FIELDS[name].metadata[NodeSetting]) for key, name in KEYS.items()
}
"""All settings by name."""
