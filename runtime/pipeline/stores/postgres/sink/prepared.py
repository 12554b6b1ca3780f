# pyright: basic
"""Batches staged as prepared transactions (two-phase commit): written, but not visible.

A prepared transaction survives a crash of the server, keeps its locks, and holds back vacuum, until
it is committed or rolled back by its name, which has the task and batch. It also moves the marker:
if the transaction is gone, the marker tells whether the batch is published or lost.
"""

from typing import Any, Final

import adbc_driver_postgresql.dbapi as adbc
import psycopg
from psycopg import sql

from ......events.commits import CommitId, Manifest
from ......events.model import Resource
from ....spi.errors import SinkAway, SinkBroken
from ...marks import PublishedBatch
from .publishing import Marker

_MINE: Final = """
SELECT gid FROM pg_prepared_xacts
WHERE database = current_database() AND gid LIKE %s AND pg_has_role(owner, 'USAGE')"""


def prepare(cursor: "adbc.Cursor", marker: Marker, commit_id: CommitId, name: str) -> None:
    """Move the marker, and prepare the cursor's transaction under a name."""
    cursor.execute(marker.move_statement(commit_id).as_string())
    if cursor.fetchone() is None:
        raise SinkBroken(
            f"{marker.name} says that batch {commit_id.batch} of token {commit_id.token}, or a "
            "later one, is published: another writes as this task. Nothing was written"
        )
    cursor.execute(sql.SQL("PREPARE TRANSACTION {}").format(sql.Literal(name)).as_string())


def publish(
    connection: "psycopg.Connection[Any]", marker: Marker, manifest: Manifest, commit_id: CommitId
) -> None:
    """Commit a batch's prepared transaction, if it is not; raises `SinkBroken` if it is lost."""
    name = manifest.staging
    try:
        connection.execute(sql.SQL("COMMIT PREPARED {}").format(sql.Literal(name)))
    except psycopg.errors.ObjectNotInPrerequisiteState as busy:
        raise SinkAway(f"another process publishes {name}: {busy}") from None
    except psycopg.errors.UndefinedObject:
        batch = PublishedBatch.of(commit_id)
        marked = marker.read(connection, Resource(commit_id.connector, commit_id.task))
        if marked is None or marked < batch:
            raise SinkBroken(
                f"batch {commit_id.batch} of token {commit_id.token} counts, and its prepared "
                f"transaction {name} is not in {connection.info.dbname}: somebody rolled it back, "
                "or the sink was moved to another database. If so, go back to the one before until "
                "its last batch is published. Else its rows are lost: reset the connector's "
                "offsets to read them again"
            ) from None


def roll_back(connection: "psycopg.Connection[Any]", names: list[str]) -> None:
    """Roll back prepared transactions, except those of other roles."""
    for name in names:
        try:
            connection.execute(sql.SQL("ROLLBACK PREPARED {}").format(sql.Literal(name)))
        except (psycopg.errors.UndefinedObject, psycopg.errors.InsufficientPrivilege):
            continue
        except psycopg.errors.ObjectNotInPrerequisiteState as busy:
            raise SinkAway(f"another process ends {name}: {busy}") from None


def find_prepared(connection: "psycopg.Connection[Any]", pattern: str) -> list[str]:
    """Return the names of prepared transactions LIKE a pattern that this role may end."""
    return [name for (name,) in connection.execute(_MINE, (pattern,))]
