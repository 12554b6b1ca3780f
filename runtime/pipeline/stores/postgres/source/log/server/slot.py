# pyright: basic
"""A logical replication slot: its state, checks, and peeks.

A slot retains the WAL from its confirmed LSN on, which is never after the offset in the offset log:
uncommitted changes can be read again, and a loss is detected.
"""

import re
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import sql

from ......spi.errors import BadInput, SourceAway
from ....tables import keys
from ....tables.snapshots import parse_lsn, spell_lsn
from ..changes.positions import Position

_STATE: Final = """
SELECT plugin::text, slot_type::text, database::text = current_database(), temporary,
    confirmed_flush_lsn::text, active_pid, wal_status::text, (pg_current_wal_flush_lsn()
        - coalesce(restart_lsn, confirmed_flush_lsn, pg_current_wal_flush_lsn()))::int8,
    (SELECT setting::int8 FROM pg_settings WHERE name = 'max_slot_wal_keep_size'),
    pg_current_wal_flush_lsn()::text, pg_snapshot_xmax(pg_current_snapshot())::text::int8,
    coalesce(confirmed_flush_lsn - restart_lsn, 0)::int8
FROM pg_replication_slots WHERE slot_name = %s"""
_PEEK: Final = """
SELECT data FROM pg_logical_slot_peek_binary_changes({}, {}::pg_lsn, {}, 'proto_version', '1',
    'publication_names', {})"""
_DROP: Final = """
SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s"""
_MEBIBYTE: Final = 1 << 20
_BEHIND: Final = "cannot advance replication slot"

READ_AGAIN: Final = "Read the tables again: stop the connector, seek to earliest, resume"


_READABLE: Final = 30
"""How many characters of the connector's name the slot's name has."""


def own_name(connector: str) -> str:
    """Return the name of a connector's own slot."""
    shown = re.sub(r"[^a-z0-9]+", "_", connector.lower())[:_READABLE]
    return f"fairlead_{shown}_{blake2b(connector.encode(), digest_size=4).hexdigest()}"


class SlotGone(BadInput):
    """The changes after a position cannot be read from the slot any more."""


class SlotState(NamedTuple):
    """The state of a slot in the server."""

    confirmed: int
    """The confirmed LSN; the WAL before it is not retained."""
    pid: int | None
    """The backend process that uses the slot."""
    is_lost: bool
    kept_bytes: int
    """The size of the retained WAL."""
    most_bytes: int | None
    """The limit of the retained WAL; None: no limit."""
    written: int
    """The end of the WAL."""
    next_xid: int
    """The next transaction id."""
    reread_bytes: int
    """The WAL that each peek reads again, since the oldest open transaction began."""


@dataclass(frozen=True)
class Slot:
    """A slot, with its publication."""

    name: str
    publication: str
    is_dropped_on_stop: bool = False
    """Whether to drop it when the connector is STOPPED, so that no WAL is retained."""

    def read_state(self, connection: "psycopg.Connection[Any]") -> SlotState | None:
        """Return its state; None: it does not exist. Raises `BadInput` if it is unusable."""
        row = connection.execute(_STATE, (self.name,)).fetchone()
        if row is None:
            return None
        plugin, kind, is_here, is_temporary, confirmed, pid, status, kept, most, *rest = row
        if kind != "logical" or plugin != "pgoutput" or not is_here or is_temporary:
            raise BadInput(
                f"the replication slot {self.name} is not for this connector: it must be a logical "
                f"one of pgoutput in this database, and stay. Name another in {keys.SLOT}"
            )
        limit = None if most is None or most < 0 else most * _MEBIBYTE
        is_lost = status == "lost" or confirmed is None
        begin = 0 if confirmed is None or is_lost else parse_lsn(confirmed)
        return SlotState(begin, pid, is_lost, kept, limit, parse_lsn(rest[0]), *rest[1:])

    def make(self, connection: "psycopg.Connection[Any]") -> None:
        """Create it; raises `SourceAway` while older transactions are open."""
        try:
            query = "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')"
            connection.execute(query, (self.name,))
        except psycopg.errors.LockNotAvailable:
            raise SourceAway(
                f"the slot {self.name} waits for transactions that are open (backend_xid in "
                "pg_stat_activity, pg_prepared_xacts): it begins once they have ended"
            ) from None

    def drop(self, connection: "psycopg.Connection[Any]") -> None:
        """Drop it, if it exists."""
        connection.execute(_DROP, (self.name,))

    def check(self, connection: "psycopg.Connection[Any]", place: Position) -> SlotState:
        """Return its state; raises `SlotGone` if the changes after a position are gone."""
        state = self.read_state(connection)
        if state is None:
            raise SlotGone(
                f"the replication slot {self.name} is gone, and what was written since "
                f"{spell_lsn(place.lsn)} with it. {READ_AGAIN}"
            )
        if state.is_lost:
            raise SlotGone(
                f"the replication slot {self.name} was invalidated: it would have kept more of the "
                "log than max_slot_wal_keep_size allows, and what was written since "
                f"{spell_lsn(place.lsn)} is gone. {READ_AGAIN}"
            )
        if state.confirmed > place.lsn:
            raise SlotGone(
                f"the replication slot {self.name} is at {spell_lsn(state.confirmed)}, and this "
                f"connector has read up to {spell_lsn(place.lsn)}: it was created again, or "
                f"somebody else advances it, and what lies between is gone. {READ_AGAIN}"
            )
        if state.written < place.lsn:
            raise SlotGone(
                f"this connector has read up to {spell_lsn(place.lsn)}, and the server's log ends "
                f"at {spell_lsn(state.written)}: it was restored, or is another one. {READ_AGAIN}"
            )
        return state

    def advance(self, connection: "psycopg.Connection[Any]", lsn: int) -> None:
        """Advance the slot to an LSN, if it is not beyond it."""
        try:
            query = "SELECT pg_replication_slot_advance(%s, %s::pg_lsn)"
            connection.execute(query, (self.name, spell_lsn(lsn)))
        except psycopg.errors.ObjectNotInPrerequisiteState as error:
            if _BEHIND not in str(error):
                raise

    def peek(self, lsn: int, most: int) -> sql.Composed:
        """Return the query for about `most` messages up to an LSN; transactions are not split."""
        publication = sql.Identifier(self.publication).as_string()
        given = (self.name, spell_lsn(lsn), most, publication)
        return sql.SQL(_PEEK).format(*map(sql.Literal, given))
