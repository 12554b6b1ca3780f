"""Whether what members tell each other through the group can be read, and what consumers read.

Consumers and Connect's workers are known; what others tell each other is their own affair.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache

from ...events.model import CONNECT, ClassicMember, ClassicProtocol
from ..assignors.classic.protocol import VERSIONS
from .bytes import connect, consumer
from .bytes.primitives import UnreadableError

CONSUMER = "consumer"
"""The protocol type of Kafka's consumers."""


def flaw_in_metadata(protocol_type: str, protocol: str, metadata: bytes) -> str:
    """Return why nobody can read what a member offers with a protocol; nothing if it can be."""
    version = VERSIONS.get(protocol)
    if protocol_type == CONSUMER:
        return _flaw(lambda: consumer.decode_subscription(metadata))
    if protocol_type == CONNECT and version is not None:
        return _flaw(lambda: connect.decode_metadata(metadata, version))
    return ""


def flaw_in_assignment(protocol_type: str, protocol: str, assignment: bytes) -> str:
    """Return why nobody can read what a leader assigns; nothing if it can be, or is nothing."""
    version = VERSIONS.get(protocol)
    if protocol_type == CONSUMER and assignment:
        return _flaw(lambda: consumer.decode_assignment(assignment))
    if protocol_type == CONNECT and assignment and version is not None:
        return _flaw(lambda: connect.decode_assignment(assignment, version))
    return ""


def url_of_worker(protocol_type: str, protocols: Iterable[ClassicProtocol]) -> str:
    """Return where the REST interface of a worker of Connect is; nothing for other members.

    Raises UnreadableError.
    """
    if protocol_type != CONNECT:
        return ""
    told = (each for each in protocols if each.name in VERSIONS)
    first = next(told, None)
    return connect.decode_metadata(first.metadata, VERSIONS[first.name]).url if first else ""


def topics_of_consumers(members: Iterable[ClassicMember]) -> frozenset[str]:
    """Return what classic consumers subscribe to, whichever of their protocols they speak."""
    offered = (each for member in members for each in member.protocols)
    return frozenset(topic for each in offered for topic in read_subscription(each.metadata).topics)


@lru_cache(maxsize=64)  # a subscription may take more than a megabyte
def read_subscription(metadata: bytes) -> consumer.Subscription:
    """Return what a consumer offers with a protocol; raises UnreadableError."""
    return consumer.decode_subscription(metadata)


def _flaw(read: Callable[[], object]) -> str:
    try:
        read()
    except UnreadableError as error:
        return str(error)
    return ""
