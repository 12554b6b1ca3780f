"""Decoder of pgoutput messages, protocol version 1, to changes of rows.

Source: "Logical Replication Message Formats" in PostgreSQL's manual. Values are texts. The value of
an unchanged TOAST column is missing in an update (`UNCHANGED`), unless the old row has it, with
replica identity FULL.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from ......spi.errors import BadInput
from ....names import TableName
from .positions import Position

_EPOCH_MS: Final = 946_684_800_000
"""PostgreSQL's epoch, 2000-01-01, in ms since 1970."""
_INT32: Final = struct.Struct(">i")
_UINT32: Final = struct.Struct(">I")
_INT16: Final = struct.Struct(">h")
_BEGIN: Final = struct.Struct(">xQqI")
_TEXT, _NULL = b"tn"
"""The kinds of values; any other is an unchanged TOAST value."""
_COMMIT: Final = struct.Struct(">xxQQ")


class Unchanged(Enum):
    """The marker of an unchanged TOAST value."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED
Value = str | None | Unchanged
Values = tuple[Value, ...]


class Operation(Enum):
    """The kind of a change, as Debezium's letter."""

    READ = "r"
    CREATE = "c"
    UPDATE = "u"
    DELETE = "d"
    TRUNCATE = "t"


class RelationColumn(NamedTuple):
    """A column at the time of the change."""

    name: str
    is_key: bool
    type_oid: int
    width: int


@dataclass(frozen=True)
class Relation:
    """A table at the time of the change."""

    oid: int
    name: TableName
    identity: str
    """The replica identity: d (the primary key), i (an index), f (all columns), n (none)."""
    columns: tuple[RelationColumn, ...]

    @property
    def key(self) -> tuple[int, ...]:
        """The positions of the replica identity's columns; empty: all columns."""
        if self.identity == "f":
            return ()
        return tuple(at for at, each in enumerate(self.columns) if each.is_key)


class Change(NamedTuple):
    """A change of one row; of a TRUNCATE all `values` are null."""

    position: Position
    xid: int
    """The lower 32 bits of the transaction id."""
    time_ms: int
    """The commit time, in ms since 1970."""
    relation: Relation
    operation: Operation
    values: Values
    old: Values
    """The old row of an update: its key, if that changed, or with replica
    identity FULL the whole row; else empty."""
    size: int
    """The size of its message, in bytes."""
    emptied: frozenset[TableName] = frozenset()
    """The published tables that its TRUNCATE empties."""


class TransactionEnd(NamedTuple):
    """The end of a transaction."""

    position: Position


class PgOutput:
    """Decodes the messages of one peek, in order."""

    def __init__(self) -> None:
        self._relations: dict[int, Relation] = {}
        self._lsn, self._time_ms, self._xid = 0, 0, 0
        """The fields of the current transaction."""
        self._seq = 0
        """The number of its changes so far."""

    def take(self, message: bytes) -> Iterator[Change | TransactionEnd]:
        """Decode a message; raises `BadInput` if it is malformed."""
        try:
            yield from self._read(message)
        except (struct.error, IndexError, KeyError) as error:
            raise BadInput(f"the server's log has a message that cannot be read: {error}") from None
        except UnicodeDecodeError as error:
            raise BadInput(f"the server's log has a text that is no UTF-8: {error}") from None

    def _read(self, message: bytes) -> Iterator[Change | TransactionEnd]:
        match message[:1]:
            case b"B":
                self._lsn, micros, self._xid = _BEGIN.unpack_from(message)
                self._time_ms, self._seq = micros // 1000 + _EPOCH_MS, 0
            case b"C":
                yield TransactionEnd(Position(_COMMIT.unpack_from(message)[1]))
            case b"R":
                self._learn(_relation(message))
            case b"I":
                yield self._added_or_deleted(message, Operation.CREATE)
            case b"U":
                yield self._update(message)
            case b"D":
                yield self._added_or_deleted(message, Operation.DELETE)
            case b"T":
                yield from self._truncates(message)
            case _:  # origins, types and logical messages have no rows
                return

    def _learn(self, relation: Relation) -> None:
        """Keep a relation; equal ones of a table, one after another, are one object."""
        if self._relations.get(relation.oid) != relation:
            self._relations[relation.oid] = relation

    def _added_or_deleted(self, message: bytes, operation: Operation) -> Change:
        relation = self._relation_at(message, 1)
        return self._change(relation, operation, _row(message, 6)[0], message)

    def _update(self, message: bytes) -> Change:
        """Return an update, with the old row."""
        relation = self._relation_at(message, 1)
        kind, at = message[5:6], 6
        old: Values = ()
        if kind != b"N":
            old, at = _row(message, at)
            at += 1
        new, _ = _row(message, at)
        if kind != b"N":  # the old row of a key has nulls in the place of other columns
            told = range(len(old)) if kind == b"O" else relation.key
            pairs = enumerate(zip(new, old, strict=True))
            new = tuple(was if now is UNCHANGED and at in told else now for at, (now, was) in pairs)
        return self._change(relation, Operation.UPDATE, new, message, old)

    def _change(
        self,
        relation: Relation,
        operation: Operation,
        values: Values,
        message: bytes,
        old: Values = (),
    ) -> Change:
        self._seq += 1
        at, size = Position(self._lsn, self._seq), len(message)
        return Change(at, self._xid, self._time_ms, relation, operation, values, old, size)

    def _truncates(self, message: bytes) -> Iterator[Change]:
        (count,) = _INT32.unpack_from(message, 1)
        relations = [self._relation_at(message, 6 + 4 * number) for number in range(count)]
        emptied = frozenset(each.name for each in relations)
        for relation in relations:
            nothing: Values = (None,) * len(relation.columns)
            change = self._change(relation, Operation.TRUNCATE, nothing, message)
            yield change._replace(emptied=emptied)

    def _relation_at(self, message: bytes, at: int) -> Relation:
        return self._relations[_UINT32.unpack_from(message, at)[0]]


def _row(message: bytes, at: int) -> tuple[Values, int]:
    """Return the values of a row, and the position after it."""
    (count,) = _INT16.unpack_from(message, at)
    at += 2
    values: list[Value] = []
    for _ in range(count):
        kind = message[at]
        at += 1
        if kind == _TEXT:
            (size,) = _INT32.unpack_from(message, at)
            at += 4
            values.append(message[at : at + size].decode())
            at += size
        else:
            values.append(None if kind == _NULL else UNCHANGED)
    return tuple(values), at


def _relation(message: bytes) -> Relation:
    (oid,) = _UINT32.unpack_from(message, 1)
    schema, at = _text(message, 5)
    table, at = _text(message, at)
    identity = chr(message[at])
    (count,) = _INT16.unpack_from(message, at + 1)
    at += 3
    columns: list[RelationColumn] = []
    for _ in range(count):
        is_key = bool(message[at] & 1)
        name, at = _text(message, at + 1)
        (kind,) = _UINT32.unpack_from(message, at)
        (width,) = _INT32.unpack_from(message, at + 4)
        columns.append(RelationColumn(name, is_key, kind, width))
        at += 8
    return Relation(oid, TableName(schema or "pg_catalog", table), identity, tuple(columns))


def _text(message: bytes, at: int) -> tuple[str, int]:
    end = message.index(b"\0", at)
    return message[at:end].decode(), end + 1
