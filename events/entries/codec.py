"""Records as log entries, and back.

An entry names its record by a type number and a version, never by a class. An unknown
type is skipped and counted by the reader; a later version of a known type refuses to load,
since half-understood facts are worse than none; an older version is lifted step by step by
`UPCASTS` before it is read.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from .. import records
from ..epochs import ANOTHER_GROUP, LARGEST_EPOCH
from ..keys import Key, commit_key, offset_key, operator_key, pack_key, unpack_key
from ..log.frame import Entry, NewEntry
from ..records import Record, Tombstone
from . import convert, wire

VERSION = 1
SHARDED_VERSION = 2
"""Of a head whose resources lie in shards: who knows of no shards must not read it as empty."""
Upcast = Callable[[dict[str, Any]], dict[str, Any]]


class CodecError(Exception):
    """The log holds what this version cannot read; nothing in the log was changed."""


class NewerRecordError(CodecError):
    """A later version of fairlead wrote the record: run that version, or restore a backup."""


class UnwritableRecordError(CodecError):
    """A record holds what no log can, as half a character or a number beyond 64 bit."""


class MalformedRecordError(CodecError):
    """The bytes are sealed, yet they are no record of their type: the writer was at fault."""


TYPES: dict[type, tuple[int, type[msgspec.Struct]]] = {
    records.GroupMetadata: (3, wire.GroupMetadataWire),
    records.ConnectorsTasksMetadata: (4, wire.ConnectorsTasksMetadataWire),
    records.MemberMetadata: (5, wire.MemberMetadataWire),
    records.TargetAssignment: (6, wire.TargetAssignmentWire),
    records.CurrentAssignment: (7, wire.CurrentAssignmentWire),
    records.GroupConfiguration: (8, wire.GroupConfigurationWire),
    records.ConnectorConfig: (16, wire.ConnectorConfigWire),
    records.TaskConfigs: (17, wire.TaskConfigsWire),
    records.Offset: (19, wire.OffsetWire),
    records.TaskStatus: (20, wire.TaskStatusWire),
    records.ScheduledRebalance: (21, wire.ScheduledRebalanceWire),
    records.Operator: (22, wire.OperatorWire),
    records.Loss: (23, wire.LossWire),
    records.Committed: (24, wire.CommittedWire),
    records.TaskProgress: (25, wire.TaskProgressWire),
    records.GroupDeletion: (26, wire.GroupDeletionWire),
    records.ConfiguredShard: (27, wire.ConfiguredShardWire),
    records.TargetShard: (28, wire.TargetShardWire),
    records.CurrentShard: (29, wire.CurrentShardWire),
}
KINDS = {number: kind for kind, (number, _) in TYPES.items()}
DECODE = {number: msgspec.msgpack.Decoder(shape).decode for number, shape in TYPES.values()}
SHAPES = dict(TYPES.values())
UPCASTS: dict[tuple[int, int], Upcast] = {}
"""By (type, version): a plain map of that version -> one of the next. None is needed yet."""

_encode = msgspec.msgpack.Encoder().encode


def encode(record: Record) -> NewEntry:
    """Return the record as an entry of the current version; raises `UnwritableRecordError`."""
    if isinstance(record, records.GroupMetadata) and record.group_epoch > LARGEST_EPOCH:
        raise UnwritableRecordError(
            f"the group epoch is {LARGEST_EPOCH}, the last that a log holds: nothing was changed;"
            f" {ANOTHER_GROUP}"
        )
    try:
        return _encoded(record)
    except (ValueError, TypeError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        raise UnwritableRecordError(
            f"{type(record).__name__} cannot be written down ({error}): nothing was changed"
        ) from error


def _encoded(record: Record) -> NewEntry:
    if isinstance(record, Tombstone):
        return NewEntry(TYPES[record.kind][0], VERSION, pack_key(record.key), None)
    lowered = convert.lower(record)
    version = SHARDED_VERSION if isinstance(record, records.Head) and record.shards else VERSION
    return NewEntry(TYPES[type(record)][0], version, pack_key(key_of(record)), _encode(lowered))


def decode(entry: Entry) -> Record | None:
    """Return the entry's record, or None where its type is unknown.

    Raises `NewerRecordError` and `MalformedRecordError`.
    """
    kind = KINDS.get(entry.type)
    if kind is None:
        return None
    newest = _newest_version(kind)
    if entry.version > newest:
        raise NewerRecordError(
            f"offset {entry.offset} holds a {kind.__name__} of version {entry.version}, "
            f"this fairlead reads up to {newest}; the log is intact and was not changed: "
            "run the version that wrote it"
        )
    try:
        if entry.value is None:
            return Tombstone(kind, unpack_key(kind, entry.key))
        return convert.lift(_read(entry))
    except (ValueError, TypeError, LookupError, RecursionError, msgspec.MsgspecError) as error:
        raise MalformedRecordError(
            f"offset {entry.offset} holds no readable {kind.__name__} ({error}); "
            "all before it is intact: restore a backup, or export and repair"
        ) from error


def _newest_version(kind: type) -> int:
    return SHARDED_VERSION if issubclass(kind, records.Head) else VERSION


def _read(entry: Entry) -> msgspec.Struct:
    value = entry.value or b""
    if entry.version >= VERSION:
        return DECODE[entry.type](value)
    plain = msgspec.msgpack.decode(value, type=dict[str, Any])
    for version in range(entry.version, VERSION):
        plain = UPCASTS[entry.type, version](plain)
    return msgspec.convert(plain, SHAPES[entry.type])


KEYS: dict[type, Callable[[Any], Key]] = {
    records.MemberMetadata: lambda record: (record.member_id,),
    records.CurrentAssignment: lambda record: (record.member_id,),
    records.Loss: lambda record: (record.member_id,),
    records.Operator: lambda record: operator_key(record.scope, record.name, record.task),
    records.ConnectorConfig: lambda record: (record.connector,),
    records.TaskConfigs: lambda record: (record.connector,),
    records.TaskStatus: lambda record: tuple(record.resource),
    records.Offset: lambda record: offset_key(record.connector, record.partition),
    records.Committed: lambda record: commit_key(record.commit.commit_id),
    records.TaskProgress: lambda record: (record.last.connector, record.last.task),
    records.ConfiguredShard: lambda record: (record.number,),
    records.TargetShard: lambda record: (record.number,),
    records.CurrentShard: lambda record: (record.member_id, record.number),
}


def key_of(record: Record) -> Key:
    """Return what tells the record from others of its kind, for compaction."""
    if isinstance(record, Tombstone):
        return record.key
    spell = KEYS.get(type(record))
    return spell(record) if spell else ()
