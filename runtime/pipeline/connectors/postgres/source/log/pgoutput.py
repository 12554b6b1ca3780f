"""What pgoutput writes, protocol version 1: bytes of messages in, changes of rows out.

Source: "Logical Replication Message Formats" in PostgreSQL's manual. Values come as texts; one of
an update that is stored beside its row and did not change does not come at all (`UNCHANGED`), but
for what the old row tells of it, where the table's replica identity is FULL.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from .....spi.errors import BadInput
from ...names import TableName
from .positions import Position

_EPOCH_MS: Final = 946_684_800_000
"""2000-01-01, from which PostgreSQL counts, since 1970."""
_INT32: Final = struct.Struct(">i")
_UINT32: Final = struct.Struct(">I")
_INT16: Final = struct.Struct(">h")
_BEGIN: Final = struct.Struct(">xQqI")
_TEXT, _NULL = b"tn"
"""What kinds of values are told by; any other is one that did not change."""
_COMMIT: Final = struct.Struct(">xxQQ")


class Unchanged(Enum):
    """The kind of value that an update leaves out."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED
Value = str | None | Unchanged
Values = tuple[Value, ...]


class Operation(Enum):
    """What became of a row, in Debezium's letters."""

    READ = "r"
    CREATE = "c"
    UPDATE = "u"
    DELETE = "d"
    TRUNCATE = "t"


class RelationColumn(NamedTuple):
    """A column as it was when the change was made."""

    name: str
    is_key: bool
    type_oid: int
    width: int


@dataclass(frozen=True)
class Relation:
    """A table as it was when the change was made."""

    oid: int
    name: TableName
    identity: str
    """The replica identity: d (the primary key), i (an index), f (all columns), n (none)."""
    columns: tuple[RelationColumn, ...]

    @property
    def key(self) -> tuple[int, ...]:
        """The places of the columns that tell rows apart; none if all of them have to."""
        if self.identity == "f":
            return ()
        return tuple(at for at, each in enumerate(self.columns) if each.is_key)


class Change(NamedTuple):
    """A change of one row; of a TRUNCATE all `values` are null."""

    position: Position
    xid: int
    """The transaction, 32 bits of it."""
    time_ms: int
    """When it committed, since 1970."""
    relation: Relation
    operation: Operation
    values: Values
    old: Values
    """What an update tells of the row before it: its key, if that changed, or with a replica
    identity of FULL all of it; else nothing."""
    size: int
    """Of its message, in bytes."""


class TransactionEnd(NamedTuple):
    """The end of a transaction: all of it is read."""

    position: Position


class PgOutput:
    """Takes the messages of one peek, in their order."""

    def __init__(self) -> None:
        self._relations: dict[int, Relation] = {}
        self._lsn, self._time_ms, self._xid = 0, 0, 0
        """Of the transaction that is told."""
        self._seq = 0
        """How many changes of it were told."""

    def take(self, message: bytes) -> Iterator[Change | TransactionEnd]:
        """Yield what a message tells; raises `BadInput` for one that is none."""
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
                relation = _relation(message)
                self._relations[relation.oid] = relation
            case b"I":
                yield self._added_or_deleted(message, Operation.CREATE)
            case b"U":
                yield self._update(message)
            case b"D":
                yield self._added_or_deleted(message, Operation.DELETE)
            case b"T":
                yield from self._truncates(message)
            case _:  # origins, types and messages of others tell nothing of rows
                return

    def _added_or_deleted(self, message: bytes, operation: Operation) -> Change:
        relation = self._relation_at(message, 1)
        return self._change(relation, operation, _row(message, 6)[0], message)

    def _update(self, message: bytes) -> Change:
        """Return an update, with what it tells of the row before."""
        relation = self._relation_at(message, 1)
        kind, at = message[5:6], 6
        old: Values = ()
        if kind != b"N":
            old, at = _row(message, at)
            at += 1
        new, _ = _row(message, at)
        if kind == b"O":
            pairs = zip(new, old, strict=True)
            new = tuple(was if now is UNCHANGED else now for now, was in pairs)
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
        for number in range(count):
            relation = self._relation_at(message, 6 + 4 * number)
            nothing: Values = (None,) * len(relation.columns)
            yield self._change(relation, Operation.TRUNCATE, nothing, message)

    def _relation_at(self, message: bytes, at: int) -> Relation:
        return self._relations[_UINT32.unpack_from(message, at)[0]]


def _row(message: bytes, at: int) -> tuple[Values, int]:
    """Return the values of a row, and where what follows it begins."""
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
