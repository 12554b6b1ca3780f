# pyright: basic
"""A replication slot: how far it is, and what became of it.

A slot keeps the log from where it was advanced to last, which is never behind what is committed in
our log: so what was not committed can be read again, and what is gone can be told.
"""

import re
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import sql

from .....spi.errors import BadInput, SourceAway
from ...tables import keys
from ...tables.snapshots import parse_lsn, spell_lsn
from .positions import Position

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

READ_ANEW: Final = "Read the tables anew: stop the connector, seek to earliest, resume"


_READABLE: Final = 30
"""Letters of a connector's name that the name of its slot begins with."""


def own_name(connector: str) -> str:
    """Return the name of a connector's own slot."""
    shown = re.sub(r"[^a-z0-9]+", "_", connector.lower())[:_READABLE]
    return f"fairlead_{shown}_{blake2b(connector.encode(), digest_size=4).hexdigest()}"


class SlotGone(BadInput):
    """What comes after a place cannot be read by the slot any more."""


class SlotState(NamedTuple):
    """A slot as the server knows it."""

    confirmed: int
    """What lies before it is not kept."""
    pid: int | None
    """Whose it is at the moment."""
    is_lost: bool
    kept_bytes: int
    """How much of the log it keeps."""
    most_bytes: int | None
    """How much it may keep; None: as much as there is room for."""
    written: int
    """How far the log goes."""
    next_xid: int
    """The transaction that begins next."""
    reread_bytes: int
    """How much each look reads again of what is read: since the oldest that is open began."""


@dataclass(frozen=True)
class Slot:
    """A slot by its name, and the publication whose changes it gives."""

    name: str
    publication: str
    is_dropped_on_stop: bool = False
    """Whether it goes with a connector that is STOPPED, so that the server keeps no log for it."""

    def look(self, connection: "psycopg.Connection[Any]") -> SlotState | None:
        """Return its state, None if there is none; raises `BadInput` if it is of no use here."""
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
        """Make it; raises `SourceAway` while transactions are open that are older."""
        try:
            query = "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')"
            connection.execute(query, (self.name,))
        except psycopg.errors.LockNotAvailable:
            raise SourceAway(
                f"the slot {self.name} waits for transactions that are open (backend_xid in "
                "pg_stat_activity, pg_prepared_xacts): it begins once they have ended"
            ) from None

    def drop(self, connection: "psycopg.Connection[Any]") -> None:
        """Drop it, if it is there."""
        connection.execute(_DROP, (self.name,))

    def check(self, connection: "psycopg.Connection[Any]", place: Position) -> SlotState:
        """Return its state; raises `SlotGone` if what comes after a place cannot be read."""
        found = self.look(connection)
        if found is None:
            raise SlotGone(
                f"the replication slot {self.name} is gone, and what was written since "
                f"{spell_lsn(place.lsn)} with it. {READ_ANEW}"
            )
        if found.is_lost:
            raise SlotGone(
                f"the replication slot {self.name} was invalidated: it would have kept more of the "
                "log than max_slot_wal_keep_size allows, and what was written since "
                f"{spell_lsn(place.lsn)} is gone. {READ_ANEW}"
            )
        if found.confirmed > place.lsn:
            raise SlotGone(
                f"the replication slot {self.name} is at {spell_lsn(found.confirmed)}, and this "
                f"connector has read up to {spell_lsn(place.lsn)}: it was made anew, or somebody "
                f"else advances it, and what lies between is gone. {READ_ANEW}"
            )
        if found.written < place.lsn:
            raise SlotGone(
                f"this connector has read up to {spell_lsn(place.lsn)}, and the server's log ends "
                f"at {spell_lsn(found.written)}: it was restored, or is another one. {READ_ANEW}"
            )
        return found

    def advance(self, connection: "psycopg.Connection[Any]", lsn: int) -> None:
        """Let go of what lies before an LSN; does nothing if that is gone already."""
        try:
            query = "SELECT pg_replication_slot_advance(%s, %s::pg_lsn)"
            connection.execute(query, (self.name, spell_lsn(lsn)))
        except psycopg.errors.ObjectNotInPrerequisiteState as error:
            if _BEHIND not in str(error):
                raise

    def peek(self, lsn: int, most: int) -> sql.Composed:
        """Return the query for messages up to an LSN, about so many: no transaction is split."""
        publication = sql.Identifier(self.publication).as_string()
        given = (self.name, spell_lsn(lsn), most, publication)
        return sql.SQL(_PEEK).format(*map(sql.Literal, given))
