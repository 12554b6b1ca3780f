"""The tasks' access to the offset log: they read it directly, and commit through the group.

A task thread blocks in `commit` while the worker sends its commit to the group.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from pathlib import Path
from threading import Lock
from typing import Final, TypeVar

from ....actors.messages.errors import Error
from ....events.catalogue import TYPE_OF, commit_key, entry_key
from ....events.commits import Commit, CommitId, Committed, Document, Offset, TaskProgress, identity
from ....events.entries.codec import OFFSETS, decode
from ....events.log.errors import LogError, TrimmedError
from ....events.log.frame import Entry
from ....events.log.reader import LogReader
from ....events.model import Key, Resource, Resources
from ...pipeline.tasks.ledger import Fenced, LedgerUnavailable, Unpublished
from .core.contract import AnswerCommit, BatchPublished, CommitAsked, Forgotten

ANSWER_SECONDS = 5.0
T = TypeVar("T")


class GroupLedger:
    """A `Ledger` of one worker: tasks call it from their threads, the actor delivers answers."""

    def __init__(
        self,
        group_id: str,
        offsets: Path,
        hand_over: Callable[[CommitAsked | BatchPublished | Forgotten], None],
        cluster_id: str = "",
        store_id: str = "",
    ) -> None:
        """Use the offset log at a path; `hand_over` passes commits to the worker, thread-safe.

        `store_id` is that of the store whose copy the log is; empty: it is no copy.
        """
        self.cluster_id, self._store_id = cluster_id, store_id
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
        self._unpublished_tasks = UnpublishedTasks()

    # -- for tasks, from any thread

    @property
    def place(self) -> str:
        """The device and inode of the log, which distinguish it from its copies.

        The copies of a log in a store are one log: for them it is the store and the group.
        """
        if self._store_id:
            return f"{self._store_id}/{self._group_id}"
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

    def end(self) -> int | None:
        """Return the end of the log at once; None where that cannot be: it is not open, or read."""
        if not self._reading.acquire(blocking=False):
            return None
        try:
            return None if self._reader is None else self._reader.end()
        except LogError:
            return None
        finally:
            self._reading.release()

    def tasks_with_unpublished(self) -> Resources:
        """Return the tasks that have commits which are not recorded as published."""
        return self._read(self._unpublished_tasks.catch_up)

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
        return sorted(self._read(lambda reader: reader.scan(*entry_key(kind, key))))

    def _read(self, what: Callable[[LogReader], T]) -> T:
        """Read the log, which is opened if that is not done; raises `LedgerUnavailable`."""
        try:
            with self._reading:
                if self._reader is None:
                    self._reader = LogReader.open(self._path, self._group_id, OFFSETS)
                return what(self._reader)
        except LogError as error:
            raise LedgerUnavailable(f"the offset log cannot be read now: {error}") from error


_COMMITTED: Final = TYPE_OF[Committed].number


class UnpublishedTasks:
    """The tasks that have unpublished commits, as of the last look at the offset log.

    Only what was written since is read: the log keeps the keys of thousands of commits that are
    published, and they are looked for every second.
    """

    def __init__(self) -> None:
        self._next = -1
        """The offset of the first entry that was not read yet; -1: none was read."""
        self._tasks: dict[bytes, Resource] = {}
        """The task of each unpublished commit, by the commit's key."""

    def catch_up(self, log: LogReader) -> Resources:
        """Read new entries, and return the tasks; raises `LogError`."""
        try:
            if self._next < 0:
                self._begin(log)
            for entries in log.tail(self._next):
                self._take(entries)
                self._next = entries[-1].offset + 1
        except TrimmedError:
            self._begin(log)
        return frozenset(self._tasks.values())

    def _begin(self, log: LogReader) -> None:
        end = log.end()  # first: what is written meanwhile is read again
        found = log.scan(_COMMITTED)
        self._tasks.clear()
        self._take(found)
        self._next = end  # last: a read that failed is repeated

    def _take(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            record = decode(entry) if entry.type == _COMMITTED else None
            if isinstance(record, Committed):
                self._tasks[entry.key] = Resource(*record.commit.commit_id[:2])
            elif record is not None:
                self._tasks.pop(entry.key, None)
