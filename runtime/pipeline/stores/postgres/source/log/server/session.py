# pyright: basic
"""A psycopg session for slots and the WAL, which translates the server's errors."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final, Self

import psycopg

from ......spi.context import Context
from ......spi.errors import Away, BadInput, SourceAway
from ....connecting import Server, application_name, brief, is_away, is_data
from ....tables import keys

_OTHERS: Final = """
WITH others AS MATERIALIZED (
    SELECT pid FROM pg_stat_activity
    WHERE application_name = %s AND pid <> pg_backend_pid() AND datname = current_database())
SELECT pid FROM others WHERE NOT pg_terminate_backend(pid, 5000)"""
"""Terminates the sessions of a former owner, and returns those that still run after 5 s."""
_DENIED, _NO_OBJECT, _WRONG_STATE = "42501", "42704", "55000"


class LogSession:
    """A psycopg connection that is opened on demand, and again after a loss.

    All sessions of a task have one application name; empty: it has no owner. A new owner of the
    task terminates former sessions: a process that hangs during a peek would keep the slot.
    """

    def __init__(self, server: Server, application: str) -> None:
        self._server = server
        self._application = application
        self._connection: psycopg.Connection[Any] | None = None
        self._is_new = True

    @classmethod
    def of(cls, config: Mapping[str, str], context: Context) -> Self:
        """Return the session of a task, or of a connector."""
        application = application_name("log", context.resource, context.cluster_id)
        server = Server.of("source", config, application, context.reach)
        return cls(server, application)

    @contextmanager
    def connected(self) -> Generator["psycopg.Connection[Any]"]:
        """Yield the connection; raises `SourceAway`, `BadInput`."""
        try:
            yield self._open()
        except Away as away:
            raise SourceAway(str(away)) from None
        except psycopg.Error as error:
            if is_away(error):
                self.close()
            raise self._translated(error) from None

    def close(self) -> None:
        """Close the session."""
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
        self._connection = None

    def _open(self) -> "psycopg.Connection[Any]":
        if self._connection is None or self._connection.closed:
            self._connection = self._server.connect()
        if self._is_new and self._application:
            self._connection.execute(_OTHERS, (self._application,))
        self._is_new = False
        return self._connection

    def _translated(self, error: psycopg.Error) -> Exception:
        state, text = error.sqlstate, f"{self._server.shown}: {brief(str(error))}"
        if state == _DENIED and ("replication" in text or "must be superuser" in text):
            return BadInput(
                f"{text}. {keys.MODE}={keys.LOG} reads the server's log, for which its role must "
                "have REPLICATION: ALTER ROLE … REPLICATION (in RDS: GRANT rds_replication TO …)"
            )
        if state == _NO_OBJECT and "publication" in text:
            return BadInput(
                f"{text} at the slot's position in the log: it was dropped, or created again, "
                "and what was written meanwhile cannot be read. Read the tables again: stop the "
                "connector, drop its slot, seek to earliest, resume"
            )
        if state == _WRONG_STATE and "wal_level" in text:
            return BadInput(f"{text}: {WAL_LEVEL_REMEDY}")
        if is_away(error):
            return SourceAway(text)
        if is_data(error) or state in {_DENIED, _NO_OBJECT, _WRONG_STATE}:
            return BadInput(text)
        return error


WAL_LEVEL_REMEDY: Final = (
    "the log has no changes of rows unless wal_level is logical: ALTER SYSTEM SET "
    "wal_level = 'logical', and restart the server (in RDS: rds.logical_replication = 1)"
)
