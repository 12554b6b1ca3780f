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
    group: str | None
    """None only for a plugin of Kafka Connect that has no groups."""
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
    value: ConfigValueInfo | None
    """None only for a key of Kafka Connect's own that has no value then."""


class ConfigInfos(Struct, frozen=True, omit_defaults=True):
    """Connect's `ConfigInfos`: all errors of a config; warnings do not make it invalid."""

    name: str
    error_count: int
    groups: list[str]
    configs: list[ConfigInfo]
    warnings: tuple[str, ...] = ()
    exactly_once: str = ""
    """Whether a plugin of Kafka Connect that feeds a sink of fairlead's resumes right behind its
    offset, as it says: supported, unsupported, undefined, or failed with an error."""


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


class ConfigRevisionInfo(Struct, frozen=True):
    """A config that a connector has had; secret values are hidden."""

    revision: int
    """Its number; that of a later one is larger."""
    time_ms: int
    """Since when it was in force, since 1970."""
    actor: str | None
    """The principal who asked for it, where that is known."""
    changed: list[str]
    """The keys that differ from the revision before; of the first one all."""
    config: dict[str, str]
    """All its keys and values."""


class RevisionList(Struct, frozen=True):
    """The configs that a connector has had, the present one last."""

    name: str
    """The connector."""
    revisions: list[ConfigRevisionInfo]
    """Those that the log has."""


class DeadLetterInfo(Struct, frozen=True):
    """A bad row, as the dead letter queue has it; what a queue does not have is "" or null."""

    time_ms: int
    """When its batch was read, or when it came to the topic; wall clock."""
    reason: str
    stage: str
    """What refused it: source, transform or sink."""
    place: str
    """Where the source had it."""
    raw: str | None
    """Its text; bytes that are no text are U+FFFD, and null if it could not be read."""
    task: int | None
    """The task that had it."""
    batch: int | None
    """The number of its batch, among those of an attempt of the task."""


class DeadLetterList(Struct, frozen=True):
    """Some dead letters of a connector, the newest first."""

    letters: list[DeadLetterInfo]
    """There may be fewer than were asked for, and even none, although there are more."""
    next: str | None
    """The cursor of older ones; null: there are none."""
    where: str
    """The folder or the topic that has them."""


class DeadLetterRetry(Struct, frozen=True):
    """The connector that retries the dead letters of another one."""

    connector: str
    """Whose dead letters it reads."""
    name: str
    """Its own name."""
    is_new: bool
    """Whether there was none before; one that was there goes on with the letters that it has not
    read."""
    config: dict[str, str]
    """Its config; secret values are hidden."""
    warnings: tuple[str, ...]
    """Possible mistakes in the config."""


class SampleColumn(Struct, frozen=True):
    """A column of a sample."""

    name: str
    type: str
    """Its type as Spark writes it: `bigint`, `array<string>`."""


class SampleTable(Struct, frozen=True):
    """Some rows of a config."""

    columns: list[SampleColumn]
    """The columns, in the order of the values."""
    rows: list[list[str | None]]
    """The values as texts: bytes in base64, nested ones as JSON; null is none."""


class SampleDescription(Struct, frozen=True):
    """The first rows as a config would have them read and transformed."""

    before: SampleTable
    """The rows as they are read."""
    after: SampleTable | None
    """What the transforms make of these rows; null: the config has none."""
    warnings: list[str]
    """What a task would say in its log, and about rows that were left out."""
