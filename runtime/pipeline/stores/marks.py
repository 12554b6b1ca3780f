"""Comparison of a sink's mark, the last published batch of a task, with the offset log.

A sink is ahead of a log that was restored from a backup or copied: new batches of that log would be
taken for published ones and skipped. A sink is behind the log if the sink itself was restored.
"""

from typing import NamedTuple

from ....events.commits import CommitId
from ....events.model import Token
from ..spi.errors import SinkBroken
from ..spi.sink import Tenure


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
    """Tell whether a mark is later than the task's last commit in the log."""
    return last is None or PublishedBatch.of(last) < marked


def refuse_other_log(tenure: Tenure, marked: PublishedBatch, sink: str, remedy: str) -> None:
    """Raise `SinkBroken` if the log or the sink was restored from an older state.

    `sink` names the sink in messages; `remedy` says how a user removes the mark.
    """
    published = tenure.published
    if is_ahead(marked, tenure.last):
        raise SinkBroken(
            f"{sink} is newer than this log: it has {tenure.task} up to {marked}, which the log "
            "does not know, so the log was restored from a backup or copied. Nothing was written. "
            f"Use the newer log; or, if duplicate rows are acceptable, {remedy}"
        )
    if published is not None and PublishedBatch.of(published) > marked:
        raise SinkBroken(
            f"{sink} is older than this log: {PublishedBatch.of(published)} of {tenure.task} was "
            f"published, but the sink has none after {marked}. Nothing was written. Restore the "
            f"newer data; or, to continue without it, {remedy}"
        )
