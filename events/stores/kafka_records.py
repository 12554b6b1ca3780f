"""The records of a log in Kafka, and which of them count (LOG.md §13). Nothing here knows Kafka.

A log is a topic of one partition with claims, commits and snapshots, and a topic of beats beside
it. The order of a topic decides: a claim counts if its epoch is above that of the last one, and any
other record if its claim is the last one before it. So whoever reads a topic comes to the same
result, and what a former owner sends later counts for nobody, however late it arrives. Records that
cannot be decoded count for nobody either.

Commits and snapshots are cut into parts, as Kafka limits records, and count with their last part.
A snapshot stands for all records before it, which are deleted: so it repeats the last claim.
"""

from collections.abc import Iterator
from hashlib import blake2b
from typing import Final, NamedTuple

from msgspec import MsgspecError, Struct
from msgspec.msgpack import Decoder, Encoder
from msgspec.structs import replace

from .port import Claimant, StoredCommit, StoreSnapshot

PART_BYTES: Final = 900_000
"""A record of a topic may have 1 MiB by default."""


class StoreClaim(Struct, frozen=True, array_like=True, tag="claim"):
    """A claim of the log, in both topics."""

    log_id: bytes
    """The identity of the log: that of its first claim counts."""
    epoch: int
    id: bytes
    """The identity of the claim, by which its records name it."""
    node: str
    address: str
    folder: str

    @property
    def claimant(self) -> Claimant:
        """The node that claims."""
        return Claimant(self.node, self.address, self.folder)


class CommitPart(Struct, frozen=True, array_like=True, tag="commit"):
    """A part of a commit."""

    claim: bytes
    base: int
    end: int
    part: int
    parts: int
    body: bytes


class SnapshotPart(Struct, frozen=True, array_like=True, tag="snapshot"):
    """A part of a snapshot."""

    claim: StoreClaim
    end: int
    part: int
    parts: int
    body: bytes


class OwnerBeat(Struct, frozen=True, array_like=True, tag="beat"):
    """A sign of life of an owner."""

    claim: bytes
    epoch: int


StoreRecord = StoreClaim | CommitPart | SnapshotPart | OwnerBeat
encode_record: Final = Encoder().encode
_decode: Final = Decoder(StoreRecord).decode


def decode_record(value: bytes | None) -> StoreRecord | None:
    """Return a record; None if it is none of ours, which counts for nobody."""
    try:
        return _decode(value or b"")
    except MsgspecError:
        return None


def commit_parts(claim: StoreClaim, commit: StoredCommit) -> list[bytes]:
    """Return the records of a commit."""
    base, end, body = commit
    bodies = [*_cut(body)]
    return [
        encode_record(CommitPart(claim.id, base, end, part, len(bodies), each))
        for part, each in enumerate(bodies)
    ]


def snapshot_parts(claim: StoreClaim, snapshot: StoreSnapshot) -> list[bytes]:
    """Return the records of a snapshot."""
    bodies = [*_cut(snapshot.body)]
    return [
        encode_record(SnapshotPart(claim, snapshot.end, part, len(bodies), each))
        for part, each in enumerate(bodies)
    ]


def _cut(body: bytes) -> Iterator[bytes]:
    for start in range(0, max(len(body), 1), PART_BYTES):
        yield body[start : start + PART_BYTES]


class StoreMark(NamedTuple):
    """A place in the topic behind a commit or snapshot, with what a reader has to know there."""

    offset: int
    """Of the last record before the place."""
    digest: bytes
    """Of that record: another one at its offset means another history."""
    claim: StoreClaim
    """The last claim before the place."""
    stored_bytes: int
    """The size of the commits before it, back to the last snapshot."""


pack_mark: Final = encode_record
_unpack_mark: Final = Decoder(StoreMark).decode


def unpack_mark(packed: bytes) -> StoreMark | None:
    """Return a mark; None if it is not one of a topic."""
    try:
        return _unpack_mark(packed)
    except MsgspecError:
        return None


def digest_of(value: bytes | None) -> bytes:
    """Return the digest of a record."""
    return blake2b(value or b"", digest_size=8).digest()


class MissingCommitsError(Exception):
    """A commit counts whose beginning is not the end of what counted before it."""


class LogFold:
    """The state of a log behind the records of its topic, taken one after the other."""

    def __init__(
        self, claim: StoreClaim | None = None, end: int = 0, stored_bytes: int = 0
    ) -> None:
        self.claim = claim
        """The last claim that counts, with the identity of the log's first one."""
        self.end = end
        """The end of what counts."""
        self.stored_bytes = stored_bytes
        """The size of the commits since the last snapshot."""
        self.ends: dict[bytes, int] = {}
        """The end of what counted when a claim was succeeded, by its identity."""
        self._parts: list[CommitPart | SnapshotPart] = []
        """Those of a commit or snapshot whose last part did not come yet."""

    def is_of_owner(self, record: StoreRecord | None) -> bool:
        """Return whether a record, which was folded, is of the last claim."""
        if self.claim is None or record is None:
            return False
        if isinstance(record, StoreClaim):
            return record.id == self.claim.id
        claim = record.claim if isinstance(record.claim, bytes) else record.claim.id
        return claim == self.claim.id

    def take(self, record: StoreRecord | None) -> StoredCommit | StoreSnapshot | None:
        """Fold the next record; return what counts with it. Raises `MissingCommitsError`."""
        if isinstance(record, StoreClaim):
            self._succeed(record)
        elif isinstance(record, CommitPart):
            if self.claim is not None and record.claim == self.claim.id and self._joins(record):
                return self._commit(record)
        elif isinstance(record, SnapshotPart):
            self.claim = self.claim or record.claim
            if record.claim.id == self.claim.id and self._joins(record):
                return self._snapshot(record)
        return None

    def _succeed(self, claim: StoreClaim) -> None:
        if self.claim is None:
            self.claim = claim
        elif claim.epoch > self.claim.epoch:
            self.ends[self.claim.id] = self.end
            self.claim = replace(claim, log_id=self.claim.log_id)
            self._parts = []

    def _joins(self, record: CommitPart | SnapshotPart) -> bool:
        """Return whether a part is the last one of a whole, which `_parts` has then."""
        if record.part == 0:
            self._parts = []
        elif not self._follows(record):
            self._parts = []
            return False
        self._parts.append(record)
        return record.part == record.parts - 1

    def _follows(self, record: CommitPart | SnapshotPart) -> bool:
        if len(self._parts) != record.part:
            return False
        before = self._parts[-1]
        return (type(before), before.end, before.parts) == (type(record), record.end, record.parts)

    def _body(self) -> bytes:
        parts, self._parts = self._parts, []
        return parts[0].body if len(parts) == 1 else b"".join([each.body for each in parts])

    def _commit(self, last: CommitPart) -> StoredCommit | None:
        body = self._body()
        if last.base > self.end:
            raise MissingCommitsError(f"the entries {self.end} to {last.base} are missing")
        if last.base < self.end:
            return None
        self.end = last.end
        self.stored_bytes += len(body)
        return StoredCommit(last.base, last.end, body)

    def _snapshot(self, last: SnapshotPart) -> StoreSnapshot | None:
        body, known = self._body(), self.end
        if known and last.end > known:
            raise MissingCommitsError(f"the entries {known} to {last.end} are missing")
        self.end, self.stored_bytes = max(known, last.end), 0
        return StoreSnapshot(last.end, body) if last.end > known else None


class BeatsFold:
    """The last claim that the topic of beats tells of, read from anywhere on."""

    def __init__(self) -> None:
        self.epoch = 0
        self.claim = b""
        """The identity of the last claim."""

    def take(self, record: StoreRecord | None) -> bool:
        """Fold the next record; return whether it is of the last owner, or of a new one."""
        if isinstance(record, StoreClaim):
            claim = record.id
        elif isinstance(record, OwnerBeat):
            claim = record.claim
        else:
            return False
        if record.epoch > self.epoch:
            self.epoch, self.claim = record.epoch, claim
            return True
        return claim == self.claim
