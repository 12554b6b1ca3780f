"""The interface of the offset log for a task; the group's actor is behind it.

A batch counts from its commit on. If the commit is refused, its staged files are garbage. If it is
accepted, the staged files must be published, by this task or by its next owner.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from ....events.commits import Commit, CommitId, Document, TaskProgress


class Fenced(Exception):  # noqa: N818  # a verdict, not a mistake
    """The token is no longer current, or an advance does not start at the logged offset.

    Nothing of the batch counts: the task must end and discard its staged files.
    """


class LedgerUnavailable(Exception):  # noqa: N818  # a state of the world, not a mistake
    """The outcome is unknown, because the coordinator is away.

    Send the same commit again until there is an answer; never assume one.
    """


class Unpublished(NamedTuple):
    """A commit that is not recorded as published, with its sequence number."""

    commit: Commit
    sequence: int


class Ledger(Protocol):
    """The offset log for one task; every method may be called from any thread.

    `offsets`, `settled`, `unpublished` and `progress` must include every commit that was accepted
    before the caller's token became current. A task sweeps the staged files that no commit names,
    so a stale view would make it sweep committed rows. These methods raise `LedgerUnavailable` if
    they cannot guarantee that now.
    """

    @property
    def cluster_id(self) -> str:
        """The id of the cluster that the log belongs to."""
        ...

    @property
    def place(self) -> str:
        """The path of the log, which distinguishes it from its copies."""
        ...

    def offsets(self, connector: str) -> Mapping[str, Document]:
        """Return the logged offset of each source partition, keyed by its identity."""
        ...

    def settled(self, connector: str) -> Mapping[str, Document]:
        """Return the offsets of the partitions that no unpublished commit has advanced."""
        ...

    def unpublished(self, connector: str, task: int) -> Sequence[Unpublished]:
        """Return the commits that are not recorded as published, oldest first."""
        ...

    def progress(self, connector: str, task: int) -> TaskProgress | None:
        """Return the last commits of a task, published or not; None: it has none."""
        ...

    def commit(self, commit: Commit) -> int | None:
        """Make a batch count, durably; return its sequence number, None: nothing to publish.

        A commit id that was accepted before is accepted again, changes nothing, and returns the
        same number. There is nothing to publish if the batch has no staged files or is published.
        Raises `Fenced` or `LedgerUnavailable`.
        """
        ...

    def published(self, commit_id: CommitId) -> None:
        """Report that a batch is published; if this report is lost, it is published again."""
        ...
