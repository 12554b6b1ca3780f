"""Calls about committed offsets: how far a group has read its topics (KIP-848, KIP-709).

`epoch` is the generation of a classic member, or the member epoch of any other; -1 is said by
whoever is no member. `number` tells apart what one sender has asked: the answer names it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from .errors import Error

NO_EPOCH = -1
NO_OFFSET = -1
"""What is said of a partition of which no offset is committed."""


@dataclass(frozen=True, slots=True)
class TopicOffset:
    """How far one partition was read."""

    topic: str
    partition: int
    offset: int = NO_OFFSET
    """The offset of the next record to be read."""
    leader_epoch: int = -1
    """The leader epoch of the last record read; -1: unknown."""
    metadata: str | None = None
    """The client's own text."""
    error: Error = Error.NONE
    """Why a group does not tell the offset."""


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """The transaction of a producer in which offsets are committed (KIP-98)."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    after: int = 0
    """See `PendingOffset.after`; the listener asks the brokers for it."""


@dataclass(frozen=True, slots=True)
class OffsetCommit:
    """A client commits offsets, each of which is accepted or refused by itself."""

    group_id: str
    offsets: tuple[TopicOffset, ...]
    member_id: str = ""
    epoch: int = NO_EPOCH
    """The member epoch or generation; `NO_EPOCH`: no member commits."""
    instance_id: str | None = None
    knows_epochs: bool = True
    """Whether the request's version (9) has member epochs."""
    transaction: OpenTransaction | None = None
    """None: the offsets are committed at once."""
    number: int = 0


@dataclass(frozen=True, slots=True)
class PartitionVerdict:
    """The result for one partition's offset."""

    topic: str
    partition: int
    error: Error


@dataclass(frozen=True, slots=True)
class OffsetCommitReply:
    """The group answers with a verdict on each offset, unknown topics first; all are durable."""

    verdicts: tuple[PartitionVerdict, ...]
    message: str = ""
    number: int = 0
    error: Error = Error.NONE
    """That of all of them, where the call was refused as a whole."""


@dataclass(frozen=True, slots=True)
class OffsetFetch:
    """A client asks for committed offsets; None: those of all partitions that have one."""

    group_id: str
    partitions: Mapping[str, tuple[int, ...]] | None = None
    """Numbers by topic."""
    member_id: str | None = None
    """None: it is asked by no member."""
    epoch: int = NO_EPOCH
    """The member epoch; `NO_EPOCH`: it is not checked."""
    needs_stable: bool = False
    """Whether offsets that an open transaction may change are an error (KIP-447)."""
    number: int = 0


@dataclass(frozen=True, slots=True)
class OffsetFetchReply:
    """The group answers, in order, also for partitions without a committed offset."""

    error: Error
    offsets: tuple[TopicOffset, ...] = ()
    message: str = ""
    number: int = 0
    denied: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    """The partitions that the client may not see, which the listener adds; numbers by topic."""


@dataclass(frozen=True, slots=True)
class OffsetDelete:
    """A client deletes committed offsets."""

    group_id: str
    partitions: Mapping[str, tuple[int, ...]]
    """Numbers by topic."""
    number: int = 0


@dataclass(frozen=True, slots=True)
class OffsetDeleteReply:
    """The group answers with a verdict on each partition, or with an error for all."""

    error: Error
    verdicts: tuple[PartitionVerdict, ...] = ()
    message: str = ""
    number: int = 0


@dataclass(frozen=True, slots=True)
class EndTransaction:
    """A transaction has ended, as its marker in the brokers' partition of the group says."""

    group_id: str
    producer_id: int
    marker: int
    """The offset of the marker."""
    is_committed: bool
    number: int = 0


@dataclass(frozen=True, slots=True)
class EndTransactionReply:
    """The group answers once the offsets of the transaction are committed, or dropped."""

    error: Error = Error.NONE
    message: str = ""
    number: int = 0


OffsetCall = OffsetCommit | OffsetFetch | OffsetDelete | EndTransaction
"""What may be asked of a group's offsets."""

OffsetReply = OffsetCommitReply | OffsetFetchReply | OffsetDeleteReply | EndTransactionReply
