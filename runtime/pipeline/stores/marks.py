"""Comparison of a sink's mark, the last published batch of a task, with the offset log.

A sink is ahead of a log that was restored from a backup or copied: new batches of that log would be
taken for published ones and skipped. A sink is behind the log if the sink itself was restored.
"""

from collections.abc import Callable
from typing import NamedTuple

from ....events.commits import CommitId
from ....events.model import Resource, Token
from ..spi.errors import SinkBroken
from ..spi.sink import TaskOwnership


class PublishedBatch(NamedTuple):
    """The id of a published batch of a task; later batches compare greater."""

    token: Token
    batch: int

    @classmethod
    def of(cls, commit_id: CommitId) -> "PublishedBatch":
        """Return the batch of a commit."""
        return cls(commit_id.token, commit_id.batch)

    def __str__(self) -> str:
        """Return the batch as messages name it."""
        return f"batch {self.batch} of token {self.token}"


def is_ahead(marked: PublishedBatch, last: CommitId | None) -> bool:
    """Return whether a mark is later than the task's last commit in the log."""
    return last is None or PublishedBatch.of(last) < marked


def is_behind(marked: PublishedBatch, published: PublishedBatch | None) -> bool:
    """Return whether a mark is earlier than a batch that is known to be published."""
    return published is not None and marked < published


def refuse_other_log(
    ownership: TaskOwnership,
    marked: PublishedBatch,
    sink: str,
    remedy: str,
    to_use_older: Callable[[], str] | None = None,
) -> None:
    """Raise `SinkBroken` if the log or the sink was restored from an older state.

    `sink` names the sink in messages; `remedy` says how a user removes the mark. `to_use_older`
    returns what to do to go on with an older log; None: remove the mark, and have rows twice.
    """
    if is_ahead(marked, ownership.last):
        last = (
            f"none after {PublishedBatch.of(ownership.last)}" if ownership.last else "none of them"
        )
        what = to_use_older() if to_use_older else f"if duplicate rows are acceptable, {remedy}"
        raise SinkBroken(
            f"{sink} is newer than this log: it has {ownership.task} up to {marked}, and the log "
            f"knows of {last}, so the log was restored from a backup or copied. Nothing was "
            f"written or removed. Use the newer log; or, {what}"
        )
    published = PublishedBatch.of(ownership.published) if ownership.published else None
    if is_behind(marked, published):
        raise older_sink(sink, ownership.task, marked, published, remedy)


def older_sink(
    sink: str, task: Resource, marked: PublishedBatch, published: object, remedy: str
) -> SinkBroken:
    """Return the error of a sink that has lost a batch, which was published there."""
    return SinkBroken(
        f"{sink} is older than this log: {published} of {task} was published there, but it has "
        f"none after {marked}. Nothing more is written to it. Restore the newer data; or, to "
        f"continue without it, {remedy}"
    )
