"""What a sink says of a task's last batch, held against what the log says.

The sink is ahead of a log that was restored from a backup, or is a copy: batches that such a log
counts would be taken for ones that were published. It is behind the log if it was restored itself.
"""

from typing import NamedTuple

from ....events.commits import CommitId
from ....events.model import Token
from ..spi.errors import SinkBroken
from ..spi.sink import Tenure


class PublishedBatch(NamedTuple):
    """The last batch of a task that was published; later ones are greater."""

    token: Token
    batch: int

    @classmethod
    def of(cls, commit_id: CommitId) -> "PublishedBatch":
        """Return a batch by its commit."""
        return cls(commit_id.token, commit_id.batch)

    def __str__(self) -> str:
        """Spell it as people know batches."""
        return f"batch {self.batch} of token {self.token}"


def is_ahead(marked: PublishedBatch, last: CommitId | None) -> bool:
    """Tell whether a sink holds what its task's last commit in the log does not know of."""
    return last is None or PublishedBatch.of(last) < marked


def refuse_other_log(tenure: Tenure, marked: PublishedBatch, sink: str, remedy: str) -> None:
    """Raise `SinkBroken` if a mark is of a log that is newer than this one, or of an earlier state.

    `sink` names the sink, `remedy` says what makes it forget the mark.
    """
    known = tenure.published
    if is_ahead(marked, tenure.last):
        raise SinkBroken(
            f"{sink} is newer than this log: {tenure.task} was published up to {marked} there, "
            "which the log does not know, so it is an older one, restored or copied. Nothing was "
            f"written. Go on with the newer log; or, if rows may come again, {remedy}"
        )
    if known is not None and PublishedBatch.of(known) > marked:
        raise SinkBroken(
            f"{sink} is older than this log: {PublishedBatch.of(known)} of {tenure.task} was "
            f"published, and it knows of none after {marked}. Nothing was written. Bring the newer "
            f"data back; or, to go on without, {remedy}"
        )
