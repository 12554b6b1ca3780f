# pyright: basic, reportAttributeAccessIssue=false
"""The PostgreSQL sink: a batch is staged by COPY, and published in one transaction.

It is staged in tables, or as a prepared transaction. For that, and for at-least-once delivery, rows
are written directly: by COPY to the table itself if it can take it, otherwise through an unlogged
table of the same transaction, which need not survive a crash.
"""

import json
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple, TypeVar

import adbc_driver_postgresql.dbapi as adbc
import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

from ......events.commits import CommitId, Document, Manifest, Part
from ......events.model import Resource, Token
from ....spi.config import ConfigInvalid
from ....spi.errors import Away, SinkAway, SinkBroken, SinkFull
from ....spi.sink import Sink, TaskOwnership
from ...marks import PublishedBatch, refuse_other_log
from ..arrow_types import longest
from ..connecting import Server, application_name, brief, is_away, is_data, is_full
from ..names import TableName
from . import keys, prepared, staging
from .changes import (
    TableChange,
    change_of,
    look_at_deferred,
    make_changes,
    rows_refused,
    try_changes,
)
from .layout import METADATA, RowLayout, TargetRows
from .publishing import Marker, put_in_place, staging_tables
from .tables import TableRules, TargetColumn, TargetTable

T = TypeVar("T")

_FITTED_S: Final = 10.0
"""How long a target table is taken to be as it was found."""
_WITH: Final = "with"
"""Key in manifest notes: `prepared` if the batch is a prepared transaction."""
_OTHERS: Final = """
WITH others AS MATERIALIZED (
    SELECT pid FROM pg_stat_activity
    WHERE application_name = %s AND pid <> pg_backend_pid() AND datname = current_database())
SELECT pid FROM others WHERE NOT pg_terminate_backend(pid, 5000)"""
"""Terminates the sessions of a name, and returns those that still run after 5 s.

A materialised CTE selects them first: otherwise the server might evaluate the condition that
terminates a session for any session.
"""

_LONG: Final = 500
"""An indexed value of more bytes is tried first: a row of a B-tree has at most 2704."""


class TargetBatch(NamedTuple):
    """The rows of a batch for one table, and the change that they make."""

    target: TargetTable
    rows: TargetRows
    change: TableChange

    @property
    def shows_late(self) -> bool:
        """Whether it shows only at the write that the table refuses a row."""
        given = {*self.rows.rows.column_names}
        columns = (each for each in self.target.columns if each.name in given)
        return self.target.shows_late or any(map(self._is_in_doubt, columns))

    def _is_in_doubt(self, column: TargetColumn) -> bool:
        """Tell whether it has values too long for an index, or nulls that the table may refuse."""
        values, deletes = self.rows.rows[column.name], self.rows.deletes
        if column.name in self.target.indexed and longest(values) > _LONG:
            return True
        if not column.refuses_null or not values.null_count:
            return False
        nulls = values.is_null()
        return bool(pc.any(nulls if deletes is None else pc.greater(nulls, deletes)).as_py())


def write_batches(connection: "adbc.Connection", batches: Sequence[TargetBatch]) -> None:
    """Write the rows of a batch to their tables; raises `RowsRefused`.

    It runs in the connection's transaction; deferred constraints are checked, too.
    """
    with connection.cursor() as cursor:
        for each in batches:
            if each.rows.is_emptied:
                staging.refuse_truncate(cursor, each.target.name)
                cursor.execute(sql.SQL("TRUNCATE {}").format(each.target.name.sql).as_string())
            if not _copied(cursor, each):
                staging.write(connection, each.change.staged, each.target, each.rows, logged=False)
                make_changes(cursor, [each.change])
                dropped = sql.SQL("DROP TABLE {}").format(each.change.staged.sql)
                cursor.execute(dropped.as_string())
        look_at_deferred(cursor, [each.target.name for each in batches])


def _copied(cursor: "adbc.Cursor", batch: TargetBatch) -> bool:
    """Write rows to their table by COPY, if possible; tell whether it was."""
    target, rows, change = batch
    if change.mode != keys.INSERT or rows.deletes is not None or not target.takes_copy:
        return False
    given = staging.columns_of(target, rows)
    if any(each.is_cast for each in given.values()):
        return False
    values = pa.table({name: each.values for name, each in given.items()})
    name: TableName = target.name
    with rows_refused([name]):
        cursor.adbc_ingest(name.table, values, mode="append", db_schema_name=name.schema)
    return True


class PostgresSink(Sink["pa.Table"]):
    """Writes the batches of one task; its sessions have the task's application name."""

    takes_arrow = True

    def __init__(
        self,
        server: Server,
        where: staging.Staging,
        layout: RowLayout,
        rules: TableRules,
        *,
        is_prepared: bool = False,
        is_at_once: bool = False,
    ) -> None:
        self._server = server
        self._application = application_name("sink", where.task, where.cluster_id)
        self._staging = where
        self._layout = layout
        self._rules = rules
        self._is_prepared = is_prepared
        """Whether batches are staged as prepared transactions."""
        self._is_at_once = is_at_once
        self._marker = Marker(layout.schema, where.cluster_id)
        self._connection: psycopg.Connection[Any] | None = None
        self._copying: adbc.Connection | None = None
        """The ADBC connection for staging."""
        self._fitted: dict[tuple[TableName, pa.Schema, bool], TargetTable] = {}
        """The target tables that were checked, by name, schema of the rows and `only_deletes`."""
        self._fitted_since = time.monotonic()
        """Since when tables are kept as they were found."""

    @property
    def parts_topics(self) -> bool:
        """Whether the table depends on the topic."""
        return self._layout.is_of_topics

    def acquire(self, ownership: TaskOwnership) -> None:
        """Terminate the sessions of former owners, and check the marker against the log."""
        with self._talking() as connection:
            left = connection.execute(_OTHERS, (self._application,)).fetchall()
            if left:
                pids = ", ".join(str(pid) for (pid,) in left)
                raise SinkAway(
                    f"{self._server.shown}: sessions of a former owner go on: pid {pids}"
                )
            self._marker.make(connection)
            marked = self._marker.read(connection, ownership.task)
        if marked is not None:
            remedy = self._marker.remedy(ownership.task)
            refuse_other_log(ownership, marked, self._server.shown, remedy)

    def prepare(self, schema: pa.Schema) -> None:
        """Create or alter the table, if its name does not depend on the rows.

        A batch without rows may have no columns but those about records.
        """
        if not self._layout.is_of_topics and {*schema.names} - {*METADATA}:
            for rows in self._layout.split(schema.empty_table()):
                self._fit(rows)

    @property
    def writes_at_once(self) -> bool:
        """Whether batches are written before their commit."""
        return self._is_at_once

    def stage(self, rows: pa.Table, commit_id: CommitId, input_bytes: int) -> Manifest:
        """Write a batch to one staging table for each target, or to a prepared transaction."""
        del input_bytes
        batches = self._split(rows, commit_id)
        if self._is_prepared:
            return self._prepare(rows, commit_id, batches)
        with self._copied() as copying:
            for each in batches:
                staging.write(copying, each.change.staged, each.target, each.rows)
            # No dry run of a TRUNCATE, which would lock the table exclusively.
            is_emptied = any(each.rows.is_emptied for each in batches)
            is_tried = self._rules.has_dry_run and not is_emptied
            if is_tried and any(each.shows_late for each in batches):
                try_changes(copying, [each.change for each in batches])
            copying.commit()
        note: Document = {
            "mode": self._layout.mode,
            "schema": self._layout.schema,
            "key": json.dumps(self._rules.key),
            "emptied": json.dumps([each.rows.is_emptied for each in batches]),
            "order": self._layout.order,
            "packed": json.dumps([each.change.packed for each in batches]),
        }
        return self._manifest(rows, f"{self._staging.transaction(commit_id)}_", batches, note)

    def write(self, rows: pa.Table, commit_id: CommitId, input_bytes: int) -> Manifest:
        """Write a batch directly to its tables."""
        del input_bytes
        batches = self._split(rows, commit_id)
        with self._copied() as copying:
            write_batches(copying, batches)
            copying.commit()
        size = sum(each.rows.rows.nbytes for each in batches)
        return Manifest(self._server.shown, "", rows.num_rows, size, 0)

    def publish(self, manifest: Manifest, commit_id: CommitId, sequence: int) -> None:
        """Publish a batch in one transaction, unless the marker shows that it is published."""
        del sequence
        marker = Marker(str(manifest.note["schema"]), self._staging.cluster_id)
        with self._talking() as connection:
            if manifest.note.get(_WITH) == keys.PREPARED:
                prepared.publish(connection, marker, manifest, commit_id)
                return
            try:
                put_in_place(connection, marker, manifest, commit_id)
            except psycopg.Error as error:
                if is_away(error):
                    raise
                raise SinkBroken(
                    f"batch {commit_id.batch} of token {commit_id.token} counts, and cannot be put "
                    f"in place: {brief(str(error))} {error.diag.message_detail or ''}".strip()
                    + ". Nothing of it is in the table yet. Mend the table, or DELETE the row from "
                    f"where the batch waits ({staging_tables(manifest)}), and it is published"
                ) from None

    def discard(self, commit_id: CommitId) -> None:
        """Drop the staging of a batch; after an error `sweep` drops it later."""
        batch = PublishedBatch.of(commit_id)
        with suppress(SinkAway, SinkBroken, ConfigInvalid), self._talking() as connection:
            self._staging.drop(connection, batch.__eq__)

    def sweep(self, resource: Resource, token: Token) -> None:
        """Drop all that a task staged under this token and older ones."""
        where = self._staging._replace(task=resource)
        with self._talking() as connection:
            where.drop(connection, lambda each: each.token <= token)

    def close(self) -> None:
        """Close its sessions."""
        for each in (self._copying, self._connection):
            if each is not None:
                with suppress(adbc.Error, psycopg.Error):
                    each.close()
        self._copying = self._connection = None

    def _split(self, rows: pa.Table, commit_id: CommitId) -> list[TargetBatch]:
        """Return the rows of a batch by target table."""
        split = self._layout.split(rows)
        batches = [each for each in split if each.rows.num_rows or each.is_emptied]
        fitted = [self._fit(each) for each in batches]
        names = [
            TableName(self._layout.schema, self._staging.table(commit_id, number))
            for number in range(len(batches))
        ]
        mode, order = self._layout.mode, self._layout.order
        return [
            TargetBatch(target, each, change_of(target, each, name, mode, order))
            for target, each, name in zip(fitted, batches, names, strict=True)
        ]

    def _prepare(self, rows: pa.Table, commit_id: CommitId, batches: list[TargetBatch]) -> Manifest:
        """Stage a batch as a prepared transaction."""
        own, name = PublishedBatch.of(commit_id), self._staging.transaction(commit_id)
        with self._talking() as connection:
            # A late prepared transaction of a former owner, or of an earlier attempt, locks the
            # marker; committed ones are already published, so it can be rolled back.
            self._staging.roll_back(connection, lambda each: each == own or each.token < own.token)
        with self._copied() as copying:
            write_batches(copying, batches)
            if batches:
                with copying.cursor() as cursor:
                    prepared.prepare(cursor, self._marker, commit_id, name)
            copying.commit()
        note: Document = {_WITH: keys.PREPARED, "schema": self._layout.schema}
        return self._manifest(rows, name, batches, note)

    def _manifest(
        self, rows: pa.Table, staged_as: str, batches: list[TargetBatch], note: Document
    ) -> Manifest:
        parts = tuple(
            Part(json.dumps([*each.target.name]), each.rows.rows.nbytes, each.rows.rows.num_rows)
            for each in batches
        )
        size = sum(each.bytes for each in parts)
        return Manifest(
            self._server.shown, staged_as, rows.num_rows, size, len(parts), parts, note=note
        )

    def _fit(self, rows: TargetRows) -> TargetTable:
        if time.monotonic() - self._fitted_since >= _FITTED_S:
            self._fitted.clear()
            self._fitted_since = time.monotonic()
        key = (rows.name, rows.rows.schema, rows.only_deletes)
        if key not in self._fitted:
            with self._talking() as connection:
                name, schema, only_deletes = key
                self._fitted[key] = self._rules.fitted(
                    connection, name, schema, only_deletes=only_deletes
                )
        return self._fitted[key]

    @contextmanager
    def _copied(self) -> "Generator[adbc.Connection]":
        """Yield the ADBC connection; rolls back after an error."""
        if self._copying is None:
            self._copying = self._reached(self._server.connect_adbc)
        try:
            yield self._copying
        except BaseException as error:
            self._take_back()
            if isinstance(error, adbc.Error):
                self._fitted.clear()
                raise self._translated(error) from None
            raise

    def _take_back(self) -> None:
        try:
            if self._copying:
                self._copying.rollback()
        except adbc.Error:
            self.close()

    @contextmanager
    def _talking(self) -> Generator[psycopg.Connection[Any]]:
        """Yield the psycopg connection; raises transient errors as `SinkAway`."""
        if self._connection is None or self._connection.closed:
            self._connection = self._reached(self._server.connect)
        try:
            yield self._connection
        except SinkBroken:
            self._fitted.clear()
            raise
        except psycopg.Error as error:
            if is_away(error) and not is_data(error):
                self.close()
            raise self._translated(error) from None

    def _reached(self, connect: Callable[[], T]) -> T:
        try:
            return connect()
        except Away as away:
            raise SinkAway(str(away)) from None

    def _translated(self, error: Exception) -> Exception:
        """Return the exception for an error of the server."""
        text = f"{self._server.shown}: {brief(str(error))}"
        if is_full(error):
            return SinkFull(text)
        if is_away(error):
            return SinkAway(text)
        if getattr(error, "sqlstate", None):
            return SinkBroken(f"{text}. What counts is kept, and published once this is mended")
        return error
