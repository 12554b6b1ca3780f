"""The bytes between Connect's workers and their leader: metadata and assignments, v0 to v2.

```
metadata v0       int16 version | string url | int64 config offset
metadata v1, v2   the same | bytes allocation: null, or an assignment v1, v2
assignment v0     int16 version | int16 error | string leader | string leader url
                  | int64 config offset | array of (string connector | array of int32 task)
assignment v1, v2 the same | array revoked, nullable | int32 delay in ms
```

Task -1 stands for the connector itself. Version 2 differs from 1 by its number alone; it says that
the leader hands out session keys. Whoever reads goes by the protocol that the group speaks, not by
the number in the bytes: a reader of version 0 ignores what newer ones append, one of version 1 or 2
takes older bytes, in which the last fields are missing, and newer ones as far as it knows them.

Bytes that Connect writes are written here in the same way, but for the order of connectors, which
is there that of a hash set; no reader may care about it.

See KIP-415, KIP-507, and `ConnectProtocol`, `IncrementalCooperativeConnectProtocol` and
`ExtendedAssignment` of Connect.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ....events.model import Resource
from ...assignors.classic.loads import of_kind
from ...assignors.classic.protocol import EAGER, VERSIONS, ReceivedAssignment, offer_protocols
from .primitives import LONGEST_ASSIGNMENT, LONGEST_METADATA, Reader, UnwritableError, Writer


@dataclass(frozen=True, slots=True)
class WorkerMetadata:
    """The metadata with which a worker joins; its leader reads them."""

    url: str
    """Where its REST interface is."""
    config_offset: int
    """How far it has read the log of configs."""
    allocation: ReceivedAssignment | None = None
    """All that it runs; None if it does not name that, as a newcomer, or in version 0."""


def encode_offers(mode: str, metadata: WorkerMetadata) -> Sequence[tuple[str, bytes]]:
    """Return the protocols of one JoinGroup, the preferred one first, each with its metadata.

    The mode is a value of `connect.protocol`. Raises UnwritableError.
    """
    return [(name, encode_metadata(metadata, VERSIONS[name])) for name in offer_protocols(mode)]


def encode_metadata(metadata: WorkerMetadata, version: int) -> bytes:
    """Return the bytes of a worker's metadata, with its allocation in the same version.

    Raises UnwritableError.
    """
    writer = Writer(LONGEST_METADATA)
    _write_version(writer, version)
    writer.string(metadata.url)
    writer.int64(metadata.config_offset)
    if version > EAGER:
        allocation = metadata.allocation
        writer.nullable_bytes(
            None if allocation is None else encode_assignment(replace(allocation, version=version))
        )
    return writer.written()


def decode_metadata(data: bytes, version: int) -> WorkerMetadata:
    """Return a worker's metadata, read by the version of the group's protocol.

    Raises UnreadableError.
    """
    reader = Reader(data, LONGEST_METADATA)
    reader.version()
    url, config_offset = reader.string(), reader.int64()
    allocation = reader.nullable_bytes() if version > EAGER and reader.has_more else None
    return WorkerMetadata(
        url, config_offset, None if allocation is None else decode_assignment(allocation, version)
    )


def encode_assignment(assignment: ReceivedAssignment) -> bytes:
    """Return the bytes of an assignment in its own version; it must name the leader.

    Raises UnwritableError.
    """
    writer = Writer(LONGEST_ASSIGNMENT)
    _write_version(writer, assignment.version)
    writer.int16(assignment.error)
    writer.string(assignment.leader)
    writer.string(assignment.leader_url)
    writer.int64(assignment.config_offset)
    writer.resources(_in_order(assignment.assigned))
    if assignment.version > EAGER:
        writer.resources(_in_order(assignment.revoked))
        writer.int32(assignment.delay_ms)
    return writer.written()


def decode_assignment(data: bytes | memoryview, version: int) -> ReceivedAssignment:
    """Return an assignment, read by the version of the group's protocol.

    Resources are in the order of the bytes. Raises UnreadableError.
    """
    reader = Reader(data, LONGEST_ASSIGNMENT)
    own_version = reader.version()
    error, leader, leader_url = reader.int16(), reader.string(), reader.string()
    config_offset = reader.int64()
    if version == EAGER:
        assigned = reader.resources()
        return ReceivedAssignment(
            assigned, (), 0, config_offset, error, leader, leader_url, version
        )
    assigned = reader.resources(nullable=True) if reader.has_more else ()
    revoked = reader.resources(nullable=True) if reader.has_more else ()
    delay_ms = reader.int32() if reader.has_more else 0
    return ReceivedAssignment(
        assigned, revoked, delay_ms, config_offset, error, leader, leader_url, own_version
    )


def _write_version(writer: Writer, version: int) -> None:
    if version not in VERSIONS.values():
        raise UnwritableError(f"there is no version {version} to write")
    writer.int16(version)


def _in_order(resources: Sequence[Resource] | None) -> Sequence[Resource]:
    """Return connectors in front, each once, as Connect writes them; tasks as they are."""
    if resources is None:
        raise UnwritableError("null where a list must be")
    connectors = dict.fromkeys(of_kind(resources, tasks=False))
    return [*connectors, *of_kind(resources, tasks=True)]
