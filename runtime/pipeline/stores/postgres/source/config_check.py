# pyright: basic
"""The check of a source config against the database: errors, and the columns of its rows."""

from collections.abc import Mapping, Sequence
from contextlib import closing

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from ....spi.config import ParsedConfig
from ....spi.errors import BadInput
from ....spi.types import Look, SourceColumns
from ..connecting import Server
from ..tables import keys
from ..tables.catalog import FoundTable, TableFilter, TableShape
from ..tables.checks.unread import Unread
from ..tables.columns import TypeMapping
from ..tables.cursors import XMIN_RANGE, cursor_of
from ..tables.session import DatabaseSnapshot, ReadSession
from .log.changes.rows import COLUMNS
from .log.server.prerequisites import flaw_in_server, flaw_in_tables, remarks
from .log.server.session import LogSession
from .log.split import publication_of, slot_of
from .query import offset_checks as query_offset_checks


def look_at(session: ReadSession, config: Mapping[str, str], settings: ParsedConfig) -> Look:
    """Check that the tables exist and can be read incrementally; raises as the session does."""
    if settings.text(keys.QUERY):
        return query_offset_checks.look(session.server, settings)
    with session.snapshot() as snapshot:
        found = TableFilter.of(settings).find(snapshot)
        seen = _look(snapshot, config, settings, found)
    flaws = _flaws_in_log(session.server, config, settings, found)
    return seen.plus(Look(flaws, _idle(config)))


def _idle(config: Mapping[str, str]) -> tuple[str, ...]:
    """Return a warning about a setting of Connect that has no effect here."""
    if config.get(keys.DELAY_MS, "0") == "0" or config.get(keys.QUERY):
        return ()
    return (f"{keys.DELAY_MS} has no effect: what commits late is read, without waiting for it",)


def _flaws_in_log(
    server: Server, config: Mapping[str, str], settings: ParsedConfig, found: Sequence[FoundTable]
) -> Mapping[str, str]:
    """Return the errors that prevent reading the WAL, by the key to change."""
    if settings.text(keys.MODE) != keys.LOG:
        return {}
    slot = slot_of(settings, config.get("name", ""))
    with closing(LogSession(server, "")) as session, session.talking() as connection:
        if flaw := flaw_in_server(connection):
            return {keys.MODE: flaw}
        try:
            slot.look(connection)
        except BadInput as bad:
            return {keys.SLOT: str(bad)}
        names = [each.name for each in found]
        flaw = publication_of(settings, slot).flaw(connection, names)
        return {keys.INCLUDE: flaw} if flaw else {}


def _look(
    snapshot: DatabaseSnapshot,
    config: Mapping[str, str],
    settings: ParsedConfig,
    found: Sequence[FoundTable],
) -> Look:
    rules, is_logged = TableFilter.of(settings), settings.text(keys.MODE) == keys.LOG
    unread = Unread.find(snapshot, rules)
    views = unread.views if rules.include else {}
    told = (*(f"{name} {reason}" for name, reason in views.items()), *unread.remarks)
    key = keys.INCLUDE if settings.items(keys.INCLUDE) else keys.WHITELIST
    if told and not found and rules.include:
        return Look({key: "; ".join(told)})
    if is_logged and (flaw := flaw_in_tables(snapshot, settings, config, found)):
        return Look({keys.INCLUDE: flaw})
    if is_logged:
        publication = publication_of(settings, slot_of(settings, config.get("name", "")))
        told = tuple(dict.fromkeys((*told, *remarks(settings, config, publication, snapshot))))
    warnings = (*told, *_ambiguous(snapshot, settings))
    return _look_at_tables(snapshot, settings, found).plus(Look(warnings=warnings))


def _ambiguous(snapshot: DatabaseSnapshot, settings: ParsedConfig) -> tuple[str, ...]:
    """Return a warning if rows may be older than the 32 bits of xmin can tell."""
    mode, seen = settings.text(keys.MODE), snapshot.horizon()
    if mode not in {keys.XMIN, keys.LOG} or seen.hi < XMIN_RANGE:
        return ()
    happens = "comes again" if mode == keys.XMIN else "may be missing in the snapshot"
    return (
        f"{keys.MODE}={mode}: the server has had {seen.hi} transactions, and a row that is older "
        f"than the last 2^32 of them {happens} when the number of its transaction is given again",
    )


def _look_at_tables(
    snapshot: DatabaseSnapshot, settings: ParsedConfig, found: Sequence[FoundTable]
) -> Look:
    if not found:
        return Look(warnings=("no table is there that is to be read; new ones are looked for",))
    mode, shapes = settings.text(keys.MODE), []
    for table in found:
        mapping, is_logged = TypeMapping.of(settings), mode == keys.LOG
        shape = TableShape.read(snapshot, table.name, mapping, is_logged=is_logged)
        cursor_of(settings, table.name, shape)
        shapes.append(shape)
    if len(shapes) > 1:
        return Look()
    (shape,) = shapes
    schema = shape.schema
    if mode == keys.LOG:
        schema = pa.schema([*schema, *COLUMNS])
    fields = from_arrow_schema(schema, prefer_timestamp_ntz=True).fields
    ddl = ", ".join(f"`{each.name}` {each.dataType.simpleString()}" for each in fields)
    return Look(columns=SourceColumns(ddl, keys.INCLUDE, may_grow=True))
