"""The bytes that members send each other through the group: whether they are readable.

Those of consumers and of Connect's workers are known; those of other protocol types are not read.
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
    """Return why a member's metadata for a protocol is unreadable; "" if it is readable."""
    version = VERSIONS.get(protocol)
    if protocol_type == CONSUMER:
        return _flaw(lambda: consumer.decode_subscription(metadata))
    if protocol_type == CONNECT and version is not None:
        return _flaw(lambda: connect.decode_metadata(metadata, version))
    return ""


def flaw_in_assignment(protocol_type: str, protocol: str, assignment: bytes) -> str:
    """Return why a leader's assignment is unreadable; "" if it is readable, or empty."""
    version = VERSIONS.get(protocol)
    if protocol_type == CONSUMER and assignment:
        return _flaw(lambda: consumer.decode_assignment(assignment))
    if protocol_type == CONNECT and assignment and version is not None:
        return _flaw(lambda: connect.decode_assignment(assignment, version))
    return ""


def url_of_worker(protocol_type: str, protocols: Iterable[ClassicProtocol]) -> str:
    """Return the URL of the REST interface of a Connect worker; "" for other members.

    Raises UnreadableError.
    """
    if protocol_type != CONNECT:
        return ""
    first = next((each for each in protocols if each.name in VERSIONS), None)
    return connect.decode_metadata(first.metadata, VERSIONS[first.name]).url if first else ""


def topics_of_consumers(members: Iterable[ClassicMember]) -> frozenset[str]:
    """Return the topics that classic consumers subscribe to, by any of their protocols."""
    offered = (each for member in members for each in member.protocols)
    return frozenset(topic for each in offered for topic in read_subscription(each.metadata).topics)


@lru_cache(maxsize=16)  # a subscription may take several megabytes
def read_subscription(metadata: bytes) -> consumer.Subscription:
    """Return a consumer's subscription; raises UnreadableError."""
    return consumer.decode_subscription(metadata)


def _flaw(read: Callable[[], object]) -> str:
    try:
        read()
    except UnreadableError as error:
        return str(error)
    return ""
