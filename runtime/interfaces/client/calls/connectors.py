"""Requests about connectors and their tasks: their life and their states."""

from collections.abc import Sequence
from typing import Final, Literal

from msgspec.json import Decoder

from ...replies.connectors import (
    ActiveTopics,
    ConnectorInfo,
    ExpandedConnector,
    TaskInfo,
    TaskState,
)
from ...replies.live.state import ConnectorHistory
from ...replies.node import Message
from ..sending.requests import NOTHING, NodeRequest, get, put
from .configs import INFO, Config
from .frames import TaskTable
from .notebook import ConnectorStatus

InitialStateWord = Literal["RUNNING", "PAUSED", "STOPPED"]
ExpansionWord = Literal["status", "info", "progress"]

NAMES: Final = Decoder(list[str])
EXPANDED: Final = Decoder(dict[str, ExpandedConnector])
STATUS: Final = Decoder(ConnectorStatus)
MAYBE_STATUS: Final[Decoder[ConnectorStatus | None]] = Decoder(ConnectorStatus | None)
MAYBE_MESSAGE: Final[Decoder[Message | None]] = Decoder(Message | None)
TASKS: Final = Decoder(list[TaskInfo])
TASK_STATUS: Final = Decoder(TaskState)
TOPICS: Final = Decoder(dict[str, ActiveTopics])
PROGRESS: Final = Decoder(TaskTable)
HOUR: Final = Decoder(ConnectorHistory)


def list_connectors(limit: int | None = None, after: str = "") -> NodeRequest[list[str]]:
    """List the names of the connectors in order, at most `limit` of those behind `after`."""
    return get(NAMES, "connectors", limit=limit, after=after or None)


def expand_connectors(
    expand: Sequence[ExpansionWord] = ("status",), *, limit: int | None = None, after: str = ""
) -> NodeRequest[dict[str, ExpandedConnector]]:
    """Return the status, the info or the progress of all connectors, or of a page of them."""
    given = {"expand": expand, "limit": limit, "after": after or None, "extended": True}
    return NodeRequest("GET", ("connectors",), EXPANDED, given)


def get_connector(name: str) -> NodeRequest[ConnectorInfo]:
    """Return the config of a connector and its tasks; secret values are hidden."""
    return get(INFO, "connectors", name, extended=True)


def create(
    name: str, config: Config, *, initial_state: InitialStateWord = "RUNNING"
) -> NodeRequest[ConnectorInfo]:
    """Create a connector; it is `Refused` (409) if there is one of that name."""
    body = {"name": name, "config": config, "initial_state": initial_state}
    return NodeRequest("POST", ("connectors",), INFO, {"extended": True}, body)


def delete(name: str, *, forget: bool = True, publish: bool = True) -> NodeRequest[Message | None]:
    """Delete a connector; its offsets stay. The message says what the deletion waits for, or lost.

    Without `forget` the state that its source has elsewhere is kept, such as a replication slot;
    without `publish` batches that are committed and not published are given up.
    """
    query = {"forget": forget, "publish": publish}
    return NodeRequest("DELETE", ("connectors", name), MAYBE_MESSAGE, query)


def pause(name: str) -> NodeRequest[None]:
    """Pause a connector: its tasks stay assigned, and start no batch."""
    return put(NOTHING, "connectors", name, "pause")


def resume(name: str) -> NodeRequest[None]:
    """Resume a connector that is paused or stopped."""
    return put(NOTHING, "connectors", name, "resume")


def stop(name: str) -> NodeRequest[None]:
    """Stop a connector and its tasks; its offsets can be changed then."""
    return put(NOTHING, "connectors", name, "stop")


def restart(
    name: str, *, include_tasks: bool = False, only_failed: bool = False
) -> NodeRequest[ConnectorStatus | None]:
    """Restart a connector, with its tasks, or only the failed ones.

    With `include_tasks` or `only_failed` the answer is the status with what is restarting.
    """
    query = {"includeTasks": include_tasks, "onlyFailed": only_failed}
    return NodeRequest("POST", ("connectors", name, "restart"), MAYBE_STATUS, query)


def restart_task(name: str, task: int) -> NodeRequest[None]:
    """Restart one task."""
    return NodeRequest("POST", ("connectors", name, "tasks", str(task), "restart"), NOTHING)


def get_status(name: str) -> NodeRequest[ConnectorStatus]:
    """Return the states of a connector and of its tasks, with reasons."""
    return get(STATUS, "connectors", name, "status", extended=True)


def list_tasks(name: str) -> NodeRequest[list[TaskInfo]]:
    """List the tasks of a connector with their configs; secret values are hidden."""
    return get(TASKS, "connectors", name, "tasks")


def get_task_status(name: str, task: int) -> NodeRequest[TaskState]:
    """Return the state of one task, with its reason."""
    return get(TASK_STATUS, "connectors", name, "tasks", str(task), "status", extended=True)


def get_topics(name: str) -> NodeRequest[dict[str, ActiveTopics]]:
    """Return the topics that a connector has read, below its name."""
    return get(TOPICS, "connectors", name, "topics")


def reset_topics(name: str) -> NodeRequest[None]:
    """Forget the topics that a connector of Kafka Connect's class has used until now."""
    return put(NOTHING, "connectors", name, "topics", "reset")


def get_progress(name: str) -> NodeRequest[TaskTable]:
    """Return what the tasks of a connector have read and written, and what is left."""
    return get(PROGRESS, "connectors", name, "progress")


def get_last_hour(name: str, minutes: int = 60) -> NodeRequest[ConnectorHistory]:
    """Return the last minutes of a connector in steps of 15 s, as far as they were recorded."""
    return get(HOUR, "connectors", name, "history", minutes=minutes)
