"""The shapes of the offset log's records: a commit's id lies there in one piece, with its token.

What `wire.py` says of shapes holds for these as well.
"""

from typing import Self

import msgspec

from ..commits import (
    NO_COST,
    Advance,
    Commit,
    CommitId,
    Committed,
    Cost,
    Lag,
    Manifest,
    TaskProgress,
)
from ..model import Token


class CommitIdWire(msgspec.Struct):
    """Which batch of which task, under which token."""

    connector: str
    task: int
    grant_epoch: int
    generation: int
    batch: int

    @classmethod
    def of(cls, commit_id: CommitId) -> Self:
        """Return the form of a commit's id."""
        return cls(commit_id.connector, commit_id.task, *commit_id.token, commit_id.batch)

    def to_commit_id(self) -> CommitId:
        """Return the commit's id."""
        token = Token(self.grant_epoch, self.generation)
        return CommitId(self.connector, self.task, token, self.batch)


class CommittedWire(msgspec.Struct):
    """Key type 24: the fields of the commit, and when it was logged."""

    commit_id: CommitIdWire
    advances: tuple[Advance, ...]
    manifest: Manifest
    rows_in: int
    time_ms: int = 0
    lag: Lag | None = None
    skipped: int = 0
    cost: Cost = NO_COST

    @classmethod
    def of(cls, record: Committed) -> Self:
        commit, commit_id = record.commit, CommitIdWire.of(record.commit_id)
        return cls(
            commit_id,
            commit.advances,
            commit.manifest,
            commit.rows_in,
            record.time_ms,
            commit.lag,
            commit.skipped,
            commit.cost,
        )

    def to_record(self) -> Committed:
        commit_id = self.commit_id.to_commit_id()
        done = self.rows_in, self.lag, self.skipped, self.cost
        commit = Commit(commit_id, self.advances, self.manifest, *done)
        return Committed(commit, self.time_ms)


class TaskProgressWire(msgspec.Struct):
    """Key type 25."""

    last: CommitIdWire
    batches: int
    rows_in: int
    rows_out: int
    bytes_out: int
    time_ms: int = 0
    lag: Lag | None = None
    filled: CommitIdWire | None = None
    skipped: int = 0
    dead_letters: int = 0
    cost: Cost = NO_COST

    @classmethod
    def of(cls, record: TaskProgress) -> Self:
        return cls(
            CommitIdWire.of(record.last),
            record.batches,
            record.rows_in,
            record.rows_out,
            record.bytes_out,
            record.time_ms,
            record.lag,
            CommitIdWire.of(record.filled) if record.filled else None,
            record.skipped,
            record.dead_letters,
            record.cost,
        )

    def to_record(self) -> TaskProgress:
        fields = msgspec.structs.asdict(self)
        fields["last"] = self.last.to_commit_id()
        fields["filled"] = self.filled.to_commit_id() if self.filled else None
        return TaskProgress(**fields)
