# pyright: basic
"""The check of a source config against the database: errors, and the columns of its rows."""

from collections.abc import Mapping, Sequence
from contextlib import closing

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from ....spi.config import ParsedConfig
from ....spi.context import ProbeResult, SourceColumns
from ....spi.errors import BadInput
from ..connecting import Server
from ..tables import keys
from ..tables.catalog import FoundTable, TableFilter, TableShape
from ..tables.checks.unread import UnreadTables
from ..tables.columns import TypeMapping
from ..tables.cursors import XMIN_RANGE, cursor_of
from ..tables.session import DatabaseSnapshot, ReadSession
from .log.changes.rows import COLUMNS
from .log.server.identities import Identities, key_of_target
from .log.server.prerequisites import flaw_in_server, flaw_in_tables
from .log.server.session import LogSession
from .log.split import publication_of, slot_of
from .query import offset_checks as query_offset_checks


def probe(session: ReadSession, config: Mapping[str, str], settings: ParsedConfig) -> ProbeResult:
    """Check that the tables exist and can be read incrementally; raises as the session does."""
    if settings.text(keys.QUERY):
        return query_offset_checks.probe(session.server, settings)
    rules = TableFilter.of(settings)
    with session.snapshot() as snapshot:
        tables = rules.find(snapshot)
        result = _look(snapshot, config, settings, rules, tables)
    flaws = _flaws_in_log(session.server, config, settings, tables)
    return result.plus(ProbeResult(flaws, _idle(config)))


def _idle(config: Mapping[str, str]) -> tuple[str, ...]:
    """Return a warning about a setting of Connect that has no effect here."""
    if config.get(keys.DELAY_MS, "0") == "0" or config.get(keys.QUERY):
        return ()
    return (f"{keys.DELAY_MS} has no effect: what commits late is read, without waiting for it",)


def _flaws_in_log(
    server: Server, config: Mapping[str, str], settings: ParsedConfig, tables: Sequence[FoundTable]
) -> Mapping[str, str]:
    """Return the errors that prevent reading the WAL, by the key to change."""
    if settings.text(keys.MODE) != keys.LOG:
        return {}
    slot = slot_of(settings, config.get("name", ""))
    with closing(LogSession(server, "")) as session, session.connected() as connection:
        if flaw := flaw_in_server(connection):
            return {keys.MODE: flaw}
        try:
            slot.read_state(connection)
        except BadInput as bad:
            return {keys.SLOT: str(bad)}
        names = [each.name for each in tables]
        flaw = publication_of(settings, slot).flaw(connection, names)
        return {keys.INCLUDE: flaw} if flaw else {}


def _look(
    snapshot: DatabaseSnapshot,
    config: Mapping[str, str],
    settings: ParsedConfig,
    rules: TableFilter,
    tables: Sequence[FoundTable],
) -> ProbeResult:
    unread = UnreadTables.find(snapshot, rules, tables)
    views = unread.views if rules.include else {}
    warnings = [*(f"{name} {reason}" for name, reason in views.items()), *unread.remarks]
    if warnings and not tables and rules.include:
        key = keys.INCLUDE if settings.items(keys.INCLUDE) else keys.WHITELIST
        return ProbeResult({key: "; ".join(warnings)})
    if rules.is_logged:
        identities = Identities.find(snapshot, tables, key_of_target(config))
        if flaw := flaw_in_tables(settings, unread, identities):
            return ProbeResult({keys.INCLUDE: flaw})
        publication = publication_of(settings, slot_of(settings, config.get("name", "")))
        warnings += (*identities.remarks, *publication.remarks(snapshot))
    warnings += _ambiguous(snapshot, settings)
    return _columns(snapshot, settings, tables).plus(ProbeResult(warnings=tuple(warnings)))


def _ambiguous(snapshot: DatabaseSnapshot, settings: ParsedConfig) -> tuple[str, ...]:
    """Return a warning if rows may be older than the 32 bits of xmin can tell."""
    mode, highest = settings.text(keys.MODE), snapshot.horizon().hi
    if mode not in {keys.XMIN, keys.LOG} or highest < XMIN_RANGE:
        return ()
    happens = "comes again" if mode == keys.XMIN else "may be missing in the snapshot"
    return (
        f"{keys.MODE}={mode}: the server has had {highest} transactions, and a row that is older "
        f"than the last 2^32 of them {happens} when the number of its transaction is given again",
    )


def _columns(
    snapshot: DatabaseSnapshot, settings: ParsedConfig, tables: Sequence[FoundTable]
) -> ProbeResult:
    """Check that each table can be read by the cursor of the mode; return the columns of one."""
    if not tables:
        return ProbeResult(warnings=("no table matches yet; each poll looks for new ones",))
    is_logged, mapping = settings.text(keys.MODE) == keys.LOG, TypeMapping.of(settings)
    schemas = []
    for table in tables:
        shape = TableShape.read(snapshot, table.name, mapping, is_logged=is_logged)
        cursor_of(settings, table.name, shape)
        schemas.append(shape.schema)
    if len(schemas) > 1:
        return ProbeResult()
    (schema,) = schemas
    if is_logged:
        schema = pa.schema([*schema, *COLUMNS])
    fields = from_arrow_schema(schema, prefer_timestamp_ntz=True).fields
    ddl = ", ".join(f"`{each.name}` {each.dataType.simpleString()}" for each in fields)
    return ProbeResult(columns=SourceColumns(ddl, keys.INCLUDE, may_grow=True))
