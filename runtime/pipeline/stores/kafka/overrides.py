"""The settings of librdkafka that a config may make, each with why it may.

The author of a config is not the node's operator, so this is a list of what is taken. A setting
that is not on it may read or write files, load a library, run a program, take over what the
connector does itself, or come with a later librdkafka. Java's names stand beside librdkafka's.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from ...spi.config import has_reference

JAVA_NAMES: Final[Mapping[str, str]] = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "request.timeout.ms": "socket.timeout.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
}
"""Settings of Java's clients with another name in librdkafka."""

_NAMES: Final = "only a name that brokers see, in their logs and for racks near by"
_SOCKETS: Final = "only how a connection to the brokers is kept, within the client"
_FACTS: Final = "only how often the client asks for the cluster's topics and brokers"
_CHECKS: Final = "only how the encrypted connection is agreed on; it names no file"
_FETCHES: Final = "only the size and the pace of fetches, up to a maximum"
_MEMBERS: Final = "no effect: partitions are dealt out by fairlead, and no group is joined"
_SENDS: Final = "only the size and the pace of requests to write; each batch is one transaction"
_PLACES: Final = "only which partition a key goes to"

ALLOWED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("client.id", "client.rack", "client.software.name"), _NAMES),
    **dict.fromkeys(
        (
            "broker.address.family",
            "broker.address.ttl",
            "client.dns.lookup",
            "connections.max.idle.ms",
            "reconnect.backoff.max.ms",
            "reconnect.backoff.ms",
            "retry.backoff.max.ms",
            "retry.backoff.ms",
            "socket.connection.setup.timeout.ms",
            "socket.keepalive.enable",
            "socket.max.fails",
            "socket.nagle.disable",
            "socket.receive.buffer.bytes",
            "socket.send.buffer.bytes",
            "socket.timeout.ms",
        ),
        _SOCKETS,
    ),
    **dict.fromkeys(
        (
            "api.version.fallback.ms",
            "api.version.request",
            "api.version.request.timeout.ms",
            "broker.version.fallback",
            "metadata.max.age.ms",
            "topic.metadata.propagation.max.ms",
            "topic.metadata.refresh.fast.interval.ms",
            "topic.metadata.refresh.interval.ms",
            "topic.metadata.refresh.sparse",
        ),
        _FACTS,
    ),
    **dict.fromkeys(
        (
            "enable.ssl.certificate.verification",
            "ssl.cipher.suites",
            "ssl.curves.list",
            "ssl.sigalgs.list",
        ),
        _CHECKS,
    ),
    **dict.fromkeys(
        (
            "check.crcs",
            "fetch.error.backoff.ms",
            "fetch.max.bytes",
            "fetch.message.max.bytes",
            "fetch.min.bytes",
            "fetch.queue.backoff.ms",
            "fetch.wait.max.ms",
            "max.partition.fetch.bytes",
            "queued.max.messages.kbytes",
            "queued.min.messages",
            "receive.message.max.bytes",
        ),
        _FETCHES,
    ),
    **dict.fromkeys(
        ("heartbeat.interval.ms", "max.poll.interval.ms", "session.timeout.ms"), _MEMBERS
    ),
    **dict.fromkeys(
        (
            "batch.num.messages",
            "batch.size",
            "compression.codec",
            "compression.level",
            "compression.type",
            "delivery.timeout.ms",
            "linger.ms",
            "message.copy.max.bytes",
            "message.max.bytes",
            "message.send.max.retries",
            "message.timeout.ms",
            "queue.buffering.backpressure.threshold",
            "queue.buffering.max.kbytes",
            "queue.buffering.max.messages",
            "queue.buffering.max.ms",
            "retries",
            "transaction.timeout.ms",
        ),
        _SENDS,
    ),
    **dict.fromkeys(("partitioner", "sticky.partitioning.linger.ms"), _PLACES),
}
"""The settings that are taken, with the reason why no harm comes of them."""

_MEBIBYTE: Final = 1 << 20
_MOST: Final[Mapping[str, int]] = {
    "batch.size": 256 * _MEBIBYTE,
    "fetch.max.bytes": 256 * _MEBIBYTE,
    "fetch.message.max.bytes": 256 * _MEBIBYTE,
    "max.partition.fetch.bytes": 256 * _MEBIBYTE,
    "message.max.bytes": 256 * _MEBIBYTE,
    "queue.buffering.max.kbytes": 1 << 20,
    "queued.max.messages.kbytes": 256 << 10,
    "receive.message.max.bytes": 512 * _MEBIBYTE,
    "socket.receive.buffer.bytes": 64 * _MEBIBYTE,
    "socket.send.buffer.bytes": 64 * _MEBIBYTE,
}
"""The maxima of settings that take memory of the worker, which all of its tasks share."""


def flaws_in_overrides(given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the settings that are not taken, each with the reason."""
    for name, value in given.items():
        meant = JAVA_NAMES.get(name, name)
        if meant not in ALLOWED:
            yield name, "is none of the settings that a config may make: leave it out"
        elif (most := _MOST.get(meant)) and not _is_at_most(most, value):
            yield name, f"must be a number, at most {most}: all tasks of a worker share its memory"


def _is_at_most(most: int, value: str) -> bool:
    """Return whether a text is such a number; librdkafka also takes hexadecimal digits."""
    return has_reference(value) or (value.isascii() and value.isdecimal() and int(value) <= most)
