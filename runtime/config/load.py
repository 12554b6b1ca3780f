"""Loads and validates the configuration of a node, and derives its values.

A `Config` is always valid: conflicting values are refused, with the minimum value that is allowed.

`load_with_sources` gathers texts (`sources.py`), parses each by its domain (`keys.py`), and makes a
`Config` of them, which looks for contradictions. All that is wrong is refused at once, each with
the source of its value.
"""

import os
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from ...actors.group.state.settings import GroupSettings, MigrationPolicy
from ...actors.settings import HIDDEN, SettingType, Value
from ...actors.transport.ports import LOOPBACK, bracketed
from ...actors.worker.instructions import Timing
from ...events.entries.retention import Retention
from ...events.placement import ORDINARY, Abilities, split_list
from ...events.stores.opening import LMDB, StoreSpec
from ..pipeline.engines.settings import (
    SettingRefused,
    is_cluster,
    is_connect,
    refuse_unsafe,
    without_parameters,
)
from ..pipeline.plugins.catalogue.settings import PluginSettings
from ..pipeline.plugins.options import HostOptions, PluginSpec
from ..pipeline.spi.context import AccessLimits
from ..security.rest_listeners import REST_PORT, RestListener, parse_listeners
from .connect_worker import SHARED, SSL, complete, flaw_in
from .contradictions import (
    Contradictory,
    cluster_needs,
    connect_needs,
    flaws_in_kafka,
    flaws_in_times,
    flaws_in_traces,
)
from .keys import KEYS, SETTINGS, SPARK_CONF, NodeSettings
from .node_keys.access import flaws_in_access
from .node_keys.group import ASSIGNOR_CONF
from .node_keys.kinds import bytes_of, cores_of
from .node_keys.rest import AS_LISTENERS, flaws_in_certificates, flaws_in_rest
from .node_keys.setting import Contradiction
from .node_keys.store import DEFAULTS as WITH_STORE
from .node_keys.store import flaws_in_store, flaws_in_takeovers
from .references.trace_target import TRACES
from .sources import PASSED_ON, SPARK, ConfigError, GivenValue, gather

KAFKA_USERS: Final = "kafka-users.json"
"""The default file of the users of Kafka's listener, in the data folder."""
BATCHES_PER_CORE: Final = 2
"""The default of `engine.concurrent.batches`, for each core."""
_USER_IN_URL: Final = re.compile(r"//[^/\s]*@")
_PASSWORD: Final = re.compile(r"password=[^&\s]*", re.IGNORECASE)
ASSIGNOR: Final = "assignor."
"""The prefix of the assignors' settings: all but the memory limit are passed to each assignor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(NodeSettings):
    """The validated settings of a node, and values derived from them; raises `Contradictory`."""

    connect_worker: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """The keys of a Connect worker that plugin hosts are given, as they were written."""

    def __post_init__(self) -> None:
        if found := [*_contradictions(self)]:
            raise Contradictory(found)

    @property
    def data_path(self) -> Path:
        """The data folder as an absolute path."""
        return Path(self.data_dir).expanduser().absolute()

    @property
    def group_folder(self) -> Path:
        """The folder of the group's logs `control` and `offsets`."""
        return self.data_path / "groups" / quote(self.group_id, safe="")

    def rest_listeners(self) -> tuple[RestListener, ...]:
        """Return where the REST interface listens, besides the socket of the data folder."""
        return parse_listeners(self.listeners)

    def only_admin_listeners(self) -> tuple[RestListener, ...] | None:
        """Return where /admin alone is served; None: where everything is."""
        is_elsewhere = self.admin_listeners != AS_LISTENERS
        return parse_listeners(self.admin_listeners) if is_elsewhere else None

    def all_rest_listeners(self) -> tuple[RestListener, ...]:
        """Return where the REST interface listens, those of /admin among them, each once."""
        return tuple(dict.fromkeys((*self.rest_listeners(), *(self.only_admin_listeners() or ()))))

    @property
    def kafka_users_path(self) -> Path:
        """The file of the users of Kafka's listener."""
        path = self.kafka_sasl_users
        return Path(path).expanduser().absolute() if path else self.data_path / KAFKA_USERS

    @property
    def rest_socket(self) -> Path:
        """The Unix socket on which the REST interface always listens."""
        return self.data_path / "run" / "rest.sock"

    @property
    def rest_url(self) -> str:
        """The URL of the REST interface: of its first listener, or of its socket."""
        listeners = self.rest_listeners()
        return listeners[0].url if listeners else f"unix://{quote(str(self.rest_socket))}"

    @property
    def needs_tls(self) -> bool:
        """Whether a listener of REST is encrypted."""
        return any(each.is_encrypted for each in self.all_rest_listeners())

    def tls_values(self) -> Mapping[str, str]:
        """Return the `ssl.*` settings of https listeners, with absolute paths; "": no value.

        Some are secret.
        """
        values = {key: getattr(self, name) for key, name in KEYS.items() if key.startswith(SSL)}
        return {
            key: str(Path(text).expanduser().absolute())
            if text and key.endswith(".location")
            else text
            for key, text in values.items()
        }

    def trace_values(self) -> Mapping[str, str]:
        """Return the `traces.*` settings; some are secret."""
        return {key: getattr(self, name) for key, name in KEYS.items() if key.startswith(TRACES)}

    def allowed_hosts(self) -> tuple[str, ...]:
        """Return the host names that requests may use besides those of the listener."""
        host = self.rest_advertised_host_name
        return (*([bracketed(host)] if host else []), *split_list(self.rest_allowed_hosts))

    def reach(self) -> AccessLimits:
        """Return which paths, SQL functions and databases connectors may use on this node."""
        sql = frozenset(name.lower() for name in split_list(self.sql_allow))
        return AccessLimits(
            str(self.data_path), split_list(self.paths_allow), sql, split_list(self.jdbc_allow)
        )

    def plugins(self) -> PluginSettings:
        """Return which plugins of Kafka Connect this node has."""
        folders = [Path(each).expanduser().absolute() for each in split_list(self.plugin_path)]
        lists = split_list(self.plugins_repositories), split_list(self.plugin_allow)
        return PluginSettings(self.data_path, folders, *lists)

    def worker_properties(self) -> dict[str, str]:
        """Return the properties of the Connect worker that a plugin host is, without plugin.path.

        Some are secret, and references in them are not resolved yet.
        """
        given = {key: text for key, text in self.connect_worker.items() if text or key not in KEYS}
        return complete({**given, **{key: str(getattr(self, KEYS[key])) for key in SHARED}})

    def plugin_spec(self) -> PluginSpec:
        """Return what the node's processes are told of Kafka Connect's plugins."""
        plugins = self.plugins()
        host = HostOptions(
            heap=self.plugin_host_heap,
            java_options=self.plugin_host_java_options,
            truststore=self.plugin_host_truststore,
            wrapper=self.plugin_host_wrapper,
        )
        return PluginSpec(
            tuple(map(str, plugins.path)),
            tuple(plugins.allow),
            host,
            self.plugin_host_idle_ms,
            self.plugin_isolation,
            self.worker_properties(),
        )

    def place(self, port: int | None = None) -> str:
        """Return the advertised `host:port`; `port` is the actual port of the listener."""
        ports = (each.address for each in self.rest_listeners() if not each.is_unix)
        own = next(ports, None)
        host = self.rest_advertised_host_name or (own.host if own else LOOPBACK)
        if self.log_store != LMDB and not self.rest_advertised_host_name:
            host = self.own_name()  # workers of several nodes are told apart by it
        listens_at = port or (own.port if own else REST_PORT)
        return f"{bracketed(host)}:{self.rest_advertised_port or listens_at}"

    @property
    def is_shared(self) -> bool:
        """Whether all workers share one JVM."""
        is_wanted = self.engine_kind == "shared" or (
            self.engine_kind == "auto" and self.workers > 1
        )
        return self.engine == "spark" and is_wanted and not is_connect(self.spark_master)

    @property
    def cluster(self) -> str:
        """The master URL of the cluster that runs the jobs; empty: they run on this node."""
        return self.spark_master if is_cluster(self.spark_master) else ""

    def cores(self) -> int:
        """Return the number of cores of each Spark JVM."""
        available = len(os.sched_getaffinity(0))
        if self.spark_master and not self.cluster:
            return cores_of(self.spark_master, available)
        return available if self.is_shared else max(1, available // max(1, self.workers))

    def batches(self) -> int:
        """Return how many batches a worker runs at once: its part of those of its JVM."""
        sharers = max(1, self.workers) if self.is_shared else 1
        if most := self.engine_concurrent_batches:
            return max(1, most // sharers)
        return BATCHES_PER_CORE * max(1, self.cores() // sharers)

    def assignor_names(self) -> tuple[str, ...]:
        """Return the assignors of the workers, in the order of preference."""
        return tuple(name.strip() for name in self.group_local_assignors.split(","))

    def classic_mode(self) -> str:
        """Return the workers' `connect.protocol` as classic members; "": they use KIP-848."""
        return self.connect_protocol if self.group_protocol == "classic" else ""

    def assignor_settings(self) -> Mapping[str, str]:
        """Return the settings that are passed to assignors: `assignor.*`, without the prefix."""
        excluded = {"assignor_conf", "assignor_memory_max"}
        own = {
            key.removeprefix(ASSIGNOR): str(getattr(self, name))
            for key, name in KEYS.items()
            if key.startswith(ASSIGNOR) and name not in excluded
        }
        return {**self.assignor_conf, **own}

    def assignor_memory(self) -> int:
        """Return the memory limit of the assignor process in bytes."""
        return bytes_of(self.assignor_memory_max)

    def worker_memory(self) -> int:
        """Return the memory limit of each worker in bytes; 0: it has none."""
        return bytes_of(self.worker_memory_max) if self.worker_memory_max else 0

    def settings(self) -> GroupSettings:
        """Return the settings of a group's coordinator."""
        return GroupSettings(
            session_timeout_ms=self.session_timeout_ms,
            heartbeat_interval_ms=self.heartbeat_interval_ms,
            max_delay_ms=self.scheduled_rebalance_max_delay_ms,
            leave_delay_ms=self.scheduled_rebalance_leave_delay_ms,
            max_size=self.group_max_size,
            assignment_interval_ms=self.assignment_interval_ms,
            initial_delay_ms=self.group_initial_rebalance_delay_ms,
            least_classic_session_ms=self.group_min_session_timeout_ms,
            longest_classic_session_ms=self.group_max_session_timeout_ms,
            connect_initial_delay_ms=self.connect_initial_rebalance_delay_ms,
            migration_policy=MigrationPolicy(self.group_migration_policy),
            requests_per_second=self.member_request_rate,
            fence_margin_ms=self.fence_margin_ms,
        )

    def retention(self) -> Retention:
        """Return how much of their history the control logs keep."""
        limits = self.log_retention_ms, self.log_retention_epochs, self.log_retention_bytes
        return Retention(*(max(0, each) for each in limits))

    def own_name(self) -> str:
        """Return the name of this node."""
        return self.node_name or socket.gethostname()

    def store(self) -> StoreSpec | None:
        """Return the store in which the group's commits count; None: the node's own logs."""
        if self.log_store == LMDB:
            return None
        client = self.log_store_client_config
        return StoreSpec(
            self.log_store,
            self.log_store_name,
            self.log_store_url,
            self.log_store_bootstrap_servers or self.kafka_bootstrap_servers,
            str(Path(client).expanduser().absolute()) if client else "",
            self.log_store_replication_factor,
            self.owner_silence_ms / 1_000,
            self.group_id,
            self.own_name(),
            is_unsafe=self.log_store_unsafe == "true",
        )

    def abilities(self) -> Abilities:
        """Return the capacity and the tags of this node's workers."""
        return Abilities(self.worker_capacity, frozenset(split_list(self.worker_tags)))

    def timing(self) -> Timing:
        """Return the timeouts and intervals of a member."""
        return Timing(
            heartbeat_interval_ms=self.heartbeat_interval_ms,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            fence_margin_ms=self.fence_margin_ms,
        )


class Loaded(NamedTuple):
    """A configuration, and the source of each setting that is not a default."""

    config: Config
    sources: Mapping[str, str]
    passed_over: tuple[str, ...] = ()
    """The keys in its file of a Connect worker that have no meaning here."""


def load_config(
    file: Path | None = None,
    environ: Mapping[str, str] = os.environ,
    overrides: Sequence[str] = (),
) -> Config:
    """Load the configuration; raises `ConfigError` with all its errors.

    Later sources win: defaults, `file` (TOML or .properties), `environ` (FAIRLEAD_GROUP_ID for
    group.id), `overrides` (`key=value`).
    """
    return load_with_sources(file, environ, overrides).config


def load_with_sources(
    file: Path | None, environ: Mapping[str, str], overrides: Sequence[str]
) -> Loaded:
    """Load the configuration with the source of each setting; raises `ConfigError`."""
    gathered, of_worker, passed_over = gather(
        file, environ, overrides, KEYS.keys() - {SPARK_CONF, ASSIGNOR_CONF}
    )
    spark, assignors = (_passed_on(prefix, gathered) for prefix in PASSED_ON)
    _refuse_unsafe(spark, gathered)
    values: dict[str, Any] = dict(_parsed(gathered, of_worker))
    if values.get("log_store", LMDB) != LMDB:
        values = {**WITH_STORE, **values}
    worker = {key: each.text for key, each in of_worker.items()}
    try:
        config = Config(**values, spark_conf=spark, assignor_conf=assignors, connect_worker=worker)
    except Contradictory as error:
        raise ConfigError(_with_sources(each, gathered) for each in error.found) from None
    sources = {key: each.source for key, each in {**of_worker, **gathered}.items()}
    return Loaded(config, sources, passed_over)


def _contradictions(config: Config) -> Iterator[Contradiction]:
    yield from flaws_in_times(config)
    yield from _flaws_in_parts(config)
    yield from flaws_in_kafka(config, needs_broker=config.log_store == LMDB)
    yield from flaws_in_store(config, config.kafka_bootstrap_servers)
    timing = config.session_timeout_ms, config.heartbeat_interval_ms, config.fence_margin_ms
    yield from flaws_in_takeovers(config, *timing)
    yield from flaws_in_access(config)
    yield from flaws_in_traces(config)


def _flaws_in_parts(config: Config) -> Iterator[Contradiction]:
    """Yield conflicts between the settings of different parts of a node."""
    if config.group_remote_assignor and config.abilities() != ORDINARY:
        yield Contradiction(
            ("group.remote.assignor", "worker.tags", "worker.capacity"),
            f"group.remote.assignor = {config.group_remote_assignor} is run by the group itself,"
            " which gets no tags and no capacity of workers: remove worker.tags and"
            " worker.capacity, or remove group.remote.assignor so that workers compute",
        )
    if is_connect(config.cluster):
        yield from connect_needs(config.cluster, config.paths_allow, config.engine_kind)
    elif config.cluster:
        drivers = 1 if config.is_shared else config.workers
        yield from cluster_needs(config.cluster, config.spark_conf, config.paths_allow, drivers)
    yield from flaws_in_rest(config, config.rest_listeners(), "listeners")
    yield from flaws_in_rest(config, config.only_admin_listeners() or (), "admin.listeners")
    yield from flaws_in_certificates(config, config.all_rest_listeners())
    if config.actor_port in {each.port for each in config.all_rest_listeners()} - {0}:
        yield Contradiction(
            ("listeners", "actor.port"),
            f"listeners and actor.port name the same port, {config.actor_port}: the REST interface"
            " and the actors need one each",
        )


def _passed_on(prefix: str, gathered: Mapping[str, GivenValue]) -> Mapping[str, str]:
    """Return the settings that are passed through, without their prefix."""
    return {
        key.removeprefix(prefix): each.text
        for key, each in gathered.items()
        if key.startswith(prefix)
    }


def _refuse_unsafe(conf: Mapping[str, str], gathered: Mapping[str, GivenValue]) -> None:
    problems: list[str] = []
    master = gathered["spark.master"].text if "spark.master" in gathered else ""
    for name, text in conf.items():
        try:
            refuse_unsafe({name: text}, master)
        except SettingRefused as error:
            problems.append(f"{error} (from {gathered[SPARK + name].source})")
    if problems:
        raise ConfigError(problems)


def _parsed(
    gathered: Mapping[str, GivenValue], of_worker: Mapping[str, GivenValue]
) -> Iterator[tuple[str, Value]]:
    """Parse the given fields of `Config`; raises `ConfigError` with all invalid values."""
    problems = [
        f"{key} = {text!r} (from {source}): allowed is {allowed}"
        for key, (text, source) in of_worker.items()
        if (allowed := flaw_in(key, text))
    ]
    for key, name in KEYS.items():
        if key not in gathered or key.startswith(PASSED_ON):
            continue
        text, source = gathered[key]
        try:
            yield name, SETTINGS[key].parse(text)
        except ValueError as error:
            why = f"{error}; " if str(error) else ""
            allowed = SETTINGS[key].allowed
            problems.append(
                f"{key} = {_shown(key, text)!r} (from {source}): {why}allowed is {allowed}"
            )
    if problems:
        raise ConfigError(problems)


def _shown(key: str, text: str) -> str:
    """Return a refused value for display, without what may be a secret."""
    if SETTINGS[key].type is SettingType.PASSWORD:
        return HIDDEN
    shown = _USER_IN_URL.sub(f"//{HIDDEN}@", without_parameters(text))
    return _PASSWORD.sub(f"password={HIDDEN}", shown)


def _with_sources(contradiction: Contradiction, gathered: Mapping[str, GivenValue]) -> str:
    sources = (f"{key}: {gathered[key].source}" for key in contradiction.keys if key in gathered)
    return f"{contradiction.text} ({'; '.join(sources)})"
