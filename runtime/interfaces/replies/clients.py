"""Replies about groups of Kafka clients: generations, members, topics, committed offsets.

A group stores the assignments of a classic leader as opaque bytes; they are decoded here.
"""

from msgspec import Struct

from .words import CauseWord


class GenerationDescription(Struct, frozen=True):
    """A generation of a classic group."""

    generation: int
    cause: CauseWord
    subject: str
    time_ms: int
    protocol_type: str
    protocol: str | None
    leader: str
    members: list[str]
    """Their instance ids, or their member ids if they are dynamic."""


class TopicDescription(Struct, frozen=True):
    """A topic that a group of consumers reads, or is giving up."""

    name: str
    topic_id: str
    partitions: int
    is_released: bool
    """Whether its partitions are being revoked."""


class SubscriptionDescription(Struct, frozen=True):
    """The subscription of a consumer: topic names and a pattern."""

    member_id: str
    names: list[str]
    pattern: str
    """An RE2 regular expression; empty if there is none."""
    matched: list[str]
    """The topics that match the pattern."""


class CommittedOffset(Struct, frozen=True):
    """The committed offset of a group in one partition."""

    topic: str
    partition: int
    offset: int
    """The offset of the next record to read."""
    leader_epoch: int
    metadata: str
    time_ms: int
