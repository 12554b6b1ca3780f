"""Replies about connectors, tasks and plugins, in the JSON formats of Kafka Connect.

Fields that Connect does not have (`warnings`, `reason`, `progress`, `delivery`) are omitted if
empty, and some also if the request is not `extended`.
"""

from enum import StrEnum

from msgspec import Struct, field

from .progress import ConnectorProgressInfo
from .words import ConnectorTypeWord, RunStateWord


class InitialState(StrEnum):
    """The possible initial states of a new connector."""

    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


class ConnectorTaskId(Struct, frozen=True):
    """Connect's `ConnectorTaskId`."""

    connector: str
    task: int


class TaskInfo(Struct, frozen=True):
    """Connect's `TaskInfo`; secret values of the config are hidden."""

    id: ConnectorTaskId
    config: dict[str, str]


class ConnectorInfo(Struct, frozen=True, omit_defaults=True):
    """Connect's `ConnectorInfo`; secret values of the config are hidden."""

    name: str
    config: dict[str, str]
    tasks: list[ConnectorTaskId]
    type: ConnectorTypeWord
    """source, sink, or unknown if the class is not installed."""
    warnings: tuple[str, ...] = ()
    """Possible mistakes in the config."""
    delivery: str = ""
    """The delivery guarantee with this config."""


class AutoRestartInfo(Struct, frozen=True):
    """Strimzi's format for the automatic restarts of a failed connector or task."""

    count: int
    lastRestartTimestamp: str  # noqa: N815  # Strimzi's word
    """In ISO 8601."""


class ConnectorState(Struct, frozen=True, omit_defaults=True):
    """Connect's `ConnectorState`: the state of a connector, and its worker."""

    state: RunStateWord
    worker_id: str
    version: str | None
    """The version of its class, None if the class is not installed."""
    trace: str = ""
    """Why it failed."""
    reason: str = ""
    """What it waits for, or why it is unassigned."""
    autoRestart: AutoRestartInfo | None = None  # noqa: N815  # Strimzi's word


class TaskState(Struct, frozen=True, omit_defaults=True):
    """Connect's `TaskState`: the state of a task, and its worker."""

    id: int
    state: RunStateWord
    worker_id: str
    version: str | None
    """The version of its class, None if the class is not installed."""
    trace: str = ""
    """Why it failed."""
    reason: str = ""
    """What it waits for, or why it is unassigned."""
    autoRestart: AutoRestartInfo | None = None  # noqa: N815  # Strimzi's word


class ConnectorStateInfo(Struct, frozen=True, omit_defaults=True):
    """Connect's `ConnectorStateInfo`, with tasks in the order of their numbers."""

    name: str
    connector: ConnectorState
    tasks: list[TaskState]
    type: ConnectorTypeWord
    warnings: tuple[str, ...] = ()
    """Possible mistakes in the config."""
    delivery: str = ""
    """The delivery guarantee with this config."""


class ActiveTopics(Struct, frozen=True):
    """Connect's `ActiveTopicsInfo` of one connector."""

    topics: list[str]


class ExpandedConnector(Struct, frozen=True, omit_defaults=True):
    """An entry of `/connectors?expand=…`: the requested parts of one connector."""

    status: ConnectorStateInfo | None = None
    info: ConnectorInfo | None = None
    progress: ConnectorProgressInfo | None = None


class PluginInfo(Struct, frozen=True, omit_defaults=True):
    """Connect's `PluginInfo`."""

    class_name: str = field(name="class")
    type: str
    """source, sink, converter, transformation or predicate."""
    version: str
    delivery: str = ""
    """The strongest delivery guarantee of a connector class."""


class ConfigKeyInfo(Struct, frozen=True, omit_defaults=True):
    """Connect's `ConfigKeyInfo`: one key of a connector class."""

    name: str
    type: str
    required: bool
    default_value: str | None
    importance: str
    documentation: str
    group: str
    order_in_group: int
    width: str
    display_name: str
    dependents: tuple[str, ...]
    """The keys that depend on this one."""
    only_with: str = ""
    """What selects this key, such as `source.type=kafka`; "" if all configs may have it."""


class ConfigValueInfo(Struct, frozen=True):
    """Connect's `ConfigValueInfo`: the value of a key, and its errors."""

    name: str
    value: str | None
    """`********` for a secret."""
    recommended_values: tuple[str, ...]
    errors: tuple[str, ...]
    visible: bool


class ConfigInfo(Struct, frozen=True):
    """Connect's `ConfigInfo`: a key and its value."""

    definition: ConfigKeyInfo | None
    """None for an undefined key."""
    value: ConfigValueInfo


class ConfigInfos(Struct, frozen=True, omit_defaults=True):
    """Connect's `ConfigInfos`: all errors of a config; warnings do not make it invalid."""

    name: str
    error_count: int
    groups: list[str]
    configs: list[ConfigInfo]
    warnings: tuple[str, ...] = ()


class ConfigChange(Struct, frozen=True):
    """A key whose value differs between two configs; None: it is not there."""

    key: str
    before: str | None = field(name="from")
    after: str | None = field(name="to")


class ConfigDiff(Struct, frozen=True):
    """The changes of a connector by a config; secrets are hidden."""

    name: str
    is_new: bool
    changes: list[ConfigChange]
    warnings: tuple[str, ...]
