"""Builds replies about the progress of tasks from the offset log."""

from collections.abc import Mapping

from .....events.group import Group
from .....projections.views import Progress
from ..progress import ConnectorProgressInfo, TaskProgressInfo, UnreadInput


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
