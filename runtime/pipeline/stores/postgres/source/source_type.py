# pyright: basic
"""`source.type=postgres`: reads tables, the WAL or a query of a PostgreSQL database.

`source.mode` and `source.query` select one of three sources, which share connection, types and
offset checks:

    a query                     one task; offsets are values of its growing columns   (`query`)
    mode log                    a snapshot of tables, then the WAL through a slot     (`log`)
    any other mode              tables: all rows once, or what is new by a cursor     (`tables`)

The connector splits the work: it finds the tables, begins their snapshots at a horizon that is
durable on the server, and deals tables and chunks of large ones to tasks. A share in a task config
names what its task reads. `split` runs again when new tables appear; tables that have begun keep
their snapshots, so that no running task restarts.
"""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import ClassVar, Final

from ......events.commits import Document, Lag
from ....spi.config import (
    ConfigDef,
    ConfigInvalid,
    Definition,
    ParsedConfig,
    any_reference,
    has_reference,
)
from ....spi.connector import Delivery, Promise
from ....spi.context import Context, ExternalAccess, ProbeResult
from ....spi.errors import Away, BadInput, NotReady, SourceAway
from ....spi.lineage import Dataset
from ....spi.offsets import Offsets, Seek, refuse_references
from ....spi.types import SourceType
from ..connecting import Server, application_name, dataset_in
from ..names import TableName
from ..tables import keys
from ..tables.catalog import CatalogRemarks, FoundTable, TableFilter, TableShape, pages_of
from ..tables.checks import offset_checks
from ..tables.checks.unread import UnreadTables, refuse_none
from ..tables.columns import TableRefused, TypeMapping
from ..tables.cursors import cursor_of
from ..tables.session import DatabaseSnapshot, Horizon, ReadSession, TableChanged
from ..tables.shares import CHUNK_PAGES, TableShare, TaskShare, begun_share, deal, shares_by_table
from ..tables.source import TableSource
from .config_check import probe
from .log import offset_checks as log_offset_checks
from .log.changes.rows import ChangeRows
from .log.changes.shares import LogShare
from .log.renewal import CountingOffsets
from .log.server.identities import key_of_target
from .log.server.prerequisites import remarks
from .log.server.session import LogSession
from .log.source import LogSource
from .log.split import LogSplit, publication_of, slot_of
from .log.stream import ChangeStream
from .query import offset_checks as query_offset_checks
from .query.source import QuerySource

_SLOT_MS: Final = 5_000
"""How often to check a slot that is created again automatically."""


class PostgresSourceType(SourceType):
    """Reads tables of a database: first a snapshot, then the committed changes."""

    version: ClassVar[str] = "1.0"
    delivery: ClassVar[Delivery] = Delivery.EXACTLY_ONCE

    def __init__(self, context: Context, config: Mapping[str, str], settings: ParsedConfig) -> None:
        super().__init__(context, config, settings)
        application = application_name("source", context.resource, context.cluster_id)
        self._session = ReadSession(Server.of("source", config, application, context.reach))
        self._look_at = 0.0
        """The monotonic time of the next check for new tables."""
        self._known = shares_by_table(
            TaskShare.parse(each[keys.TASK_SHARE])
            for each in context.split
            if keys.TASK_SHARE in each
        )
        """The tables of the split in force, which keep their snapshots."""
        self._talk: LogSession | None = None
        """The session that creates publication and slot."""
        self._log: LogSplit | None = None
        if settings.text(keys.MODE) == keys.LOG:
            self._talk = LogSession.of(config, context)
            self._log = LogSplit(context, config, settings, self._session, self._talk)

    @classmethod
    def keys(cls) -> Sequence[Definition]:
        """Return the definitions of its keys."""
        return keys.DEFINITIONS

    @classmethod
    def task_keys(cls) -> Sequence[Definition]:
        """Return the definition of a task's share."""
        return keys.TASK_DEFINITIONS

    @classmethod
    def complaints(cls, config: Mapping[str, str]) -> Mapping[str, str]:
        """Return errors of keys that do not fit together, by the key to change."""
        return keys.complaints(config)

    @classmethod
    def delivery_of(cls, config: Mapping[str, str]) -> Promise:
        """Return exactly once, or best effort for modes that may miss rows."""
        if config.get(keys.QUERY) and config.get(keys.MODE) != keys.BULK:
            reason = f"of a {keys.QUERY} rows that commit late are not seen, unless it goes by xid8"
            return Promise(Delivery.BEST_EFFORT, (reason,))
        if config.get(keys.MODE) != keys.BULK:
            return Promise(cls.delivery)
        reason = f"{keys.MODE}={keys.BULK} may miss or double rows that change while it reads"
        return Promise(Delivery.BEST_EFFORT, (reason,))

    @classmethod
    def datasets(
        cls, config: Mapping[str, str], partitions: Iterable[Document]
    ) -> Collection[Dataset]:
        """Return the tables; for the WAL or a query, the database."""
        tables = {str(each.get("table", "")) for each in partitions}
        return [dataset_in("source", config, each) for each in tables]

    @classmethod
    def has_external_state(cls, config: Mapping[str, str]) -> bool:
        """Return whether the connector has a replication slot."""
        return config.get(keys.MODE) == keys.LOG or has_reference(config.get(keys.MODE, ""))

    @classmethod
    def probe(cls, config: Mapping[str, str], outside: ExternalAccess) -> ProbeResult:
        """Connect, and check that the tables exist and can be read incrementally."""
        if any_reference("source.", config):
            return ProbeResult()
        settings = ConfigDef(tuple(keys.DEFINITIONS)).parse(config)
        try:
            server = Server.of("source", config, reach=outside.reach)
        except ConfigInvalid as error:
            return ProbeResult({keys.URL: str(error).removeprefix(f"{keys.URL}: ")})
        with closing(ReadSession(server)) as session:
            try:
                return probe(session, config, settings)
            except ConfigInvalid as error:
                key, _, text = str(error).partition(": ")
                return ProbeResult({key: text})
            except BadInput as error:
                key = keys.INCLUDE if isinstance(error, TableRefused) else keys.URL
                return ProbeResult({key: str(error)})
            except (Away, TableChanged) as away:
                return ProbeResult(warnings=(f"{keys.URL}: {away}",))

    @classmethod
    def check_offset(
        cls, config: Mapping[str, str], partition: Document, offset: Document | None
    ) -> None:
        """Check the offset of a table or of a snapshot chunk."""
        if config.get(keys.QUERY):
            query_offset_checks.check(config.get(keys.MODE, ""), partition, offset)
        elif config.get(keys.MODE) == keys.LOG:
            log_offset_checks.check(partition, offset)
        else:
            offset_checks.check(config, partition, offset)

    @classmethod
    def seek(
        cls, config: Mapping[str, str], outside: ExternalAccess, to: Seek, offsets: Offsets
    ) -> Offsets:
        """Return the offsets of all tables for a position."""
        refuse_references(config)
        settings = ConfigDef(tuple(keys.DEFINITIONS)).parse(config)
        if settings.text(keys.QUERY):
            return query_offset_checks.seek(settings.text(keys.MODE), to, offsets)
        server = Server.of("source", config, reach=outside.reach)
        with closing(ReadSession(server)) as session:
            try:
                if settings.text(keys.MODE) == keys.LOG:
                    slot = slot_of(settings, config.get("name", ""))
                    return log_offset_checks.seek(
                        session, slot, TableFilter.of(settings), to, offsets
                    )
                with session.snapshot() as snapshot:
                    horizon = snapshot.horizon()
                    sought = offset_checks.seek(snapshot, settings, to, offsets)
                session.wait_durable(horizon)
            except TableChanged as changed:
                raise SourceAway(str(changed)) from None
        return sought

    @classmethod
    def lag(
        cls, config: Mapping[str, str], outside: ExternalAccess, offsets: Offsets
    ) -> Lag | None:
        """Return the bytes of WAL behind the slot's offset; the rows of tables are not counted."""
        refuse_references(config)
        if config.get(keys.MODE) != keys.LOG or config.get(keys.QUERY):
            return None
        settings = ConfigDef(tuple(keys.DEFINITIONS)).parse(config)
        server = Server.of("source", config, reach=outside.reach)
        return log_offset_checks.lag(server, slot_of(settings, config.get("name", "")), offsets)

    def split(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Assign tables, and chunks of large tables, to tasks; started snapshots are kept."""
        renews = self.settings.text(keys.SNAPSHOT_MODE) == keys.WHEN_NEEDED
        pause_ms = self.settings.number(keys.TABLE_POLL_MS)
        self._look_at = time.monotonic() + min(pause_ms, _SLOT_MS if renews else pause_ms) / 1000
        if self.settings.text(keys.QUERY):
            return [{keys.TASK_SHARE: str(TaskShare(()))}]
        try:
            if self._log is not None:
                return self._log.split(max_tasks)
            tables, horizon = self._find()
            self._session.wait_durable(horizon)
        except (Away, TableChanged) as away:
            raise NotReady(str(away)) from None
        self._known = {each.name: each for each in tables}
        is_cut = self.settings.text(keys.MODE) in {keys.BULK, keys.XMIN}
        return [{keys.TASK_SHARE: str(each)} for each in deal(tables, max_tasks, is_cut=is_cut)]

    def split_sample(self) -> Mapping[str, str]:
        """Return the keys of one task that reads a snapshot, in each mode: no slot is made."""
        if self.settings.text(keys.QUERY):
            return {keys.TASK_SHARE: str(TaskShare(()))}
        try:
            tables, _ = self._find()
        except (Away, TableChanged) as away:
            raise NotReady(str(away)) from None
        (share,) = deal(tables, 1, is_cut=False)
        return {keys.TASK_SHARE: str(share), keys.SNAPSHOT_MODE: keys.INITIAL}

    def needs_reconfiguration(self) -> bool:
        """Return whether it is time to check for new tables."""
        return time.monotonic() >= self._look_at

    def stop(self) -> None:
        """Close its sessions."""
        self._session.close()
        if self._talk is not None:
            self._talk.close()

    @classmethod
    def source(
        cls, context: Context, config: Mapping[str, str], settings: ParsedConfig
    ) -> TableSource | LogSource | QuerySource:
        """Make the source of one task."""
        application = application_name("source", context.resource, context.cluster_id)
        server = Server.of("source", config, application, context.reach)
        if settings.text(keys.QUERY):
            return QuerySource(server, settings)
        session = ReadSession(server)
        share = TaskShare.parse(settings.text(keys.TASK_SHARE))
        if settings.text(keys.MODE) == keys.LOG:
            return _log_source(context, config, settings, share, session)
        rules = TableFilter.of(settings)

        def look(snapshot: DatabaseSnapshot) -> Sequence[str]:
            return UnreadTables.find(snapshot, rules, rules.find(snapshot)).remarks

        catalog = CatalogRemarks(look) if context.resource.task == 0 else None
        return TableSource(session, share, settings, context.published_offsets, catalog)

    def _find(self) -> tuple[Sequence[TableShare], Horizon]:
        """Return the shares of all tables, and how much of them a snapshot sees now."""
        with self._session.snapshot() as snapshot:
            matching = TableFilter.of(self.settings).find(snapshot)
            refuse_none(snapshot, self.settings, matching)
            horizon = snapshot.horizon()
            return self._begun(snapshot, matching, horizon), horizon

    def _begun(
        self, snapshot: DatabaseSnapshot, tables: Sequence[FoundTable], horizon: Horizon
    ) -> Sequence[TableShare]:
        """Return the shares of tables; the snapshots of new ones begin now."""
        kept = {each.oid: begun_share(self._known, each.name, each.oid) for each in tables}
        pages = pages_of(snapshot, [each for each in tables if not kept[each.oid]])
        return [
            kept[each.oid] or self._begin(snapshot, each, horizon, pages[each.oid])
            for each in tables
        ]

    def _begin(
        self, snapshot: DatabaseSnapshot, table: FoundTable, horizon: Horizon, pages: int
    ) -> TableShare:
        shape = TableShape.read(snapshot, table.name, TypeMapping.of(self.settings))
        cursor = cursor_of(self.settings, table.name, shape)
        highest = cursor.highest_in(snapshot, table.name)
        chunks = -(-pages // CHUNK_PAGES)
        return TableShare(
            *table.name,
            table.topic,
            table.file,
            horizon.lo,
            highest,
            0,
            chunks,
            is_follower=True,
            oid=table.oid,
        )


def _log_source(
    context: Context,
    config: Mapping[str, str],
    settings: ParsedConfig,
    share: TaskShare,
    session: ReadSession,
) -> LogSource:
    """Make the source of a task in mode log."""

    def find(name: TableName) -> bool:
        with session.snapshot() as snapshot:
            return TableFilter.of(settings).is_new(snapshot, name)

    task_log = settings.text(keys.TASK_LOG)
    log = LogShare.parse(task_log) if task_log else None
    followed = log.tables if log else share.tables
    since = max((each.since for each in share.tables), default="")
    renews = settings.text(keys.SNAPSHOT_MODE) == keys.WHEN_NEEDED
    slot = slot_of(settings, context.resource.connector)
    publication = publication_of(settings, slot)
    catalog = CatalogRemarks(partial(remarks, settings, config, publication)) if log else None
    rows = ChangeRows(session, settings, key_of_target(config))
    return LogSource(
        TableSource(session, share, settings, context.published_offsets, catalog),
        rows,
        ChangeStream(LogSession.of(config, context), slot, find, rows.columns_of),
        publication,
        log,
        CountingOffsets(since, followed, renews, context.published_offsets),
    )
