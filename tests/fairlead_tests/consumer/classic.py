"""Requests of classic consumers of one topic, and their assignments."""

from typing import Any

from fairlead.actors.classic.bytes.consumer import (
    PartitionAssignment,
    Subscription,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from fairlead.actors.messages.classic import ClassicHeartbeat, JoinGroup, SyncGroup
from fairlead.actors.messages.errors import Error
from fairlead.events.model import ClassicProtocol, Resource
from fairlead_tests.consumer.driver import ConsumerDriver

ALL = [Resource("t4", each) for each in range(4)]


def joining(
    member_id: str = "",
    owned: list[Resource] | None = None,
    rack: str | None = None,
    **told: Any,
) -> JoinGroup:
    """Return the JoinGroup request of a member that owns some partitions."""
    said = encode_subscription(Subscription(["t4"], owned=owned or [], rack=rack))
    offered = (ClassicProtocol("cooperative-sticky", said),)
    fields: dict[str, Any] = {"client_id": "c", "asks_for_id": False, **told}
    return JoinGroup("g", member_id, "consumer", offered, 6_000, 20_000, **fields)


def given(partitions: list[Resource], user_data: bytes | None = None) -> bytes:
    """Return the encoded assignment of a member."""
    return encode_assignment(PartitionAssignment(partitions, user_data))


def syncs(driver: ConsumerDriver, member_id: str, generation: int, **told: Any) -> list[Resource]:
    """Send a member's SyncGroup."""
    reply = driver.asks(SyncGroup("g", member_id, generation, **told))
    assert reply.error is Error.NONE
    return sorted(decode_assignment(reply.assignment).partitions)


def beats(driver: ConsumerDriver, member_id: str, generation: int) -> Error:
    """Send a member's heartbeat; return the error of the reply."""
    error: Error = driver.asks(ClassicHeartbeat("g", member_id, generation)).error
    return error


def alone(driver: ConsumerDriver, user_data: bytes | None = None) -> str:
    """Add one classic member with all partitions; return its id."""
    member_id: str = driver.asks(joining()).member_id
    assert syncs(driver, member_id, 1, assignments={member_id: given(ALL, user_data)}) == ALL
    return member_id
