"""The tasks' access to the offset log: they read it directly, and commit through the group.

A task thread blocks in `commit` while the worker sends its commit to the group.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from pathlib import Path
from threading import Lock

from ....actors.messages.errors import Error
from ....events.catalogue import commit_key, entry_key
from ....events.commits import Commit, CommitId, Committed, Document, Offset, TaskProgress, identity
from ....events.entries.codec import OFFSETS, decode
from ....events.log.errors import LogError
from ....events.log.frame import Entry
from ....events.log.reader import LogReader
from ....events.model import Key, Resource, Resources
from ...pipeline.tasks.ledger import Fenced, LedgerUnavailable, Unpublished
from .core.contract import AnswerCommit, BatchPublished, CommitAsked, Forgotten

ANSWER_SECONDS = 5.0


class GroupLedger:
    """A `Ledger` of one worker: tasks call it from their threads, the actor delivers answers."""

    def __init__(
        self,
        group_id: str,
        offsets: Path,
        hand_over: Callable[[CommitAsked | BatchPublished | Forgotten], None],
        cluster_id: str = "",
    ) -> None:
        """Use the offset log at a path; `hand_over` passes commits to the worker, thread-safe."""
        self.cluster_id = cluster_id
        self._group_id = group_id
        self._path = offsets
        self._hand_over = hand_over
        self._waits = Lock()
        """Held while `_answers` is used."""
        self._answers: dict[CommitId, Future[AnswerCommit]] = {}
        """The pending answers, by commit."""
        self._reading = Lock()
        """Held while `_reader` is used; the first read opens it."""
        self._reader: LogReader | None = None

    # -- for tasks, from any thread

    @property
    def place(self) -> str:
        """The device and inode of the log, which distinguish it from its copies."""
        try:
            found = self._path.stat()
        except OSError as error:
            raise LedgerUnavailable(f"the offset log is not there: {error}") from None
        return f"{found.st_dev}:{found.st_ino}"

    def offsets(self, connector: str) -> Mapping[str, Document]:
        """Return the logged offset of each source partition, keyed by its identity."""
        found = map(decode, self._scan(Offset, (connector,)))
        return {
            identity(record.partition): record.offset
            for record in found
            if isinstance(record, Offset)
        }

    def settled(self, connector: str) -> Mapping[str, Document]:
        """Return the offsets without those that an unpublished commit has changed."""
        offsets = dict(self.offsets(connector))  # first: a commit published meanwhile is excluded
        for each in self._unpublished((connector,)):
            for advance in each.commit.advances:
                offsets.pop(identity(advance.partition), None)
        return offsets

    def unpublished(self, connector: str, task: int) -> Sequence[Unpublished]:
        """Return the commits of a task that are not recorded as published, oldest first."""
        return self._unpublished((connector, task))

    def progress(self, connector: str, task: int) -> TaskProgress | None:
        """Return the progress of a task over all its commits, published or not; None: no commit."""
        found = map(decode, self._scan(TaskProgress, (connector, task)))
        return next((each for each in found if isinstance(each, TaskProgress)), None)

    def tasks_with_unpublished(self) -> Resources:
        """Return the tasks that have commits which are not recorded as published."""
        return frozenset(Resource(*each.commit.commit_id[:2]) for each in self._unpublished(()))

    def commit(self, commit: Commit) -> int | None:
        """Commit a batch; return its sequence number, None if it has nothing to publish.

        Raises `Fenced`, or `LedgerUnavailable` if no answer came in time. The number is the
        position of the batch's `Committed` in the offset log.
        """
        self._ask(commit)
        if commit.manifest.is_empty:
            return None
        entry = next(iter(self._scan(Committed, commit_key(commit.commit_id))), None)
        return None if entry is None else entry.offset

    def published(self, commit_id: CommitId) -> None:
        """Report that a batch is published: its files are in place."""
        self._hand_over(BatchPublished(commit_id))

    def forgotten(self, connector: str, config_ms: int) -> None:
        """Report that the external state of a deleted connector is gone."""
        self._hand_over(Forgotten(connector, config_ms))

    # -- for the actor, on its own thread

    def answer(self, answer: AnswerCommit) -> None:
        """Deliver the result of a commit to the task that waits for it, if it still does."""
        with self._waits:
            waiting = self._answers.pop(answer.commit_id, None)
        if waiting is not None:
            waiting.set_result(answer)

    def give_up(self, why: str) -> None:
        """Wake all waiting tasks: the outcome of their commits is unknown."""
        with self._waits:
            waiting, self._answers = self._answers, {}
        for commit_id, each in waiting.items():
            each.set_result(AnswerCommit(commit_id, None, why))

    def close(self) -> None:
        """Close the log."""
        with self._reading:
            if self._reader is not None:
                self._reader.close()
                self._reader = None

    def _ask(self, commit: Commit) -> None:
        """Pass a commit to the worker, and wait for its result."""
        waiting: Future[AnswerCommit] = Future()
        with self._waits:
            self._answers[commit.commit_id] = waiting
        self._hand_over(CommitAsked(commit))
        try:
            answer = waiting.result(ANSWER_SECONDS)
        except FutureTimeoutError:
            raise LedgerUnavailable("the group did not answer in time") from None
        finally:
            with self._waits:
                if self._answers.get(commit.commit_id) is waiting:
                    del self._answers[commit.commit_id]
        if answer.verdict is None:
            raise LedgerUnavailable(answer.why)
        if answer.verdict.error is not Error.NONE:
            raise Fenced(answer.verdict.message)

    def _unpublished(self, key: Key) -> list[Unpublished]:
        found = ((decode(entry), entry.offset) for entry in self._scan(Committed, key))
        return [Unpublished(each.commit, at) for each, at in found if isinstance(each, Committed)]

    def _scan(self, kind: type, key: Key) -> list[Entry]:
        """Return the latest entries of a type with this key prefix, in log order."""
        try:
            with self._reading:
                if self._reader is None:
                    self._reader = LogReader.open(self._path, self._group_id, OFFSETS)
                return sorted(self._reader.scan(*entry_key(kind, key)))
        except LogError as error:
            raise LedgerUnavailable(f"the offset log cannot be read now: {error}") from error
