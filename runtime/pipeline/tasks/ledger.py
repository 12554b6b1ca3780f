"""What a task may ask of the transaction log that its batches are committed to.

The group's actor is behind it. A commit is the one point where a batch counts: the files
staged before it are waste if it is refused, and real, for the task's next owner too, if it is not.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from ....events.commits import Commit, CommitId, Document, TaskProgress


class Fenced(Exception):  # noqa: N818  # a verdict, not a mistake
    """The token is no longer current, or an advance does not start at the logged offset.

    Nothing of the batch counts: the task must end, and discard what it staged.
    """


class LedgerUnavailable(Exception):  # noqa: N818  # a state of the world, not a mistake
    """The outcome is unknown, because the coordinator is away.

    Send the same commit again until there is an answer; never assume one.
    """


class Unpublished(NamedTuple):
    """A batch that counts and is not known to be published, and its sequence number."""

    commit: Commit
    sequence: int


class Ledger(Protocol):
    """The offset log, as one task sees it; every method may be called from any thread.

    `offsets`, `settled`, `unpublished` and `progress` must know of every commit that was accepted
    before the caller's token became current: a task sweeps what no commit names, so a view that
    lags would make it sweep rows that count. They raise `LedgerUnavailable` if they cannot promise
    that now.
    """

    @property
    def cluster_id(self) -> str:
        """What the cluster is known by whose log it is."""
        ...

    @property
    def place(self) -> str:
        """What tells the log from its copies."""
        ...

    def offsets(self, connector: str) -> Mapping[str, Document]:
        """Return the logged offset of each source partition, keyed by its identity."""
        ...

    def settled(self, connector: str) -> Mapping[str, Document]:
        """Return those of them that no commit has moved which is not known to be published."""
        ...

    def unpublished(self, connector: str, task: int) -> Sequence[Unpublished]:
        """Return what is committed but not yet known to be published, oldest first."""
        ...

    def progress(self, connector: str, task: int) -> TaskProgress | None:
        """Return what a task ever committed, published or not; None: nothing."""
        ...

    def commit(self, commit: Commit) -> int | None:
        """Make a batch count, durably; return its sequence number, None: nothing to publish.

        A commit id that was accepted before is accepted again, changes nothing, and has the same
        number. There is nothing to publish if nothing was staged, or if another has published it.
        Raises `Fenced` or `LedgerUnavailable`.
        """
        ...

    def published(self, commit_id: CommitId) -> None:
        """Tell that a batch's files are in place; if this is lost, they are put there again."""
        ...
