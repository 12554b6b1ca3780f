"""Replies about the progress of tasks, and a connector's offsets in Connect's format (KIP-875)."""

from collections.abc import Mapping

from msgspec import Struct, field

Document = Mapping[str, str | int | float | bool | None]
"""A source partition or a source offset: a flat JSON object, as in Connect's offsets API."""


class UnreadInput(Struct, frozen=True, omit_defaults=True):
    """The lag of a task: the input left after its last batch, when that batch was planned."""

    ranges: int
    bytes: int
    records: int | None = None
    """Only of sources that know it."""


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
