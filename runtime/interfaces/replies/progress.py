"""Replies about the progress of tasks, and a connector's offsets in Connect's format (KIP-875)."""

from collections.abc import Mapping

from msgspec import Struct, field

from ....events.commits import Document
from ....events.group import Group
from ....projections.views import Progress


class UnreadInput(Struct, frozen=True):
    """The lag of a task: the input left after its last batch, when that batch was planned."""

    ranges: int
    bytes: int


class TaskCounts(Struct, frozen=True, kw_only=True):
    """Totals over the committed batches of a task."""

    rows_in: int
    rows_out: int
    bytes_out: int
    batches: int
    unpublished: int
    """The number of batches that are committed but not published yet."""
    last_commit_ms: int | None
    """Wall clock; None before the first commit."""
    lag: UnreadInput | None
    """None if unknown."""
    skipped: int = 0
    """The number of bad rows that were skipped."""
    dead_letters: int = 0
    """How many of these are in the dead letter queue."""
    bytes_in: int = 0
    """The bytes read, if the source knows them."""
    batch_ms: dict[str, int] = {}
    """The average duration of each phase: plan, wait (for the engine), run, commit, publish."""
    rows_per_second: int | None = None
    """Rows read per second of work; None if unknown."""


class TaskProgressInfo(TaskCounts, frozen=True):
    """The progress of one task."""

    id: int


class ConnectorProgressInfo(Struct, frozen=True):
    """The progress of each task of a connector."""

    name: str
    tasks: list[TaskProgressInfo]


class ConnectorOffset(Struct, frozen=True):
    """Connect's `ConnectorOffset`: the offset of a source partition."""

    partition: Document
    offset: Document | None


class ConnectorOffsets(Struct, frozen=True, omit_defaults=True):
    """Connect's `ConnectorOffsets`."""

    offsets: list[ConnectorOffset]
    lag: UnreadInput | None = None
    """The lag, if all tasks know it and the request was `extended`."""


class OffsetMove(Struct, frozen=True):
    """The change of a source partition's offset by a seek; None: no offset."""

    partition: Document
    before: Document | None = field(name="from")
    after: Document | None = field(name="to")


class OffsetsSought(Struct, frozen=True):
    """The offsets that a seek changes, or would change in a dry run."""

    to: str
    dry_run: bool
    partitions: int
    """How many partitions have a new offset, or none any more."""
    first: list[OffsetMove]
    """The first few of them."""
    message: str


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
        lag=UnreadInput(lag.ranges, lag.bytes) if lag else None,
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
