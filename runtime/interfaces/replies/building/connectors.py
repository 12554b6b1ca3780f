"""Builds replies about connectors and tasks: their states, and the progress of tasks."""

import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, NamedTuple

from .....events.group import Group
from .....events.model import Resource, RunState
from .....projections.views import Progress, ResourceStatus, resource_status
from ..connectors import AutoRestartInfo, ConnectorState, ConnectorStateInfo, TaskState
from ..progress import ConnectorProgressInfo, TaskProgressInfo, UnreadInput

UNKNOWN: Final = "unknown"
"""The type of a connector whose class is not installed here."""
_JAVA_FRAME: Final = "\n\tat "


class MadeBy(NamedTuple):
    """The properties of a connector's class: its type, its version, its restart window."""

    kind: str
    """source, sink, or `UNKNOWN`."""
    version: str | None = None
    window_ms: int = 0
    """How long a restart is counted and shown."""
    is_of_connect: bool = False
    """Whether it is one of Kafka Connect's, whose failures are shown as Connect shows them."""

    def split_failure(self, why: str) -> tuple[str, str]:
        """Return the stack trace in the text of a failure, and the reason apart from it.

        Of fairlead's own classes the whole text is the trace, and the reason is empty.
        """
        reason, _, trace = why.partition("\n")
        if self.is_of_connect and _JAVA_FRAME in f"\n{trace}":
            return trace, reason
        return why, ""


def plain_status(group: Group, name: str, made_by: MadeBy) -> ConnectorStateInfo:
    """Return the status of a connector and its tasks, with no other fields than Connect has.

    It depends on the group alone.
    """
    numbers = group.task_numbers(name)
    tasks = [plain_task(group, Resource(name, number), made_by) for number in numbers]
    found = resource_status(group, Resource(name))
    trace = made_by.split_failure(found.why)[0] if found.state is RunState.FAILED else ""
    connector = ConnectorState(found.state.value, found.worker, made_by.version, trace)
    return ConnectorStateInfo(name, connector, tasks, made_by.kind)


def plain_task(group: Group, task: Resource, made_by: MadeBy) -> TaskState:
    """Return the status of one task; see `plain_status`."""
    found = resource_status(group, task)
    trace = made_by.split_failure(found.why)[0] if found.state is RunState.FAILED else ""
    return TaskState(task.task, found.state.value, found.worker, made_by.version, trace)


def connector_status(
    group: Group, name: str, made_by: MadeBy, held_up: str = ""
) -> ConnectorStateInfo:
    """Return the status of a connector and its tasks, with fairlead's own fields.

    `held_up` is the reason why no task of the group can commit; "" if all can.
    """
    numbers = group.task_numbers(name)
    tasks = [task_status(group, name, number, made_by, held_up) for number in numbers]
    connector = ConnectorState(*_state(resource_status(group, Resource(name)), made_by))
    return ConnectorStateInfo(name, connector, tasks, made_by.kind)


def task_status(
    group: Group, name: str, number: int, made_by: MadeBy, held_up: str = ""
) -> TaskState:
    """Return the status of one task; see `connector_status`."""
    found = resource_status(group, Resource(name, number))
    if found.state is RunState.RUNNING and not found.why:
        found = replace(found, why=held_up)
    return TaskState(number, *_state(found, made_by))


def _auto_restart(found: ResourceStatus, window_ms: int) -> AutoRestartInfo | None:
    """Return the automatic restarts, None if the last one is older than the window."""
    now_ms = time.time_ns() // 1_000_000
    count, last_ms = found.restarts
    if not count or last_ms + window_ms < now_ms:
        return None
    return AutoRestartInfo(count, datetime.fromtimestamp(last_ms / 1000, UTC).isoformat())


def _state(
    status: ResourceStatus, made_by: MadeBy
) -> tuple[str, str, str | None, str, str, AutoRestartInfo | None]:
    """Return the fields of a `ConnectorState`, in their order."""
    is_failed = status.state is RunState.FAILED
    trace, reason = made_by.split_failure(status.why) if is_failed else ("", status.why)
    restarted = _auto_restart(status, made_by.window_ms)
    return status.state.value, status.worker, made_by.version, trace, reason, restarted


def connector_progress(
    group: Group, name: str, progress: Mapping[int, Progress]
) -> ConnectorProgressInfo:
    """Return the progress of each task; `progress` is by task number."""
    unknown = Progress(lag=None)
    tasks = [_task_progress(n, progress.get(n, unknown)) for n in group.task_numbers(name)]
    return ConnectorProgressInfo(name, tasks)


def _task_progress(number: int, progress: Progress) -> TaskProgressInfo:
    lag = progress.lag
    return TaskProgressInfo(
        number,
        rows_in=progress.rows_in,
        rows_out=progress.rows_out,
        bytes_out=progress.bytes_out,
        batches=progress.batches,
        unpublished=progress.unpublished,
        last_commit_ms=progress.last_commit_ms or None,
        lag=UnreadInput(lag.ranges, lag.bytes, lag.records) if lag else None,
        skipped=progress.skipped,
        dead_letters=progress.dead_letters,
        bytes_in=progress.cost.bytes_in,
        batch_ms=_average(progress),
        rows_per_second=_rows_per_second(progress),
    )


def _average(progress: Progress) -> dict[str, int]:
    """Return the average duration of each phase; {} if the log has none (old releases)."""
    phases = progress.cost.phases_ms
    if not any(phases.values()):
        return {}
    return {phase: round(took / progress.batches) for phase, took in phases.items()}


def _rows_per_second(progress: Progress) -> int | None:
    worked_ms = sum(progress.cost.phases_ms.values())
    return round(progress.rows_in / worked_ms * 1000) if worked_ms else None
