# pyright: basic
"""Reads the changes of tables from the slot, in windows.

A peek decodes whole transactions. The server buffers its result until it is fetched, so that a
transaction of any size is read in parts, and the worker holds only a window. The next window
continues within a transaction; after a restart the slot returns the same transaction again, and
changes that were read are skipped.
"""

from collections import deque
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import sql

from .....spi.source import Limit
from ...names import TableName
from .changes.groups import ChangeGroups, Group
from .changes.pgoutput import Change, PgOutput, Relation, TransactionEnd
from .changes.positions import Position
from .following import Following
from .server.session import LogSession
from .server.slot import Slot, SlotState

_FIRST_FETCH, _MOST_FETCHED, _FETCHED_BYTES = 16, 2_000, 1 << 22
"""The first and the most messages in a fetch, and its target in bytes."""
_REREAD_BYTES: Final = 256
"""For each so many bytes of WAL that a peek reads again, it asks for one more message."""
_LEAST_BYTES: Final = 64
"""The fewest bytes of WAL that a message takes, of those that were read and are not logged yet."""
_DECLARE: Final = sql.SQL("DECLARE fairlead_peek NO SCROLL CURSOR FOR {}")
_FETCH: Final = sql.SQL("FETCH {} FROM fairlead_peek")


class Window(NamedTuple):
    """Groups of changes, with the new position."""

    groups: tuple[Group, ...]
    end: Position
    has_more: bool
    held: TableName | None
    """A new table whose changes come next; it must be added, or its snapshot read, first."""
    slot: SlotState


@dataclass
class _Peek:
    """A peek with its fetch state."""

    cursor: "psycopg.Cursor[Any]"
    slot: SlotState
    most: int
    """The requested number of messages; fewer means that there are no more."""
    output: PgOutput = field(default_factory=PgOutput)
    left: "deque[Change | TransactionEnd]" = field(default_factory=deque)
    """The fetched changes that are not returned yet."""
    fetched: int = 0
    ahead: int = _FIRST_FETCH
    """How many messages to fetch next."""
    is_over: bool = False

    def next(self) -> Change | TransactionEnd | None:
        """Return the next change; None: there is none."""
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
    """Reads a slot.

    `find` tells whether a new table belongs to the connector, `columns_of` what tells the columns
    of rows apart.
    """

    def __init__(
        self,
        session: LogSession,
        slot: Slot,
        find: Callable[[TableName], bool],
        columns_of: Callable[[Relation], Hashable],
    ) -> None:
        self.session = session
        self.slot = slot
        self._find = find
        self._columns_of = columns_of
        self._foreign: set[tuple[int, TableName]] = set()
        """Tables that do not belong to the connector, by oid and name."""
        self._peek: _Peek | None = None
        self._quiet = 0
        """The LSN up to which the WAL has no changes."""

    @property
    def is_open(self) -> bool:
        """Whether a peek is partly read."""
        return self._peek is not None

    def read(
        self,
        place: Position,
        logged: Callable[[], Position],
        tables: Mapping[TableName, Following],
        limit: Limit,
    ) -> Window | None:
        """Return the next window; None: no WAL was written since the last one.

        `logged` returns the place in the offset log, which may be behind that to read from.
        """
        with self.session.connected() as connection:
            peek = self._peek or self._begin(connection, place, logged, limit)
            if peek is None:
                return None
            self._peek = None  # after an error, a new peek begins
            window = self._collect(peek, place, tables, limit)
            if not window.held and (peek.left or not peek.is_over):
                self._peek = peek
            else:
                connection.execute("COMMIT")
            self._quiet = 0 if window.groups or window.has_more else peek.slot.written
            return window

    def rewind(self) -> None:
        """Forget the last window: the next one begins at its own place."""
        self._peek = None
        self._quiet = 0

    def _begin(
        self,
        connection: "psycopg.Connection[Any]",
        place: Position,
        logged: Callable[[], Position],
        limit: Limit,
    ) -> _Peek | None:
        if connection.info.transaction_status is not psycopg.pq.TransactionStatus.IDLE:
            connection.execute("ROLLBACK")
        state = self.slot.check(connection, place)
        begin = state.confirmed
        if begin < place.lsn:  # otherwise changes that are read would be returned again
            begin = max(begin, min(place.lsn, logged().lsn))
        if begin > state.confirmed:
            self.slot.advance(connection, begin)
        if state.written == self._quiet:
            return None
        connection.execute("BEGIN READ ONLY")
        cursor = connection.cursor(binary=True)
        ahead = max(0, place.lsn - begin) // _LEAST_BYTES
        most = max(limit.rows, state.reread_bytes // _REREAD_BYTES) + ahead
        cursor.execute(_DECLARE.format(self.slot.peek(state.written, most)))
        return _Peek(cursor, state, most)

    def _collect(
        self, peek: _Peek, place: Position, tables: Mapping[TableName, Following], limit: Limit
    ) -> Window:
        groups, held = ChangeGroups(limit, self._columns_of), None
        end = place
        while not groups.is_full and (each := peek.next()) is not None:
            if isinstance(each, Change) and each.position > place:
                following = tables.get(each.relation.name)
                is_wanted = following and following.wants(each, peek.slot.next_xid)
                if following.is_held and is_wanted if following else self._is_held(each.relation):
                    held = each.relation.name
                if held or (following and is_wanted and not groups.add(following.table, each)):
                    peek.left.appendleft(each)
                    break
            end = max(end, each.position)
        while peek.left and isinstance(peek.left[0], TransactionEnd):
            end = max(end, peek.left.popleft().position)
        is_over = peek.is_over and not peek.left
        is_all = is_over and peek.fetched < peek.most
        if is_all:
            end = max(end, Position(peek.slot.written))
        return Window(groups.groups, end, not is_all, held, peek.slot)

    def _is_held(self, relation: Relation) -> bool:
        """Return whether a new table belongs to the connector; a negative answer is cached."""
        key = relation.oid, relation.name
        if key in self._foreign:
            return False
        is_ours = self._find(relation.name)
        if not is_ours:
            self._foreign.add(key)
        return is_ours
