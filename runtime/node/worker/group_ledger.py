"""The tasks' way to the offset log: reads from the log itself, commits through the group.

Task threads wait here, while the worker carries their commits to the group.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from pathlib import Path
from threading import Lock

from ....actors.messages.errors import Error
from ....events.catalogue import entry_key
from ....events.commits import Commit, CommitId, Committed, Document, Offset, TaskProgress, identity
from ....events.entries.codec import OFFSETS, decode
from ....events.log.errors import LogError
from ....events.log.reader import LogReader
from ....events.model import Resource, Resources
from ....events.records import Record
from ...pipeline.tasks.ledger import Fenced, LedgerUnavailable
from .core.contract import AnswerCommit, BatchPublished, CommitAsked

ANSWER_SECONDS = 5.0


class GroupLedger:
    """A `Ledger` behind which the group's actor stands; `answer` is for the worker's actor."""

    def __init__(
        self,
        group_id: str,
        offsets: Path,
        hand_over: Callable[[CommitAsked | BatchPublished], None],
        cluster_id: str = "",
    ) -> None:
        """Read the log at a path; `hand_over` gets commits to the worker, from any thread."""
        self.cluster_id = cluster_id
        self._group_id = group_id
        self._path = offsets
        self._hand_over = hand_over
        self._waits = Lock()
        """Held while `_answers` is used."""
        self._answers: dict[CommitId, Future[AnswerCommit]] = {}
        """What each task waits for that has asked for a commit."""
        self._reading = Lock()
        """Held while `_reader` is used, which is opened by the first task that reads."""
        self._reader: LogReader | None = None

    # -- for tasks, from any thread

    @property
    def place(self) -> str:
        """What tells the log from its copies: no two folders have the same number at once."""
        try:
            found = self._path.stat()
        except OSError as error:
            raise LedgerUnavailable(f"the offset log is not there: {error}") from None
        return f"{found.st_dev}:{found.st_ino}"

    def offsets(self, connector: str) -> Mapping[str, Document]:
        """Return the logged offset of each source partition, keyed by its identity."""
        found = self._scan(Offset, (connector,))
        return {
            identity(record.partition): record.offset
            for record in found
            if isinstance(record, Offset)
        }

    def unpublished(self, connector: str, task: int) -> Sequence[Commit]:
        """Return what is committed but not yet known to be published, oldest first."""
        found = self._scan(Committed, (connector, task))
        return [record.commit for record in found if isinstance(record, Committed)]

    def progress(self, connector: str, task: int) -> TaskProgress | None:
        """Return what a task ever committed, published or not; None: nothing."""
        found = self._scan(TaskProgress, (connector, task))
        return next((each for each in found if isinstance(each, TaskProgress)), None)

    def tasks_with_unpublished(self) -> Resources:
        """Return the tasks of which any commit is not yet known to be published."""
        found = (
            record.commit for record in self._scan(Committed, ()) if isinstance(record, Committed)
        )
        return frozenset(Resource(*commit.commit_id[:2]) for commit in found)

    def commit(self, commit: Commit) -> None:
        """Make a batch count; raises `Fenced`, or `LedgerUnavailable` if no answer came in time."""
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

    def published(self, commit_id: CommitId) -> None:
        """Tell that a batch's files are in place."""
        self._hand_over(BatchPublished(commit_id))

    # -- for the actor, on its own thread

    def answer(self, answer: AnswerCommit) -> None:
        """Tell the task that waits what became of its commit, if one still does."""
        with self._waits:
            waiting = self._answers.pop(answer.commit_id, None)
        if waiting is not None:
            waiting.set_result(answer)

    def give_up(self, why: str) -> None:
        """Let no task wait any longer: what became of its commit is unknown."""
        with self._waits:
            waiting, self._answers = self._answers, {}
        for commit_id, each in waiting.items():
            each.set_result(AnswerCommit(commit_id, None, why))

    def close(self) -> None:
        """Let go of the log."""
        with self._reading:
            if self._reader is not None:
                self._reader.close()
                self._reader = None

    def _scan(self, kind: type, key: tuple[str | int, ...]) -> list[Record]:
        try:
            with self._reading:
                if self._reader is None:
                    self._reader = LogReader.open(self._path, self._group_id, OFFSETS)
                entries = self._reader.scan(*entry_key(kind, key))
        except LogError as error:
            raise LedgerUnavailable(f"the offset log cannot be read now: {error}") from error
        entries.sort()
        return [record for entry in entries if (record := decode(entry)) is not None]
