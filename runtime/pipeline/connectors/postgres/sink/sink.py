# pyright: basic
"""Tables of PostgreSQL as a sink: a batch is staged by COPY, and published in one transaction.

It waits in tables of its own, or as a prepared transaction. A sink that is at least once puts it
in place as it comes.
"""

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

import adbc_driver_postgresql.dbapi as adbc
import psycopg
import pyarrow as pa

from ......events.commits import CommitId, Document, Manifest, Part
from ......events.model import Resource, Token
from ....spi.config import ConfigInvalid
from ....spi.errors import Away, SinkAway, SinkBroken, SinkFull
from ....spi.sink import Sink, Tenure
from ...marks import PublishedBatch, refuse_other_log
from ..connecting import Server, application_name, brief, is_away, is_data, is_full
from ..names import TableName
from . import keys, prepared, staging
from .changes import TableChange, try_changes
from .in_place import TargetBatch, put_in
from .layout import RowLayout, TargetRows
from .publishing import Marker, put_in_place, waiting_in
from .tables import TableRules, TargetTable

T = TypeVar("T")

_WITH: Final = "with"
"""In manifests: `prepared` if the batch waits as a prepared transaction."""
_OTHERS: Final = """
WITH others AS MATERIALIZED (
    SELECT pid FROM pg_stat_activity
    WHERE application_name = %s AND pid <> pg_backend_pid() AND datname = current_database())
SELECT pid FROM others WHERE NOT pg_terminate_backend(pid, 5000)"""
"""Ends the sessions of a name, and gives those that go on after 5 s.

They are chosen first and for good: else the server might ask the condition that ends a session of
any session at all.
"""


class PostgresSink(Sink["pa.Table"]):
    """Writes the batches of one task; its sessions go by the task's name alone."""

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
        """Whether batches wait as prepared transactions."""
        self._is_at_once = is_at_once
        self._marker = Marker(layout.schema, where.cluster_id)
        self._connection: psycopg.Connection[Any] | None = None
        self._copying: adbc.Connection | None = None
        """The connection of ADBC, which stages."""
        self._fitted: dict[tuple[TableName, pa.Schema], TargetTable] = {}
        """Tables that rows of a schema were found to fit into."""

    def acquire(self, tenure: Tenure) -> None:
        """End the sessions of former owners, and hold the marker against the log."""
        with self._talking() as connection:
            left = connection.execute(_OTHERS, (self._application,)).fetchall()
            if left:
                pids = ", ".join(str(pid) for (pid,) in left)
                raise SinkAway(
                    f"{self._server.shown}: sessions of a former owner go on: pid {pids}"
                )
            self._marker.make(connection)
            marked = self._marker.read(connection, tenure.task)
        if marked is not None:
            remedy = self._marker.remedy(tenure.task)
            refuse_other_log(tenure, marked, self._server.shown, remedy)

    def prepare(self, schema: pa.Schema) -> None:
        """Make or change the table, where its name does not hang on the rows."""
        if not self._layout.is_of_topics:
            for rows in self._layout.split(schema.empty_table()):
                self._fit(rows)

    @property
    def writes_at_once(self) -> bool:
        """Whether batches are put in place before they count."""
        return self._is_at_once

    def stage(self, rows: pa.Table, commit_id: CommitId, input_bytes: int) -> Manifest:
        """Write a batch to tables of its own, one for each target, or prepare its transaction."""
        del input_bytes
        batches = self._split(rows, commit_id)
        if self._is_prepared:
            return self._prepare(rows, commit_id, batches)
        with self._copied() as copying:
            for each in batches:
                staging.write(copying, each.change.staged, each.target, each.rows)
            # A table that is emptied is not emptied twice: that would keep all others out of it.
            if any(each.target.shows_late for each in batches) and not any(
                each.rows.is_emptied for each in batches
            ):
                try_changes(copying, [each.change for each in batches])
            copying.commit()
        note: Document = {
            "mode": self._layout.mode,
            "schema": self._layout.schema,
            "key": json.dumps(self._rules.key),
            "emptied": json.dumps([each.rows.is_emptied for each in batches]),
            "order": self._layout.order,
        }
        return self._manifest(rows, f"{self._staging.transaction(commit_id)}_", batches, note)

    def write(self, rows: pa.Table, commit_id: CommitId, input_bytes: int) -> Manifest:
        """Put a batch into its tables at once."""
        del input_bytes
        batches = self._split(rows, commit_id)
        with self._copied() as copying:
            put_in(copying, batches)
            copying.commit()
        size = sum(each.rows.rows.nbytes for each in batches)
        return Manifest(self._server.shown, "", rows.num_rows, size, 0)

    def publish(self, manifest: Manifest, commit_id: CommitId, sequence: int) -> None:
        """Put a batch in place in one transaction, unless its marker says that it is."""
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
                    f"where the batch waits ({waiting_in(manifest)}), and it is published"
                ) from None

    def discard(self, commit_id: CommitId) -> None:
        """Drop what was staged for a batch; what cannot be dropped now is swept later."""
        batch = PublishedBatch.of(commit_id)
        with suppress(SinkAway, SinkBroken, ConfigInvalid), self._talking() as connection:
            self._staging.drop(connection, batch.__eq__)

    def sweep(self, resource: Resource, token: Token) -> None:
        """Drop what a task has staged under a token and older ones."""
        where = self._staging._replace(task=resource)
        with self._talking() as connection:
            where.drop(connection, lambda each: each.token <= token)

    def close(self) -> None:
        """End its sessions."""
        for each in (self._copying, self._connection):
            if each is not None:
                with suppress(adbc.Error, psycopg.Error):
                    each.close()
        self._copying = self._connection = None

    def _split(self, rows: pa.Table, commit_id: CommitId) -> list[TargetBatch]:
        """Return the rows of a batch by the tables that they go to."""
        split = self._layout.split(rows)
        found = [each for each in split if each.rows.num_rows or each.is_emptied]
        fitted = [self._fit(each) for each in found]
        names = [
            TableName(self._layout.schema, self._staging.table(commit_id, number))
            for number in range(len(found))
        ]
        return [
            TargetBatch(target, each, self._change(target, name, each))
            for target, each, name in zip(fitted, found, names, strict=True)
        ]

    def _prepare(self, rows: pa.Table, commit_id: CommitId, batches: list[TargetBatch]) -> Manifest:
        """Have a batch wait as a prepared transaction."""
        own, name = PublishedBatch.of(commit_id), self._staging.transaction(commit_id)
        with self._talking() as connection:
            # What a former owner has prepared late, or an earlier attempt at this batch, holds the
            # marker: all of theirs that counts is published by now.
            self._staging.roll_back(connection, lambda each: each == own or each.token < own.token)
        with self._copied() as copying:
            put_in(copying, batches)
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

    def _change(self, target: TargetTable, name: TableName, batch: TargetRows) -> TableChange:
        given = [target.by_name[each] for each in batch.rows.column_names]
        chosen = {each.name: each for each in given if not each.is_computed}
        layout, key = self._layout, target.key
        key = () if layout.mode == keys.INSERT else key
        has_deletes = batch.deletes is not None
        return TableChange(target.name, chosen, key, layout.mode, name, has_deletes, layout.order)

    def _fit(self, rows: TargetRows) -> TargetTable:
        key = (rows.name, rows.rows.schema)
        if key not in self._fitted:
            with self._talking() as connection:
                self._fitted[key] = self._rules.fitted(connection, rows.name, rows.rows.schema)
        return self._fitted[key]

    @contextmanager
    def _copied(self) -> "Generator[adbc.Connection]":
        """Yield ADBC's connection; an error takes back what was not committed."""
        if self._copying is None:
            self._copying = self._reached(self._server.connect_adbc)
        try:
            yield self._copying
        except BaseException as error:
            self._take_back()
            if isinstance(error, adbc.Error):
                raise self._told(error) from None
            raise

    def _take_back(self) -> None:
        try:
            if self._copying:
                self._copying.rollback()
        except adbc.Error:
            self.close()

    @contextmanager
    def _talking(self) -> Generator[psycopg.Connection[Any]]:
        """Yield the connection; what passes by itself is `SinkAway`."""
        if self._connection is None or self._connection.closed:
            self._connection = self._reached(self._server.connect)
        try:
            yield self._connection
        except psycopg.Error as error:
            if is_away(error) and not is_data(error):
                self.close()
            raise self._told(error) from None

    def _reached(self, connect: Callable[[], T]) -> T:
        try:
            return connect()
        except Away as away:
            raise SinkAway(str(away)) from None

    def _told(self, error: Exception) -> Exception:
        """Return an error of the server's as what it means to the task."""
        text = f"{self._server.shown}: {brief(str(error))}"
        if is_full(error):
            return SinkFull(text)
        if is_away(error):
            return SinkAway(text)
        if getattr(error, "sqlstate", None):
            return SinkBroken(f"{text}. What counts is kept, and published once this is mended")
        return error
