"""Connectors, their tasks and their classes in Connect's shapes.

Members that Connect lacks (`warnings`, `reason`, `progress`, `delivery`) are left out where they
say nothing, and some where nobody asked for them.
"""

import time
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct, field

from ....events.group import Group
from ....events.model import Resource, RunState
from ....projections.views import Doing, doing
from .progress import ConnectorProgressInfo


class InitialState(StrEnum):
    """How a new connector can begin."""

    RUNNING = RunState.RUNNING.value
    PAUSED = RunState.PAUSED.value
    STOPPED = RunState.STOPPED.value


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
    type: str
    """source, sink, or unknown where the class is not installed."""
    warnings: tuple[str, ...] = ()
    """What is strange about the config, or about what it leads to."""
    delivery: str = ""
    """What is promised about each row, under this config."""


class AutoRestartInfo(Struct, frozen=True):
    """Strimzi's words for how often a worker has restarted something that failed."""

    count: int
    lastRestartTimestamp: str  # noqa: N815  # Strimzi's word
    """As ISO 8601 has it."""


class ConnectorState(Struct, frozen=True, omit_defaults=True):
    """Connect's `ConnectorState`: what a connector does, and at which worker."""

    state: str
    worker_id: str
    version: str | None
    """That of its class, None where the class is not installed."""
    trace: str = ""
    """Why it failed."""
    reason: str = ""
    """What it waits for, or why no worker can take it."""
    autoRestart: AutoRestartInfo | None = None  # noqa: N815  # Strimzi's word


class TaskState(Struct, frozen=True, omit_defaults=True):
    """Connect's `TaskState`: what a task does, and at which worker."""

    id: int
    state: str
    worker_id: str
    version: str | None
    """That of its class, None where the class is not installed."""
    trace: str = ""
    """Why it failed."""
    reason: str = ""
    """What it waits for, or why no worker can take it."""
    autoRestart: AutoRestartInfo | None = None  # noqa: N815  # Strimzi's word


class ConnectorStateInfo(Struct, frozen=True, omit_defaults=True):
    """Connect's `ConnectorStateInfo`, the tasks in order."""

    name: str
    connector: ConnectorState
    tasks: list[TaskState]
    type: str
    warnings: tuple[str, ...] = ()
    """What is strange about the config."""
    delivery: str = ""
    """What is promised about each row, under this config."""


class ActiveTopics(Struct, frozen=True):
    """Connect's `ActiveTopicsInfo` of one connector."""

    topics: list[str]


class ExpandedConnector(Struct, frozen=True, omit_defaults=True):
    """An entry of `/connectors?expand=…`: what was asked for of one connector."""

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
    """The best that a connector class promises about each row."""


class ConfigKeyInfo(Struct, frozen=True):
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
    """The keys whose meaning hangs on this one."""


class ConfigValueInfo(Struct, frozen=True):
    """Connect's `ConfigValueInfo`: what was given for a key, and what is wrong with that."""

    name: str
    value: str | None
    """`********` for a secret."""
    recommended_values: tuple[str, ...]
    errors: tuple[str, ...]
    visible: bool


class ConfigInfo(Struct, frozen=True):
    """Connect's `ConfigInfo`: a key and its value."""

    definition: ConfigKeyInfo | None
    """None for a key that nobody defines."""
    value: ConfigValueInfo


class ConfigInfos(Struct, frozen=True, omit_defaults=True):
    """Connect's `ConfigInfos`: all that is wrong with a config; warnings do not refuse it."""

    name: str
    error_count: int
    groups: list[str]
    configs: list[ConfigInfo]
    warnings: tuple[str, ...] = ()


class MadeBy(NamedTuple):
    """What is known of a connector by its config: its direction, the version of its class."""

    kind: str
    """source, sink, or unknown."""
    version: str | None = None
    window_ms: int = 0
    """For how long a restart of this connector counts."""


def connector_status(
    group: Group, name: str, made_by: MadeBy, held_up: str = ""
) -> ConnectorStateInfo:
    """Return what a connector and its tasks do.

    `held_up` is why no task of the group can commit; nothing if each can.
    """
    numbers = group.task_numbers(name)
    tasks = [task_status(group, name, number, made_by, held_up) for number in numbers]
    connector = ConnectorState(*_state(doing(group, Resource(name)), made_by))
    return ConnectorStateInfo(name, connector, tasks, made_by.kind)


def task_status(
    group: Group, name: str, number: int, made_by: MadeBy, held_up: str = ""
) -> TaskState:
    """Return what one task does; see `connector_status`."""
    found = doing(group, Resource(name, number))
    if found.state is RunState.RUNNING and not found.why:
        found = replace(found, why=held_up)
    return TaskState(number, *_state(found, made_by))


def _auto_restart(found: Doing, window_ms: int) -> AutoRestartInfo | None:
    """Return what is told of restarts, as long as they count."""
    now_ms = time.time_ns() // 1_000_000
    count, last_ms = found.restarts
    if not count or last_ms + window_ms < now_ms:
        return None
    return AutoRestartInfo(count, datetime.fromtimestamp(last_ms / 1000, UTC).isoformat())


def _state(
    found: Doing, made_by: MadeBy
) -> tuple[str, str, str | None, str, str, AutoRestartInfo | None]:
    """Return the members of a `ConnectorState`, in their order."""
    trace, reason = (found.why, "") if found.state is RunState.FAILED else ("", found.why)
    restarted = _auto_restart(found, made_by.window_ms)
    return found.state.value, found.worker, made_by.version, trace, reason, restarted
