# pyright: basic
"""What a server and its tables need so that a target can follow them by the log."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import psycopg

from ......spi.config import ParsedConfig
from ....tables import keys
from ....tables.catalog import FoundTable, TableFilter
from ....tables.checks.unread import Unread
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


def flaw_in_tables(
    snapshot: DatabaseSnapshot,
    settings: ParsedConfig,
    config: Mapping[str, str],
    found: Sequence[FoundTable],
) -> str:
    """Return why the target would not follow tables; empty: it would."""
    if settings.text(keys.SNAPSHOT_MODE) != keys.NO_DATA:
        unread = Unread.find(snapshot, TableFilter.of(settings))
        if unread.flaw_in_log:
            return unread.flaw_in_log
    return Identities.find(snapshot, [each.oid for each in found], key_of_target(config)).flaw


def remarks(
    settings: ParsedConfig,
    config: Mapping[str, str],
    publication: Publication,
    snapshot: DatabaseSnapshot,
) -> Sequence[str]:
    """Return what to know about the tables that are followed, and those that are not."""
    rules = TableFilter.of(settings)
    oids = [each.oid for each in rules.find(snapshot)]
    identities = Identities.find(snapshot, oids, key_of_target(config))
    told = Unread.find(snapshot, rules).remarks
    return (*told, *identities.remarks, *publication.remarks(snapshot))
