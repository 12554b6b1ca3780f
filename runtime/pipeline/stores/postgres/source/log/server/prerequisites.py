# pyright: basic
"""The prerequisites of a target that follows tables by the log: of the server, of each table."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import psycopg

from ......spi.config import ParsedConfig
from ....tables import keys
from ....tables.catalog import TableFilter
from ....tables.checks.unread import UnreadTables
from ....tables.session import DatabaseSnapshot
from .identities import Identities, key_of_target
from .publication import Publication
from .session import WAL_LEVEL_REMEDY

_SERVER: Final = (
    "SELECT current_setting('wal_level'), current_setting('server_encoding'), pg_is_in_recovery()"
)


def flaw_in_server(connection: "psycopg.Connection[Any]") -> str:
    """Return why the server's WAL cannot be read; empty: it can."""
    row = connection.execute(_SERVER).fetchone()
    level, encoding, is_standby = row or ("", "", False)
    if is_standby:
        return "the server is a standby: its log is read on the primary"
    if level != "logical":
        return f"wal_level is {level}: {WAL_LEVEL_REMEDY}"
    if encoding != "UTF8":
        return f"the database is encoded in {encoding}: {keys.MODE}={keys.LOG} reads UTF8"
    return ""


def flaw_in_tables(settings: ParsedConfig, unread: UnreadTables, identities: Identities) -> str:
    """Return why the target would not follow tables; empty: it would."""
    has_snapshot = settings.text(keys.SNAPSHOT_MODE) != keys.NO_DATA
    return (unread.flaw_in_log if has_snapshot else "") or identities.flaw


def remarks(
    settings: ParsedConfig,
    config: Mapping[str, str],
    publication: Publication,
    snapshot: DatabaseSnapshot,
) -> Sequence[str]:
    """Return the remarks about the tables that are followed, and those that are not."""
    rules = TableFilter.of(settings)
    tables = rules.find(snapshot)
    unread = UnreadTables.find(snapshot, rules, tables)
    identities = Identities.find(snapshot, tables, key_of_target(config))
    return (*unread.remarks, *identities.remarks, *publication.remarks(snapshot))
