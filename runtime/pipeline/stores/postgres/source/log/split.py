# pyright: basic
"""The split of a connector in mode log: creates publication and slot, and begins snapshots.

    publication     has the tables before the slot is created, so that the slot can use it
    slot            retains the WAL from here on
    wait            until older transactions have ended: their changes may be missing in the WAL
    snapshot S      of new tables; their rows are read as S sees them, in chunks

Started snapshots are kept as long as an offset refers to them and the slot exists.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import psycopg

from .......events.commits import Document, identity
from .....spi.config import ParsedConfig
from .....spi.context import Context
from .....spi.errors import BadInput, NotReady
from ...dotted import by_present_names
from ...names import TableName
from ...tables import keys
from ...tables.catalog import FoundTable, TableFilter, pages_of, refuse_replaced
from ...tables.checks.unread import UnreadTables, refuse_none
from ...tables.session import ReadSession
from ...tables.shares import CHUNK_PAGES, TableShare, TaskShare, begun_share, deal, shares_by_table
from ...tables.snapshots import LogSnapshot, oldest_open, parse_lsn, spell_lsn
from .changes.positions import slot_partition, table_partition
from .changes.shares import LogShare
from .renewal import is_overtaken, offsets_since
from .server.identities import Identities, key_of_target
from .server.prerequisites import flaw_in_server, flaw_in_tables
from .server.publication import Publication
from .server.session import LogSession
from .server.slot import READ_AGAIN, Slot, SlotState, own_name


class LogSplit:
    """Splits the work of one connector, repeatedly."""

    def __init__(
        self,
        context: Context,
        config: Mapping[str, str],
        settings: ParsedConfig,
        session: ReadSession,
        talk: LogSession,
    ) -> None:
        self._context = context
        self._config = config
        self._settings = settings
        self._session = session
        self._talk = talk
        self.slot = slot_of(settings, context.resource.connector)
        self._publication = publication_of(settings, self.slot)
        self._has_snapshot = settings.text(keys.SNAPSHOT_MODE) != keys.NO_DATA
        in_force = [each for each in context.split if keys.TASK_SHARE in each]
        self._known = shares_by_table(TaskShare.parse(each[keys.TASK_SHARE]) for each in in_force)
        """The tables whose snapshots have begun."""
        logs = [each[keys.TASK_LOG] for each in in_force if each.get(keys.TASK_LOG)]
        self._begin = LogShare.parse(logs[0]).begin if logs else ""
        """The slot's LSN when the first of them began."""
        self._renews = settings.text(keys.SNAPSHOT_MODE) == keys.WHEN_NEEDED
        self._since = max((each.since for each in self._known.values()), default="")
        """Earlier offsets are invalid."""
        self._renewed: set[TableName] = set()
        """Tables that were created again."""
        self._new: dict[TableName, int] = {}
        """New tables, each with the first transaction whose changes are all in the WAL."""

    def split(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Return the keys of each task; raises `NotReady`, `BadInput`, `SourceAway`."""
        tables = self._find(is_checked=True)
        names = [each.name for each in tables]
        self._look_for_replaced(tables)
        with self._talk.connected() as connection:
            if flaw := flaw_in_server(connection):
                raise BadInput(flaw)
            self._look_for_unpublished(connection, tables)
            self._publication.make(connection, names)
            state = self._ready(connection)
            kept = (begun_share(self._known, each.name, each.oid) for each in tables)
            begun = {each.name: each for each in kept if each}
            if new := [name for name in names if name not in begun]:
                self._look_for_away([each for each in tables if begun and each.name in new])
                begun |= self._begun(connection, state, new, is_later=bool(begun))
        self._known, self._new = begun, {}
        shares = deal([*begun.values()], max_tasks if self._has_snapshot else 1, is_cut=True)
        log = LogShare.of(self._begin, [*begun.values()])
        return [
            {keys.TASK_SHARE: str(each), keys.TASK_LOG: "" if number else str(log)}
            for number, each in enumerate(shares)
        ]

    def _find(self, *, is_checked: bool = False) -> Sequence[FoundTable]:
        """Return the tables; `is_checked` raises `NotReady`, `BadInput` if they cannot be read."""
        with self._session.snapshot() as snapshot:
            rules = TableFilter.of(self._settings)
            tables = rules.find(snapshot)
            if is_checked:
                refuse_none(snapshot, self._settings, tables)
                unread = UnreadTables.find(snapshot, rules, tables)
                identities = Identities.find(snapshot, tables, key_of_target(self._config))
                if flaw := flaw_in_tables(self._settings, unread, identities):
                    raise BadInput(flaw)
            return tables

    def _look_for_replaced(self, tables: Sequence[FoundTable]) -> None:
        """Raise `BadInput` if a table has another oid than the one that is read.

        Its rows before its first change in the publication are in no log. `when_needed` begins a
        new snapshot.
        """
        logged = self._logged(tables)
        for table in tables if logged else ():
            partition = table_partition(self.slot.name, table.name.key)
            offset: Any = logged.get(identity(partition), {})
            earlier_share = self._known.get(table.name)
            if not self._renews:
                earlier = offset.get("oid") or (earlier_share.oid if earlier_share else 0)
                refuse_replaced(table.name, earlier, table.oid)
            elif earlier_share and earlier_share.oid not in {0, table.oid}:
                self._renewed.add(table.name)
                self._context.warn(f"{table.name} was made anew: it is read again")

    def _look_for_away(self, tables: Sequence[FoundTable]) -> None:
        """Raise `BadInput` if a table that was read was not followed since, although others were.

        It was left out by a pattern, detached from its partitioned table, or unlogged. Its changes
        then were passed over. `when_needed` begins a new snapshot.
        """
        logged = offsets_since(self._logged(tables), self._since)
        for table in tables:
            name = f"table={table.name.key!r}"
            chunks: list[Any] = [
                each for key, each in logged.items() if "chunk=" in key and key.endswith(name)
            ]
            if chunks and self._renews:
                self._context.warn(f"{table.name} was not followed for a time: it is read again")
            elif chunks:
                refuse_replaced(table.name, chunks[0].get("oid", 0), table.oid)
                raise BadInput(
                    f"{table.name} was read, and then left out for a time: what was written to it "
                    "since was passed over. Read it again: stop the connector, remove the offsets "
                    f"of {table.name} (or seek to earliest), resume"
                )

    def _look_for_unpublished(
        self, connection: "psycopg.Connection[Any]", tables: Sequence[FoundTable]
    ) -> None:
        """Raise `BadInput` if a table that is read was taken out of the publication.

        Its changes since then are in no log. With `when_needed` the slot is begun again.
        """
        logged = self._logged(tables)
        begun = [each.name for each in tables if begun_share(self._known, each.name, each.oid)]
        sought = self._sought(logged, begun)
        read = [each for each in begun if each not in sought]
        lacks = self._publication.lacks(connection, read) if logged else ""
        if not lacks:
            return
        text = f"{lacks} was taken out of the publication {self._publication.name}"
        if not self._renews:
            raise BadInput(f"{text}: what was written to it since is in no log. {READ_AGAIN}")
        self._context.warn(f"{text}: tables are read again")
        self.slot.drop(connection)

    def _sought(
        self, logged: Mapping[str, Document], names: Sequence[TableName]
    ) -> Collection[TableName]:
        """Return the tables whose position a user has set; none if anything was read since."""
        parts = {each: table_partition(self.slot.name, each.key) for each in names}
        offsets = {each: logged.get(identity(part)) for each, part in parts.items()}
        slot = logged.get(identity(slot_partition(self.slot.name)))
        places = {each.get("lsn") for each in (slot, *offsets.values()) if each}
        found = [name for name, each in offsets.items() if each and each.get("whole")]
        return found if len(places) == 1 else ()

    def _logged(self, found: Sequence[FoundTable] = ()) -> Mapping[str, Document]:
        """Return the connector's offsets of its slot, for tables by their present names."""
        mine, logged = f"slot={self.slot.name!r}", self._context.logged_offsets()
        return by_present_names({key: logged[key] for key in logged if mine in key}, found)

    def _ready(self, connection: "psycopg.Connection[Any]") -> SlotState:
        """Create the slot if needed, and return its state; drop outdated snapshots."""
        state, logged = self.slot.read_state(connection), self._logged()
        is_gone = state is None or state.is_lost
        if state is None or is_gone:
            if state is not None:
                self._context.warn(f"the slot {self.slot.name} was lost, and is created again")
                self.slot.drop(connection)
            self.slot.make(connection)
            state = self.slot.read_state(connection)
        elif self._renews:
            counting = offsets_since(logged, self._since)
            is_gone = is_overtaken(counting, self.slot.name, state.confirmed)
        if state is None:
            raise NotReady(f"the slot {self.slot.name} was dropped by somebody")
        if is_gone or not logged:
            self._known = {}
        if not self._known:
            self._begin = spell_lsn(state.confirmed)
        if self._renews and is_gone and logged:
            self._context.warn(f"what the slot {self.slot.name} had is gone: tables are read again")
            self._since = self._begin
        return state

    def _begun(
        self,
        connection: "psycopg.Connection[Any]",
        state: SlotState,
        new: Sequence[TableName],
        *,
        is_later: bool,
    ) -> Mapping[TableName, TableShare]:
        """Begin the snapshots of new tables; `is_later`: others are read already.

        What the log has of these up to then comes first: a row may have moved to a new table since.
        """
        if not self._has_snapshot:
            tables = [each for each in self._find() if each.name in new]
            return {each.name: self._share(each, 0, "", 0) for each in tables}
        horizon = oldest_open(connection)
        since = max(self._new.setdefault(name, horizon.hi) for name in new)
        if horizon.lo < since:
            raise NotReady(
                f"transaction {horizon.lo} is open (its backend_xid in pg_stat_activity, or its "
                "row in pg_prepared_xacts) since before the log was to be read: a snapshot begins "
                "once it has ended"
            )
        snapshot = LogSnapshot.take(connection, max(state.confirmed, parse_lsn(self._begin)))
        with self._session.snapshot() as after:  # for the present size of tables
            matching, horizon = TableFilter.of(self._settings).find(after), after.horizon()
            tables = [each for each in matching if each.name in new]
            pages = pages_of(after, tables)
        self._session.wait_durable(horizon)  # what S saw must survive a crash
        begun: dict[TableName, TableShare] = {}
        for each in tables:
            chunks = max(1, -(-pages[each.oid] // CHUNK_PAGES))
            share = self._share(each, snapshot.lo, str(snapshot), chunks)
            begun[each.name] = share._replace(until=horizon.written if is_later else "")
        return begun

    def _share(self, table: FoundTable, horizon: int, snapshot: str, chunks: int) -> TableShare:
        return TableShare(
            *table.name,
            table.topic,
            table.file,
            horizon,
            None,
            0,
            chunks,
            is_follower=False,
            snapshot=snapshot,
            slot=self.slot.name,
            since=self._since,
            oid=table.oid,
            is_renewed=table.name in self._renewed,
        )


def slot_of(settings: ParsedConfig, connector: str) -> Slot:
    """Return the slot in a config, or the connector's own slot."""
    name = settings.text(keys.SLOT) or own_name(connector)
    is_dropped = settings.flag(keys.DROP_SLOT)
    return Slot(name, settings.text(keys.PUBLICATION) or name, is_dropped)


def publication_of(settings: ParsedConfig, slot: Slot) -> Publication:
    """Return the publication of a slot."""
    skipped = frozenset(settings.items(keys.SKIPPED))
    has_snapshot = settings.text(keys.SNAPSHOT_MODE) != keys.NO_DATA
    return Publication(slot.publication, settings.text(keys.AUTOCREATE), skipped, has_snapshot)
