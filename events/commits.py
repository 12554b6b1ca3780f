"""Commits of batches, and the records of the offset log.

A commit advances the offsets of its source partitions and names what the batch has staged, both or
neither (DATA_PLANE §3). The rules for fields and times in `records.py` apply to these records as
well.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from .model import Token

LONGEST_PARTITION = 200
"""Bytes of a source partition that stand in a key; a digest tells the remainder."""

Scalar = str | int | float | bool | None
Document = Mapping[str, Scalar]
"""A source partition or a source offset: a flat JSON object, as in Connect's offsets API."""


def identity(partition: Document) -> str:
    """Return the canonical text of a source partition, by which it is known and ordered."""
    return ",".join(f"{key}={partition[key]!r}" for key in sorted(partition))


def spell_partition(partition: Document) -> str:
    """Return a source partition as keys spell it: short, and without the NUL that ends a part."""
    spelled = identity(partition).replace("\0", "\\0")
    packed = spelled.encode()
    if len(packed) <= LONGEST_PARTITION:
        return spelled
    digest = hashlib.blake2b(packed, digest_size=16).hexdigest()
    return packed[:LONGEST_PARTITION].decode(errors="ignore") + "#" + digest


@dataclass(frozen=True, slots=True)
class Advance:
    """The advance of one source partition: from the logged offset to a new one; None is none."""

    partition: Document
    start: Document | None
    end: Document | None


class CommitId(NamedTuple):
    """The id of a batch: its task, its token, and its number, from 0 within a token."""

    connector: str
    task: int
    token: Token
    batch: int


class Part(NamedTuple):
    """One file of a batch, by the path that it has once it is published."""

    path: str
    """Relative to the sink's root."""

    bytes: int
    rows: int = -1
    """As the file itself says; -1: its format does not tell."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of a staged batch: its place, its size, and its files.

    `staging` is relative to `root`, the sink's own root; a batch without rows has no files.
    """

    root: str
    staging: str
    rows: int
    bytes: int
    files: int
    parts: tuple[Part, ...] = ()
    """The files by name; empty in what was written before they were named."""

    claim: str = ""
    """The claim on the sink under which it was staged; "" if the sink knows none."""

    note: Document = field(default_factory=dict[str, Scalar])
    """What else the sink has to know to publish it: no rows, no secrets, at most 4 KiB."""
    dead_letters: "Manifest | None" = None
    """What was staged of the batch for the dead letter queue, a folder of its own; None: nothing.

    Its `rows` are the dead letters; it counts, and is published, with the batch.
    """

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to publish."""
        return not self.files and (self.dead_letters is None or self.dead_letters.is_empty)


@dataclass(frozen=True, slots=True)
class Lag:
    """The lag of a task: ranges of its source (files, say) still to be read, and their bytes."""

    ranges: int
    bytes: int
    records: int | None = None
    """How many rows that is; None: the source cannot tell."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of batches: bytes of the source, and time by phase."""

    bytes_in: int = 0
    plan_ms: int = 0
    wait_ms: int = 0
    """For a place on the engine."""
    run_ms: int = 0
    """Reading, transforming and staging."""
    commit_ms: int = 0
    publish_ms: int = 0

    def plus(self, other: "Cost") -> "Cost":
        """Return the sum of both costs."""
        return Cost(
            self.bytes_in + other.bytes_in,
            self.plan_ms + other.plan_ms,
            self.wait_ms + other.wait_ms,
            self.run_ms + other.run_ms,
            self.commit_ms + other.commit_ms,
            self.publish_ms + other.publish_ms,
        )

    @property
    def phases_ms(self) -> Mapping[str, int]:
        """The time of each phase, by its name, in their order."""
        return {
            "plan": self.plan_ms,
            "wait": self.wait_ms,
            "run": self.run_ms,
            "commit": self.commit_ms,
            "publish": self.publish_ms,
        }


NO_COST: Final = Cost()


@dataclass(frozen=True, slots=True)
class Commit:
    """A batch to be counted: its advances on the source, and its manifest."""

    commit_id: CommitId
    advances: tuple[Advance, ...]
    manifest: Manifest
    rows_in: int
    """Rows that were read for it."""
    lag: Lag | None = None
    """What the source held beyond this batch when the batch was planned; None: not known."""

    skipped: int = 0
    """Bad rows that were left out; those that were kept are the manifest's dead letters."""

    cost: Cost = NO_COST
    """What it took so far; its times of commit and publish are those of the batch before it."""


@dataclass(frozen=True, slots=True)
class Offset:
    """How far one source partition of a connector was read (key type 19)."""

    connector: str
    partition: Document
    offset: Document

    @property
    def partition_key(self) -> str:
        """The partition as keys spell it."""
        return spell_partition(self.partition)


@dataclass(frozen=True, slots=True)
class Committed:
    """A batch that counts, until it is known to be published (key type 24)."""

    commit: Commit
    time_ms: int

    @property
    def commit_id(self) -> CommitId:
        """Which batch it is."""
        return self.commit.commit_id


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """All that a task ever committed, and its last commit (key type 25)."""

    last: CommitId
    batches: int
    rows_in: int
    rows_out: int
    bytes_out: int
    time_ms: int
    lag: Lag | None = None
    """What was left to read when the last batch was planned; None: not known."""

    filled: CommitId | None = None
    """The last commit that staged files for the sink; None: there was none, or it is not known."""

    skipped: int = 0
    """Bad rows that were left out, of which `dead_letters` are in the dead letter queue."""

    dead_letters: int = 0
    cost: Cost = NO_COST
    """What all batches took; those of older releases did not tell."""


@dataclass(frozen=True, slots=True)
class ConsumerOffset:
    """The committed offset of a group in a partition of a topic (key type 33)."""

    topic: str
    partition: int
    offset: int
    """The offset of the next record to be read."""
    leader_epoch: int = -1
    """That of the last record that was read; -1: not known."""
    metadata: str = ""
    """Whatever the client wants to know again."""
    time_ms: int = 0
    topic_id: str = ""
    """That of the topic by which it was committed, as `Topic` has it; empty: it was not known."""


@dataclass(frozen=True, slots=True)
class PendingOffset:
    """An offset that is committed once its transaction is (key type 34)."""

    offset: ConsumerOffset
    producer_id: int
    """The producer of the transaction."""
    after: int
    """An offset of the brokers' partition of the group: the marker that ends the transaction is
    there or later, those of the producer's earlier transactions are before."""
    transactional_id: str = ""


OffsetRecord = Offset | Committed | TaskProgress | ConsumerOffset | PendingOffset
