# pyright: basic
"""The changes of tables, window by window, as a peek at the slot gives them.

A peek decodes whole transactions: the server keeps what it gave until it is fetched, so that a
transaction of any size is read in parts, and the worker holds no more than a window. A window that
ends within a transaction is read on from where it ended; after a restart the slot gives the same
transaction again, and what was read of it is passed over.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import sql

from .....spi.source import Limit
from ...names import TableName
from ...tables.snapshots import LogSnapshot, whole_xid
from .pgoutput import Change, PgOutput, Relation, TransactionEnd
from .positions import Position
from .session import LogSession
from .shares import FollowedTable
from .slot import Slot, SlotState

_FIRST_FETCH, _MOST_FETCHED, _FETCHED_BYTES = 16, 2_000, 1 << 22
"""How many messages a round trip brings: as many as are about so many bytes."""
_REREAD_BYTES: Final = 256
"""For each so many bytes that a look reads again it asks for a message, lest it do little else."""
_DECLARE: Final = sql.SQL("DECLARE fairlead_peek NO SCROLL CURSOR FOR {}")
_FETCH: Final = sql.SQL("FETCH {} FROM fairlead_peek")


@dataclass(frozen=True)
class Following:
    """A table, the snapshot that its rows were read by, and how far its changes were read."""

    table: FollowedTable
    snapshot: LogSnapshot | None
    """None: all changes count."""
    place: Position

    def wants(self, change: Change, next_xid: int) -> bool:
        """Tell whether a change is neither read yet nor in the snapshot."""
        if change.position <= self.place:
            return False
        seen = self.snapshot
        return seen is None or not seen.sees(whole_xid(change.xid, next_xid))


class Window(NamedTuple):
    """Changes by their tables, each in order, and how far they lead.

    All changes of a table were made to one layout of it.
    """

    groups: tuple[tuple[FollowedTable, tuple[Change, ...]], ...]
    end: Position
    has_more: bool
    held: TableName | None
    """A table whose changes come next, and which the connector does not know yet."""
    slot: SlotState


@dataclass
class _Peek:
    """A peek that is being fetched."""

    cursor: "psycopg.Cursor[Any]"
    slot: SlotState
    most: int
    """About so many messages were asked for: if fewer came, there were no more."""
    output: PgOutput = field(default_factory=PgOutput)
    left: "deque[Change | TransactionEnd]" = field(default_factory=deque)
    """What was fetched, and is still to be told."""
    fetched: int = 0
    ahead: int = _FIRST_FETCH
    """How many messages to fetch next."""
    is_over: bool = False

    def next(self) -> Change | TransactionEnd | None:
        """Take what comes next, None: nothing does."""
        while not self.left and not self.is_over:
            rows = self.cursor.execute(_FETCH.format(self.ahead)).fetchall()
            self.is_over = len(rows) < self.ahead
            self.fetched += len(rows)
            size = sum(len(message) for (message,) in rows)
            self.ahead = max(1, min(_MOST_FETCHED, _FETCHED_BYTES * len(rows) // max(1, size)))
            for (message,) in rows:
                self.left.extend(self.output.take(message))
        return self.left.popleft() if self.left else None


class ChangeStream:
    """Reads a slot; `find` tells of a table whether it is to be followed although nobody told."""

    def __init__(self, session: LogSession, slot: Slot, find: Callable[[TableName], bool]) -> None:
        self.session = session
        self.slot = slot
        self._find = find
        self._foreign: set[tuple[int, TableName]] = set()
        """Tables that are not to be followed, by number and name."""
        self._peek: _Peek | None = None
        self._quiet = 0
        """Up to here the log was looked at, and nothing was found."""

    @property
    def is_open(self) -> bool:
        """Whether a peek is half read."""
        return self._peek is not None

    def read(
        self, place: Position, tables: Mapping[TableName, Following], limit: Limit
    ) -> Window | None:
        """Return the next window; None: nothing was written since the last."""
        with self.session.talking() as connection:
            peek = self._peek or self._begin(connection, place, limit)
            if peek is None:
                return None
            self._peek = None  # should it fail, the next one begins anew
            window = self._collect(peek, place, tables, limit)
            if not window.held and (peek.left or not peek.is_over):
                self._peek = peek
            else:
                connection.execute("COMMIT")
            self._quiet = 0 if window.groups or window.has_more else peek.slot.written
            return window

    def _begin(
        self, connection: "psycopg.Connection[Any]", place: Position, limit: Limit
    ) -> _Peek | None:
        if connection.info.transaction_status is not psycopg.pq.TransactionStatus.IDLE:
            connection.execute("ROLLBACK")
        state = self.slot.check(connection, place)
        if state.confirmed < place.lsn:  # else what is read already were given again
            self.slot.advance(connection, place.lsn)
        if state.written == self._quiet:
            return None
        connection.execute("BEGIN READ ONLY")
        cursor = connection.cursor(binary=True)
        most = max(limit.rows, state.reread_bytes // _REREAD_BYTES)
        cursor.execute(_DECLARE.format(self.slot.peek(state.written, most)))
        return _Peek(cursor, state, most)

    def _collect(
        self, peek: _Peek, place: Position, tables: Mapping[TableName, Following], limit: Limit
    ) -> Window:
        made, held = _Groups(limit), None
        end = place
        while not made.is_full and (each := peek.next()) is not None:
            if isinstance(each, Change) and each.position > place:
                following = tables.get(each.relation.name)
                if following is None and self._is_held(each.relation):
                    held = each.relation.name
                is_wanted = following and following.wants(each, peek.slot.next_xid)
                if held or (following and is_wanted and not made.add(following.table, each)):
                    peek.left.appendleft(each)
                    break
            end = max(end, each.position)
        while peek.left and isinstance(peek.left[0], TransactionEnd):
            end = max(end, peek.left.popleft().position)
        is_over = peek.is_over and not peek.left
        is_all = is_over and peek.fetched < peek.most
        if is_all:
            end = max(end, Position(peek.slot.written))
        return Window(made.groups, end, not is_all, held, peek.slot)

    def _is_held(self, relation: Relation) -> bool:
        """Tell whether a table that nobody told of is to be followed: what is not stays so."""
        key = relation.oid, relation.name
        if key in self._foreign:
            return False
        is_ours = self._find(relation.name)
        if not is_ours:
            self._foreign.add(key)
        return is_ours


class _Groups:
    """Changes as they are collected, by table."""

    def __init__(self, limit: Limit) -> None:
        self._limit = limit
        self._found: dict[FollowedTable, list[Change]] = {}
        self._rows, self._bytes = 0, 0

    def add(self, table: FollowedTable, change: Change) -> bool:
        """Take a change; False if its table had another layout for those before."""
        group = self._found.setdefault(table, [])
        if group and group[-1].relation != change.relation:
            return False
        group.append(change)
        self._rows += 1
        self._bytes += change.size
        return True

    @property
    def is_full(self) -> bool:
        return self._rows >= self._limit.rows or self._bytes >= self._limit.bytes

    @property
    def groups(self) -> tuple[tuple[FollowedTable, tuple[Change, ...]], ...]:
        return tuple((table, tuple(group)) for table, group in self._found.items())
