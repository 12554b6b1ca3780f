"""Requests about connectors and their offsets."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final, Literal

from msgspec.json import Decoder

from ..replies.connectors import ConnectorInfo
from ..replies.node import Message
from ..replies.progress import ConnectorOffset, ConnectorOffsets, OffsetsSought
from .frames import TaskTable
from .notebook import ConnectorStatus
from .requests import EXTENDED, NOTHING, NodeRequest, get

ConfigValue = str | int | float | bool
Config = Mapping[str, ConfigValue]
InitialStateWord = Literal["RUNNING", "PAUSED", "STOPPED"]

NAMES: Final = Decoder(list[str])
INFO: Final = Decoder(ConnectorInfo)
STATUS: Final = Decoder(ConnectorStatus)
MAYBE_STATUS: Final[Decoder[ConnectorStatus | None]] = Decoder(ConnectorStatus | None)
MAYBE_MESSAGE: Final[Decoder[Message | None]] = Decoder(Message | None)
PROGRESS: Final = Decoder(TaskTable)
OFFSETS: Final = Decoder(ConnectorOffsets)
SOUGHT: Final = Decoder(OffsetsSought)
MESSAGE: Final = Decoder(Message)


def list_connectors() -> NodeRequest[list[str]]:
    """List the names of the connectors."""
    return get(NAMES, "connectors")


def get_connector(name: str) -> NodeRequest[ConnectorInfo]:
    """Return the config of a connector and its tasks; secret values are hidden."""
    return get(INFO, "connectors", name, **EXTENDED)


def create(
    name: str, config: Config, *, initial_state: InitialStateWord = "RUNNING"
) -> NodeRequest[ConnectorInfo]:
    """Create a connector; it is `Refused` (409) if there is one of that name."""
    body = {"name": name, "config": config, "initial_state": initial_state}
    return NodeRequest("POST", ("connectors",), INFO, EXTENDED, body)


def put_config(name: str, config: Config) -> NodeRequest[ConnectorInfo]:
    """Create a connector, or replace its config."""
    return NodeRequest("PUT", ("connectors", name, "config"), INFO, EXTENDED, config)


def patch_config(
    name: str, changes: Mapping[str, ConfigValue | None]
) -> NodeRequest[ConnectorInfo]:
    """Change keys of a config, and remove those that are None."""
    return NodeRequest("PATCH", ("connectors", name, "config"), INFO, EXTENDED, changes)


def delete(name: str, *, forget: bool = True, publish: bool = True) -> NodeRequest[Message | None]:
    """Delete a connector; its offsets stay. The message says what the deletion waits for, or lost.

    Without `forget` the state that its source has elsewhere is kept, such as a replication slot;
    without `publish` batches that are committed and not published are given up.
    """
    query = {"forget": str(forget).lower(), "publish": str(publish).lower()}
    return NodeRequest("DELETE", ("connectors", name), MAYBE_MESSAGE, query)


def pause(name: str) -> NodeRequest[None]:
    """Pause a connector: its tasks stay assigned, and start no batch."""
    return NodeRequest("PUT", ("connectors", name, "pause"), NOTHING)


def resume(name: str) -> NodeRequest[None]:
    """Resume a connector that is paused or stopped."""
    return NodeRequest("PUT", ("connectors", name, "resume"), NOTHING)


def stop(name: str) -> NodeRequest[None]:
    """Stop a connector and its tasks; its offsets can be changed then."""
    return NodeRequest("PUT", ("connectors", name, "stop"), NOTHING)


def restart(
    name: str, *, include_tasks: bool = False, only_failed: bool = False
) -> NodeRequest[ConnectorStatus | None]:
    """Restart a connector, with its tasks, or only the failed ones.

    With `include_tasks` or `only_failed` the answer is the status with what is restarting.
    """
    query = {"includeTasks": str(include_tasks).lower(), "onlyFailed": str(only_failed).lower()}
    return NodeRequest("POST", ("connectors", name, "restart"), MAYBE_STATUS, query)


def restart_task(name: str, task: int) -> NodeRequest[None]:
    """Restart one task."""
    path = ("connectors", name, "tasks", str(task), "restart")
    return NodeRequest("POST", path, NOTHING)


def get_status(name: str) -> NodeRequest[ConnectorStatus]:
    """Return the states of a connector and of its tasks, with reasons."""
    return get(STATUS, "connectors", name, "status", **EXTENDED)


def get_progress(name: str) -> NodeRequest[TaskTable]:
    """Return what the tasks of a connector have read and written, and what is left."""
    return get(PROGRESS, "connectors", name, "progress")


def get_offsets(name: str) -> NodeRequest[ConnectorOffsets]:
    """Return the offset of each source partition, and the lag."""
    return get(OFFSETS, "connectors", name, "offsets", **EXTENDED)


def set_offsets(name: str, offsets: Iterable[ConnectorOffset]) -> NodeRequest[Message]:
    """Set offsets of a stopped connector; None as an offset removes that of the partition."""
    body = {"offsets": [*offsets]}
    return NodeRequest("PATCH", ("connectors", name, "offsets"), MESSAGE, {}, body)


def reset_offsets(name: str) -> NodeRequest[Message]:
    """Remove all offsets of a stopped connector: its source is then read from the beginning."""
    return NodeRequest("DELETE", ("connectors", name, "offsets"), MESSAGE)


def seek(name: str, to: datetime | str, *, dry_run: bool = False) -> NodeRequest[OffsetsSought]:
    """Move a stopped connector to a time with its zone, to `earliest` or to `latest`."""
    body = {"to": to if isinstance(to, str) else to.isoformat(), "dry_run": dry_run}
    return NodeRequest("POST", ("connectors", name, "offsets", "seek"), SOUGHT, {}, body)
