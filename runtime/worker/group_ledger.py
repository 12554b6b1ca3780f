"""The tasks' way to the offset log: reads from the log itself, commits through the group.

Task threads wait here; the worker's actor carries what waits to the group, all of it in one
message, with one message on its way at a time.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from ...actors.messages.errors import Error
from ...actors.messages.work import CommitOffsets, CommitReply, CommitVerdict
from ...events import records
from ...events.catalogue import entry_key
from ...events.entries.codec import decode
from ...events.entries.logs import OFFSETS
from ...events.log.errors import LogError
from ...events.log.reader import LogReader
from ...events.model import Commit, CommitId, Document, Resource, Resources, identity
from ..tasks.ledger import Fenced, LedgerUnavailable

ANSWER_SECONDS = 5.0
REFUSED_SECONDS = 1.0
"""How long nothing is carried to a group that cannot write it down."""


@dataclass(frozen=True, slots=True)
class CommitsWait:
    """To the worker's actor: there is something to carry to the group."""


class GroupLedger:
    """A `Ledger` behind which the group's actor stands; `carry` and `settle` are the actor's."""

    def __init__(
        self,
        group_id: str,
        member_id: str,
        offsets: Path,
        wake: Callable[[CommitsWait], None],
        cluster_id: str = "",
    ) -> None:
        self.cluster_id = cluster_id
        self._group_id = group_id
        self._member_id = member_id
        self._path = offsets
        self._wake = wake
        self._lock = Lock()
        self._reading = Lock()
        self._reader: LogReader | None = None
        self._waiting: dict[CommitId, tuple[Commit, Future[CommitVerdict]]] = {}
        self._carried: dict[CommitId, tuple[Commit, Future[CommitVerdict]]] = {}
        self._published: list[CommitId] = []
        self._carried_published: tuple[CommitId, ...] = ()
        self._is_carrying = False
        self._number = 0
        self._pause_until = 0.0
        """When something may be carried again, on the monotonic clock."""

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
        found = self._scan(records.Offset, (connector,))
        return {
            identity(record.partition): record.offset
            for record in found
            if isinstance(record, records.Offset)
        }

    def unpublished(self, connector: str, task: int) -> Sequence[Commit]:
        """Return what is committed but not yet known to be published, oldest first."""
        found = self._scan(records.Committed, (connector, task))
        return [record.commit for record in found if isinstance(record, records.Committed)]

    def progress(self, connector: str, task: int) -> records.TaskProgress | None:
        """Return what a task ever committed, published or not; None: nothing."""
        found = self._scan(records.TaskProgress, (connector, task))
        return next((each for each in found if isinstance(each, records.TaskProgress)), None)

    def tasks_with_unpublished(self) -> Resources:
        """Return the tasks of which any commit is not yet known to be published."""
        found = (
            record.commit
            for record in self._scan(records.Committed, ())
            if isinstance(record, records.Committed)
        )
        return frozenset(Resource(*commit.commit_id[:2]) for commit in found)

    def commit(self, commit: Commit) -> None:
        """Make a batch count; raises `Fenced`, or `LedgerUnavailable` without an answer in time."""
        answer: Future[CommitVerdict] = Future()
        with self._lock:
            self._waiting[commit.commit_id] = commit, answer
        self._wake(CommitsWait())
        try:
            verdict = answer.result(ANSWER_SECONDS)
        except FutureTimeoutError:
            raise LedgerUnavailable("the group did not answer in time") from None
        if verdict.error is not Error.NONE:
            raise Fenced(verdict.message)

    def published(self, commit_id: CommitId) -> None:
        """Tell that a batch's files are in place."""
        with self._lock:
            self._published.append(commit_id)
        self._wake(CommitsWait())

    # -- for the actor, on its own thread

    def carry(self) -> CommitOffsets | None:
        """Return what is to be sent now, None if nothing is or something is on its way."""
        with self._lock:
            if self._is_carrying or not (self._waiting or self._published):
                return None
            if time.monotonic() < self._pause_until:
                return None
            self._is_carrying = True
            self._carried, self._waiting = self._waiting, {}
            self._carried_published, self._published = tuple(self._published), []
            commits = tuple(commit for commit, _ in self._carried.values())
            self._number += 1
            return CommitOffsets(
                self._group_id, self._member_id, commits, self._carried_published, self._number
            )

    def settle(self, reply: CommitReply) -> None:
        """Hand the verdicts to those who wait; an answer to what was given up is ignored."""
        with self._lock:
            if reply.number != self._number or not self._is_carrying:
                return
        if reply.error is not Error.NONE:
            self._pause_until = time.monotonic() + REFUSED_SECONDS
            self._give_up(reply.message)
            return
        with self._lock:
            self._is_carrying = False
            carried, self._carried = self._carried, {}
            self._carried_published = ()
        for verdict in reply.verdicts:
            _, answer = carried.pop(verdict.commit_id, (None, None))
            if answer is not None:
                answer.set_result(verdict)

    def lose(self) -> None:
        """Give up what is on its way: the tasks ask again, and are told the same again."""
        self._give_up("the group's actor went away")

    def _give_up(self, why: str) -> None:
        with self._lock:
            self._is_carrying = False
            carried, self._carried = self._carried, {}
            self._published = [*self._carried_published, *self._published]
            self._carried_published = ()
        for _, answer in carried.values():
            answer.set_exception(LedgerUnavailable(why))

    def close(self) -> None:
        """Let go of the log."""
        with self._reading:
            if self._reader is not None:
                self._reader.close()
                self._reader = None

    def _scan(self, kind: type, key: tuple[str | int, ...]) -> list[records.Record]:
        try:
            with self._reading:
                if self._reader is None:
                    self._reader = LogReader.open(self._path, self._group_id, OFFSETS)
                entries = self._reader.scan(*entry_key(kind, key))
        except LogError as error:
            raise LedgerUnavailable(f"the offset log cannot be read now: {error}") from error
        entries.sort()
        return [record for entry in entries if (record := decode(entry)) is not None]
