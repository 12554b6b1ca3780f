"""Records as entries of a group's two logs, and back; the group rebuilt from them (LOG.md §7).

An entry names its record by a type number and a version, never by a class. An unknown type is
skipped and counted by the reader; a later version of a known type refuses to load, since
half-understood facts are worse than none; an older version is lifted step by step by the
`upcasts` of the catalogue before it is read.

A group is rebuilt from entries, or from what compaction left of them.
All of these tell of the same group, to the last index: every entry; of the entries before
any offset only the latest of each key, with or without tombstones, and all entries from
there on; only the latest of each key everywhere. A tombstone may go once no value of its
key is left before it, since what it does beyond its key is made good: the one record that
speaks of other keys is the target, and `settle` drops its shares of members that have no seat.
A member that was there before and came back says so itself (`joined_epoch`, `succession`). Not
allowed are a value that outlives its tombstone, a key without its latest value, another order.
Only the count of unknown records depends on how many of them are left.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, cast, get_args

from msgspec import MsgspecError, convert, msgpack
from msgspec.msgpack import Decoder, Encoder

from .. import records
from ..catalogue import BY_NUMBER, CATALOGUE, TYPE_OF, RecordType, entry_key, pack_key
from ..commits import OffsetRecord
from ..evolve import evolve, settle
from ..group import ANOTHER_GROUP, LARGEST_EPOCH, Group
from ..log.frame import Entry, NewEntry
from ..log.tables import LogKind
from ..model import Key
from ..records import OffsetsAltered, Record, Tombstone
from .wire import SHAPES, Shape

_ALL = frozenset(BY_NUMBER)
_OFFSETS = frozenset(TYPE_OF[each].number for each in get_args(OffsetRecord))

CONTROL: Final = LogKind("control", "offsets", _OFFSETS)
OFFSETS: Final = LogKind("offsets", "control", _ALL - _OFFSETS - {TYPE_OF[OffsetsAltered].number})


class CodecError(Exception):
    """The log holds entries that this version cannot read; the log was not changed."""


class NewerRecordError(CodecError):
    """A later version of fairlead wrote the record: run that version, or restore a backup."""


class UnwritableRecordError(CodecError):
    """A record is not encodable: it holds a lone surrogate, say, or a number beyond 64 bit."""


class MalformedRecordError(CodecError):
    """The frame is sound, but the bytes are no record of their type: its writer had a defect."""


class RecordFormat(NamedTuple):
    """How the records of a type are written and read."""

    row: RecordType
    version: int
    """The version that is written."""

    newest: int
    """The newest version that is read: of a head whose resources lie in parts it is one more,
    as a reader that knows of no parts must not take it for a head of nothing."""

    shape: type[Shape] | None
    """The form of the records on disk; None: they lie there as they are."""

    key_of: Callable[[Any], Key]
    read: Callable[[bytes], Any]
    """Returns what the bytes of the version that is written hold: a shape, or a record."""


def format_of(row: RecordType) -> RecordFormat:
    """Return the format of a type's records."""
    kind, version = row.record, 1 + len(row.upcasts)
    newest = version + 1 if kind in records.HEADS else version
    shape = SHAPES.get(kind)
    return RecordFormat(
        row, version, newest, shape, row.key.reader(), Decoder(shape or kind).decode
    )


FORMATS: Final = {row.number: format_of(row) for row in CATALOGUE}
"""By key type."""

_FORMAT_OF: Final = {form.row.record: form for form in FORMATS.values()}
_write = Encoder().encode


def encode(record: Record) -> NewEntry:
    """Return the record as an entry of the current version; raises `UnwritableRecordError`."""
    if isinstance(record, records.GroupMetadata) and record.group_epoch > LARGEST_EPOCH:
        raise UnwritableRecordError(
            f"the group epoch is {LARGEST_EPOCH}, the last that a log holds: nothing was changed;"
            f" {ANOTHER_GROUP}"
        )
    try:
        return _encode(record)
    except (ValueError, TypeError, OverflowError, RecursionError, MsgspecError) as error:
        raise UnwritableRecordError(
            f"{type(record).__name__} cannot be written down ({error}): nothing was changed"
        ) from error


def _encode(record: Record) -> NewEntry:
    if isinstance(record, Tombstone):
        number, key = entry_key(record.kind, record.key)
        return NewEntry(number, _FORMAT_OF[record.kind].version, key, None)
    form = _FORMAT_OF[type(record)]
    value = _write(form.shape.of(record) if form.shape else record)
    is_in_parts = isinstance(record, records.HEADS) and record.parts > 0
    version = form.newest if is_in_parts else form.version
    return NewEntry(form.row.number, version, pack_key(form.key_of(record)), value)


def decode(entry: Entry) -> Record | None:
    """Return the entry's record, or None where its type is unknown.

    Raises `NewerRecordError` and `MalformedRecordError`.
    """
    form = FORMATS.get(entry.type)
    if form is None:
        return None
    kind = form.row.record
    if entry.version > form.newest:
        raise NewerRecordError(
            f"offset {entry.offset} holds a {form.row.name} of version {entry.version}, "
            f"this fairlead reads up to {form.newest}; the log is intact and was not changed: "
            "run the version that wrote it, or go back to a backup (`fairlead docs upgrade`)"
        )
    try:
        if entry.value is None:
            return Tombstone(kind, form.row.key.parse(entry.key))
        is_old = entry.version < form.version
        value: Any = _lift(form, entry) if is_old else form.read(entry.value)
        record: Record = value.to_record() if form.shape else value
    except (ValueError, TypeError, LookupError, RecursionError, MsgspecError) as error:
        raise MalformedRecordError(
            f"offset {entry.offset} holds no readable {form.row.name} ({error}); "
            "all before it is intact: restore a backup, or export and repair"
        ) from error
    return record


def _lift(form: RecordFormat, entry: Entry) -> object:
    """Return an entry of an earlier version, decoded and upcast to the present version."""
    if entry.version < 1:
        raise ValueError("versions count from 1")
    plain: dict[str, Any] = msgpack.decode(entry.value or b"", type=dict[str, Any])
    for upcast in form.row.upcasts[entry.version - 1 :]:
        plain = upcast(plain)
    kind: Any = form.shape or form.row.record
    return cast("object", convert(plain, kind))


def restore(group_id: str, entries: Iterable[Entry], end: int) -> Group:
    """Return the group that results from the latest entry of each key, in offset order.

    `end` is the end of the log that they were read from. Raises what `decode` raises.
    """
    group = Group(group_id)
    fold(group, entries)
    settle(group)
    group.end = end
    return group


def fold(group: Group, entries: Iterable[Entry]) -> None:
    """Fold entries into a group; those of an unknown type are skipped and counted."""
    for entry in entries:
        record = decode(entry)
        if record is None:
            group.unknown_records += 1
            group.end = entry.offset + 1
        else:
            evolve(group, record, entry.offset)
