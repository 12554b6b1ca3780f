"""Which batches count: the commit that makes staged work real (DATA_PLANE §3).

A commit is accepted iff its sender holds the task, its token is the current one, and each
of its steps starts at the logged offset. Repeating an accepted commit is accepted.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from ...events.catalogue import commit_key, offset_key
from ...events.commits import Commit, CommitId, Committed, Document, Offset, TaskProgress
from ...events.group import Group, token_of
from ...events.model import Key, Resource
from ...events.records import Record, Tombstone
from ..messages.errors import Error
from ..messages.work import CommitOffsets, CommitReply, CommitVerdict

REMEDY = "stop the task, which starts again from the logged offset where it is assigned"
"""What a fenced task is to do."""


class Logged(Protocol):
    """What the offset log says, uncommitted decisions of the same batch included."""

    def offset(self, connector: str, partition: Document) -> Document | None:
        """Return how far a source partition was read."""
        ...

    def progress(self, connector: str, task: int) -> TaskProgress | None:
        """Return what a task committed so far."""
        ...

    def is_unpublished(self, commit_id: CommitId) -> bool:
        """Tell whether a commit waits to be published."""
        ...


@dataclass(frozen=True, slots=True)
class CommitDecision:
    """The records for the offset log, and the reply once they are durable."""

    records: tuple[Record, ...]
    reply: CommitReply


def commit_offsets(
    group: Group, logged: Logged, command: CommitOffsets, now_ms: int
) -> CommitDecision:
    """Return what a member's commits lead to; each is accepted or refused by itself."""
    records: list[Record] = [
        Tombstone(Committed, commit_key(done))
        for done in command.published
        if logged.is_unpublished(done)
    ]
    verdicts: list[CommitVerdict] = []
    ahead = _Ahead(logged)
    for commit in command.commits:
        known = ahead.progress(commit.commit_id.connector, commit.commit_id.task)
        if known is not None and known.last == commit.commit_id:
            verdicts.append(CommitVerdict(commit.commit_id, Error.NONE))
        elif found := _flaw(group, ahead, command.member_id, commit):
            message = f"{found}; the batch does not count: {REMEDY}"
            verdicts.append(CommitVerdict(commit.commit_id, Error.FENCED, message))
        else:
            verdicts.append(CommitVerdict(commit.commit_id, Error.NONE))
            accepted = _accept(commit, known, now_ms)
            ahead.lay(accepted)
            records += accepted
    return CommitDecision(tuple(records), CommitReply(tuple(verdicts), command.number))


class _Ahead:
    """The log, and on top of it what the commits before in the same message led to."""

    def __init__(self, logged: Logged) -> None:
        self._logged = logged
        self._offsets: dict[Key, Document] = {}
        self._progress: dict[Key, TaskProgress] = {}

    def lay(self, accepted: Iterable[Record]) -> None:
        for record in accepted:
            if isinstance(record, Offset):
                self._offsets[offset_key(record.connector, record.partition)] = record.offset
            elif isinstance(record, TaskProgress):
                self._progress[record.last.connector, record.last.task] = record

    def offset(self, connector: str, partition: Document) -> Document | None:
        found = self._offsets.get(offset_key(connector, partition))
        return self._logged.offset(connector, partition) if found is None else found

    def progress(self, connector: str, task: int) -> TaskProgress | None:
        return self._progress.get((connector, task)) or self._logged.progress(connector, task)


def _flaw(group: Group, logged: _Ahead, member_id: str, commit: Commit) -> str:
    connector, task, token, batch = commit.commit_id
    current = token_of(group, member_id, Resource(connector, task))
    if current is None:
        return f"{member_id} does not hold {connector}-{task}"
    if current != token:
        return f"token {token} of {connector}-{task} is not the current {current}"
    known = logged.progress(connector, task)
    if known is not None and (known.last.token, known.last.batch) >= (token, batch):
        return f"batch {batch} of {connector}-{task} is not newer than {known.last.batch}"
    for advance in commit.advances:
        logged_at = logged.offset(connector, advance.partition)
        if logged_at != advance.start:
            return f"{advance.partition} is logged at {logged_at}, not at {advance.start}"
    return ""


def _accept(commit: Commit, known: TaskProgress | None, now_ms: int) -> list[Record]:
    connector = commit.commit_id.connector
    records: list[Record] = [
        Offset(connector, advance.partition, advance.end)
        for advance in commit.advances
        if advance.end is not None
    ]
    manifest = commit.manifest
    if manifest.files:
        records.append(Committed(commit, now_ms))
    records.append(
        TaskProgress(
            commit.commit_id,
            (known.batches if known else 0) + 1,
            (known.rows_in if known else 0) + commit.rows_in,
            (known.rows_out if known else 0) + manifest.rows,
            (known.bytes_out if known else 0) + manifest.bytes,
            now_ms,
            commit.lag,
            commit.commit_id if manifest.files else known.filled if known else None,
        )
    )
    return records
