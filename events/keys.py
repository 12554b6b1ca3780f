"""Compaction keys as bytes: short enough for LMDB, and scannable by their first parts."""

import hashlib

from . import records
from .model import CommitId, Document, Scope, identity

LONGEST_PARTITION = 200
"""Bytes of a source partition that stand in a key; the rest is told by a digest."""

Key = tuple[str | int, ...]
PARTS = {
    records.MemberMetadata: 1,
    records.CurrentAssignment: 1,
    records.ConnectorConfig: 1,
    records.TaskConfigs: 1,
    records.Loss: 1,
    records.Operator: 3,
    records.TaskStatus: 2,
    records.Offset: 2,
    records.TaskProgress: 2,
    records.Committed: 5,
    records.ConfiguredShard: 1,
    records.TargetShard: 1,
    records.CurrentShard: 2,
}
"""How many parts a kind's key has; a group has but one of the other kinds, and they no key."""

NUMBERS_FROM = {
    records.TaskStatus: 1,
    records.Committed: 1,
    records.TaskProgress: 1,
    records.Operator: 2,
    records.ConfiguredShard: 0,
    records.TargetShard: 0,
    records.CurrentShard: 1,
}
"""From which part on a kind's key is numbers; other keys are text."""


def pack_key(key: Key) -> bytes:
    """Return the key's bytes; a key's first parts are a prefix of the whole."""
    return b"".join(str(part).encode() + b"\0" for part in key)


def unpack_key(kind: type, packed: bytes) -> Key:
    """Return the key of that kind; raises ValueError where it is none."""
    *parts, rest = packed.decode().split("\0")
    first_number = NUMBERS_FROM.get(kind, len(parts))
    key: Key = (*parts[:first_number], *map(int, parts[first_number:]))
    if rest or len(key) != PARTS.get(kind, 0) or pack_key(key) != packed:
        raise ValueError(f"{packed!r} is no key of a {kind.__name__}")
    return key


def offset_key(connector: str, partition: Document) -> Key:
    """Return the key of a source partition's offset."""
    spelled = identity(partition).replace("\0", "\\0")
    packed = spelled.encode()
    if len(packed) > LONGEST_PARTITION:
        digest = hashlib.blake2b(packed, digest_size=16).hexdigest()
        spelled = packed[:LONGEST_PARTITION].decode(errors="ignore") + "#" + digest
    return (connector, spelled)


def operator_key(scope: Scope, name: str, task: int) -> Key:
    """Return the key of an operator's order."""
    return (scope.value, name, task)


def commit_key(commit_id: CommitId) -> Key:
    """Return the key of a batch that waits to be published."""
    return (commit_id.connector, commit_id.task, *commit_id.token, commit_id.batch)
