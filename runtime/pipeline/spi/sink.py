"""Where the rows of a task go: each batch is staged, committed to the log, then published.

All methods of one object are called from one thread.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from ....events.commits import CommitId, Manifest
from ....events.model import Resource, Token
from .rows import ArrowSchema, ArrowTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Rows = TypeVar("Rows", "DataFrame", ArrowTable)
"""What a sink takes; what a source gives is made into it."""


@dataclass(frozen=True, slots=True)
class Tenure:
    """A task that begins to work under a token, and what its log knows of its commits."""

    task: Resource
    token: Token
    last: CommitId | None
    """Its last commit, None if it never made one."""

    published: CommitId | None = None
    """The last commit that left something in the sink, if that is known to be published."""

    log: str = ""
    """What tells the log from its copies: its place."""


class Sink(ABC, Generic[Rows]):
    """Where the rows go, in two steps: staged aside, then put in place once they count."""

    takes_arrow: ClassVar[bool] = False
    """Whether `stage` wants an Arrow table, which the worker holds, instead of a frame."""

    @property
    def counts_rows(self) -> bool:
        """Whether `stage` fills in `Manifest.rows`; else the pipeline counts and fills it in."""
        return False

    @property
    def writes_at_once(self) -> bool:
        """Whether batches are put in place before they count, by `write`: at least once.

        They are staged all the same where a bad row of theirs is looked for.
        """
        return False

    def acquire(self, tenure: Tenure) -> None:  # not every sink can tell
        """Take the sink for a task, before anything is staged or published under its token.

        Raises `SinkAway`, or `SinkBroken` if the sink is not this log's to write to.
        """

    def prepare(self, schema: ArrowSchema) -> None:  # most need not
        """Create or change the target, so that rows of this schema fit into it.

        Called after `acquire` and before a batch is staged, once for each schema that differs
        from the one before. May be repeated, also by another task at once; batches of an earlier
        schema may still be to publish. Raises `SchemaRefused` if the target must stay as it is, or
        `SinkAway`.
        """

    @abstractmethod
    def stage(self, rows: Rows, commit_id: CommitId, input_bytes: int) -> Manifest:
        """Write a batch, in one Spark job, where no reader looks; replaces an earlier attempt.

        When it returns, what it wrote survives a crash of the machine. What `publish` has to know
        goes into the manifest; one whose `files` is 0 is not published. Raises `SinkAway`.
        """

    def write(self, rows: Rows, commit_id: CommitId, input_bytes: int) -> Manifest:
        """Put a batch in place at once, where `writes_at_once`; raises as `stage` does.

        Returns a manifest without files: nothing is left to publish. What an attempt that raises
        has left there may come again.
        """
        raise NotImplementedError(f"{type(self).__name__} only stages")

    @abstractmethod
    def publish(self, manifest: Manifest, commit_id: CommitId, sequence: int) -> None:
        """Put a committed batch in place, durably, all of it, or raise.

        Idempotent, finishes what another began and died over, and any number may do it at once.
        The manifest may be older than this sink's config: it alone says where things are.

        `sequence` is the batch's place in the group's offset log, from 0: each attempt at a batch
        is given the same one, whoever makes it, and each later commit of the task, under any token,
        a higher one, with gaps. A log that was restored from a copy, or begun anew, may give one
        again.
        """

    @abstractmethod
    def discard(self, commit_id: CommitId) -> None:
        """Remove what was staged for a batch that will not count; nothing there is fine."""

    @abstractmethod
    def sweep(self, resource: Resource, token: Token) -> None:
        """Remove what a task staged under this token and older ones.

        Called between batches, when all that was committed is published, so that no commit
        names what goes; again and again, since a former owner that hung may stage late.
        """

    def close(self) -> None:
        """Let go of what it holds; called once, when the task is over."""
