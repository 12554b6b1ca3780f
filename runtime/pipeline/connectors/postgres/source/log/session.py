# pyright: basic
"""A session that asks the server of its log: what it refuses is told as what it means."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final, Self

import psycopg

from .....spi.context import Context
from .....spi.errors import Away, BadInput, SourceAway
from ...connecting import Server, application_name, brief, is_away, is_data
from ...tables import keys

_OTHERS: Final = """
WITH others AS MATERIALIZED (
    SELECT pid FROM pg_stat_activity
    WHERE application_name = %s AND pid <> pg_backend_pid() AND datname = current_database())
SELECT pid FROM others WHERE NOT pg_terminate_backend(pid, 5000)"""
"""Ends the sessions of a former owner, and gives those that go on after 5 s."""
_DENIED, _NO_OBJECT, _WRONG_STATE = "42501", "42704", "55000"


class LogSession:
    """A connection of psycopg, made when it is needed and made anew after it was lost.

    All sessions of a task go by one name, `application`, "" if this one is nobody's. A new owner of
    the task ends those of the one before: a process that is stopped while it peeks would keep the
    slot.
    """

    def __init__(self, server: Server, application: str) -> None:
        self._server = server
        self._application = application
        self._connection: psycopg.Connection[Any] | None = None
        self._is_new = True

    @classmethod
    def of(cls, config: Mapping[str, str], context: Context) -> Self:
        """Return that of a task, or of a connector."""
        application = application_name("log", context.resource, context.cluster_id)
        return cls(Server.of("source", config, application), application)

    @contextmanager
    def talking(self) -> Generator["psycopg.Connection[Any]"]:
        """Yield the connection; raises `SourceAway`, `BadInput`."""
        try:
            yield self._open()
        except Away as away:
            raise SourceAway(str(away)) from None
        except psycopg.Error as error:
            if is_away(error):
                self.close()
            raise self._told(error) from None

    def close(self) -> None:
        """End the session."""
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

    def _told(self, error: psycopg.Error) -> Exception:
        state, text = error.sqlstate, f"{self._server.shown}: {brief(str(error))}"
        if state == _DENIED and ("replication" in text or "must be superuser" in text):
            return BadInput(
                f"{text}. {keys.MODE}={keys.LOG} reads the server's log, for which its role must "
                "have REPLICATION: ALTER ROLE … REPLICATION (in RDS: GRANT rds_replication TO …)"
            )
        if state == _NO_OBJECT and "publication" in text:
            return BadInput(
                f"{text} at the place in the log where the slot is: it was dropped, or made anew, "
                "and what was written meanwhile cannot be read. Read the tables anew: stop the "
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
