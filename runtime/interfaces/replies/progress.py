"""How far a connector's tasks have come, and its offsets in Connect's shapes (KIP-875)."""

from collections.abc import Mapping

from msgspec import Struct, field

from ....events.commits import Document
from ....events.group import Group
from ....projections.views import Progress


class UnreadInput(Struct, frozen=True):
    """What a source held beyond the last batch of a task, when that batch was planned."""

    ranges: int
    bytes: int


class TaskCounts(Struct, frozen=True, kw_only=True):
    """What the committed batches of a task count."""

    rows_in: int
    rows_out: int
    bytes_out: int
    batches: int
    unpublished: int
    """Batches that count, and are not yet in place."""
    last_commit_ms: int | None
    """Wall clock; None before the first commit."""
    lag: UnreadInput | None
    """None where it is not known."""
    skipped: int = 0
    """Bad rows that were left out."""
    dead_letters: int = 0
    """Those of them that are in the dead letter queue."""
    bytes_in: int = 0
    """Of the source, as far as it knows."""
    batch_ms: dict[str, int] = {}
    """What batches took on average: plan, wait (for the engine), run, commit and publish."""
    rows_per_second: int | None = None
    """Rows read per second of work; None where it is not known."""


class TaskProgressInfo(TaskCounts, frozen=True):
    """How far a task has come."""

    id: int


class ConnectorProgressInfo(Struct, frozen=True):
    """How far each task of a connector has come."""

    name: str
    tasks: list[TaskProgressInfo]


class ConnectorOffset(Struct, frozen=True):
    """Connect's `ConnectorOffset`: how far a source partition was read."""

    partition: Document
    offset: Document | None


class ConnectorOffsets(Struct, frozen=True, omit_defaults=True):
    """Connect's `ConnectorOffsets`."""

    offsets: list[ConnectorOffset]
    lag: UnreadInput | None = None
    """What was left to read, where all tasks know it and `extended` was asked for."""


class OffsetMove(Struct, frozen=True):
    """A source partition whose offset a seek changes; None: it has none."""

    partition: Document
    before: Document | None = field(name="from")
    after: Document | None = field(name="to")


class OffsetsSought(Struct, frozen=True):
    """What a seek changes, or would change in a dry run."""

    to: str
    dry_run: bool
    partitions: int
    """How many partitions have another offset by it, or none any more."""
    first: list[OffsetMove]
    """The first few of them."""
    message: str


def connector_progress(
    group: Group, name: str, progress: Mapping[int, Progress]
) -> ConnectorProgressInfo:
    """Return how far each task has come; `progress` is by the tasks' numbers."""
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
    """Return how long each phase of a batch took on average; nothing if no release told it."""
    phases = progress.cost.phases_ms
    if not any(phases.values()):
        return {}
    return {phase: round(took / progress.batches) for phase, took in phases.items()}


def _rows_per_second(progress: Progress) -> int | None:
    worked_ms = sum(progress.cost.phases_ms.values())
    return round(progress.rows_in / worked_ms * 1000) if worked_ms else None
