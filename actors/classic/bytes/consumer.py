"""The bytes between consumers and their leader: subscriptions and assignments, v0 to v3.

```
subscription v0  int16 version | array of string topic | bytes user data, nullable
             v1  … | array of (string topic | array of int32 partition): owned
             v2  … | int32 generation in which these were owned (KIP-792)
             v3  … | string rack, nullable (KIP-881)
assignment       int16 version | array of (string topic | array of int32 partition)
                 | bytes user data, nullable; the same in every version
```

A partition of a topic is a `Resource`: it is what a group of consumers shares out. Newer versions
are read as version 3. A field that came with version 1 or later may be missing at the end, as in
what clients send that say version 1 and know no owned partitions (kafka-go, sarama-cluster):
Kafka's coordinator reads as version 0 to learn the topics, and so never meets that.

See `ConsumerProtocolSubscription.json` and `ConsumerProtocolAssignment.json` of Kafka.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ....events.model import Resource
from .primitives import (
    LONGEST_ASSIGNMENT,
    LONGEST_METADATA,
    Reader,
    UnreadableError,
    UnwritableError,
    Writer,
)

OWNED_SINCE, GENERATION_SINCE, RACK_SINCE = 1, 2, 3
NEWEST = RACK_SINCE
NO_GENERATION = -1


@dataclass(frozen=True, slots=True)
class Subscription:
    """The metadata with which a consumer joins."""

    topics: Sequence[str]
    user_data: bytes | None = None
    """From its assignor, for that of the leader."""
    owned: Sequence[Resource] = ()
    """The partitions that it has and keeps meanwhile; an eager consumer names none."""
    generation: int = NO_GENERATION
    """The generation in which it was assigned these."""
    rack: str | None = None
    """The rack in which it runs."""
    version: int = NEWEST


@dataclass(frozen=True, slots=True)
class PartitionAssignment:
    """The partitions that are assigned to a consumer."""

    partitions: Sequence[Resource]
    user_data: bytes | None = None
    """From the leader's assignor, for that of this consumer."""
    version: int = NEWEST


def encode_subscription(subscription: Subscription) -> bytes:
    """Return the bytes of a subscription; fields that its version lacks are left out.

    Raises UnwritableError.
    """
    writer = Writer(LONGEST_METADATA)
    version = _write_version(writer, subscription.version)
    writer.strings(subscription.topics)
    writer.nullable_bytes(subscription.user_data)
    if version >= OWNED_SINCE:
        writer.resources(subscription.owned)
    if version >= GENERATION_SINCE:
        writer.int32(subscription.generation)
    if version >= RACK_SINCE:
        writer.nullable_string(subscription.rack)
    return writer.written()


def decode_subscription(data: bytes) -> Subscription:
    """Return the subscription in these bytes; raises UnreadableError."""
    reader = Reader(data, LONGEST_METADATA)
    version = min(reader.version(), NEWEST)

    def has(since: int) -> bool:
        return version >= since and reader.has_more

    return Subscription(
        topics=reader.strings(),
        user_data=_copy(reader.nullable_bytes()),
        owned=reader.resources() if has(OWNED_SINCE) else (),
        generation=reader.int32() if has(GENERATION_SINCE) else NO_GENERATION,
        rack=reader.nullable_string() if has(RACK_SINCE) else None,
        version=version,
    )


def encode_assignment(assignment: PartitionAssignment) -> bytes:
    """Return the bytes of an assignment; topics are in the order of first mention.

    Raises UnwritableError.
    """
    writer = Writer(LONGEST_ASSIGNMENT)
    _write_version(writer, assignment.version)
    writer.resources(assignment.partitions)
    writer.nullable_bytes(assignment.user_data)
    return writer.written()


def decode_assignment(data: bytes) -> PartitionAssignment:
    """Return the partitions that a consumer is assigned; raises UnreadableError."""
    reader = Reader(data, LONGEST_ASSIGNMENT)
    version = min(reader.version(), NEWEST)
    return PartitionAssignment(reader.resources(), _copy(reader.nullable_bytes()), version)


def is_of_sticky(user_data: bytes) -> bool:
    """Return whether user data is a sticky assignor's: a member's partitions and their generation.

    A generation may be missing (KIP-54, KIP-341).
    """
    reader = Reader(user_data, LONGEST_ASSIGNMENT)
    try:
        reader.resources()
        if reader.has_more:
            reader.int32()
    except UnreadableError:
        return False
    return not reader.has_more


def _write_version(writer: Writer, version: int) -> int:
    if not 0 <= version <= NEWEST:
        raise UnwritableError(f"there is no version {version} to write")
    writer.int16(version)
    return version


def _copy(data: memoryview | None) -> bytes | None:
    return None if data is None else bytes(data)
