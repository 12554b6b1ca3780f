"""The records of one connector: its config, its tasks, its target state, its statuses.

The rules for fields and times in `records.py` apply to these records as well.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from .model import NEVER_RESTARTED, AutoRestart, Resource, RunState, TaskConfig, Token


@dataclass(frozen=True, slots=True)
class ConnectorConfig:
    """The config of a connector (key type 16); secret values are sealed.

    `version` counts the configs of this connector that its work can tell apart, and its restarts:
    what is said of placement makes none. `deleting` stands while its work is brought to an end;
    only then the key gets its tombstone. `offsets_before` is how many offsets there were of an
    earlier connector of this name when it was created: they count for this one. `to_forget` stands
    beside `deleting` until its source has removed what it keeps outside, such as a slot.
    `given_up` is how many batches counted and were not published when they were given up.
    """

    connector: str
    config: Mapping[str, str]
    version: int = 1
    time_ms: int = 0
    deleting: bool = False
    offsets_before: int = 0
    to_forget: bool = False
    given_up: int = 0
    actor: str | None = None
    """The principal who asked for this last, where that is known."""


@dataclass(frozen=True, slots=True)
class TaskConfigs:
    """The tasks that a connector split its work into (key type 17).

    `generation` counts the splits of this connector, and the restarts of its tasks; each task
    keeps the generation that last changed its own config or restarted it, so that a new split
    restarts only what it alters.
    """

    connector: str
    generation: int
    tasks: tuple[TaskConfig, ...]


@dataclass(frozen=True, slots=True)
class TargetState:
    """The state that people want of a connector: RUNNING, PAUSED or STOPPED (key type 18).

    One of which nothing is said is to be RUNNING. A STOPPED one has no tasks; `is_complete` tells
    that the last of them has ended, and that all that counts is published.
    """

    connector: str
    state: RunState
    time_ms: int
    actor: str | None = None
    """The principal who asked for it, where that is known."""
    is_complete: bool = False


@dataclass(frozen=True, slots=True)
class OffsetsAltered:
    """People set offsets of a connector that was stopped (key type 30).

    Both logs have it: the offset log with the offsets, in one append, the control log after that.
    """

    connector: str
    how: str
    """What they did: `altered`, `reset`, or `sought to` a place."""
    partitions: int
    """How many source partitions have another offset by it, or none any more."""
    time_ms: int
    actor: str | None = None
    """The principal who asked for it, where that is known."""


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """The status of a connector or a task, as its worker reports it (key type 20)."""

    resource: Resource
    state: RunState
    worker: str
    """The url of the worker that says so, or its member id where it has none."""
    token: Token
    time_ms: int
    reason: str = ""
    restarts: AutoRestart = NEVER_RESTARTED
    """How often its worker has restarted it after failures."""
