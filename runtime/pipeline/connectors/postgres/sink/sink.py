# pyright: basic
"""Tables of PostgreSQL as a sink: a batch is staged by COPY, and published in one transaction."""

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import adbc_driver_postgresql.dbapi as adbc
import psycopg
import pyarrow as pa

from ......events.commits import CommitId, Manifest, Part
from ......events.model import Resource, Token
from ....spi.config import ConfigInvalid
from ....spi.errors import Away, SinkAway, SinkBroken, SinkFull
from ....spi.sink import Sink, Tenure
from ...marks import refuse_other_log
from ..connecting import Server, brief, is_away, is_data, is_full
from ..names import TableName
from . import keys, staging
from .changes import TableChange, try_changes
from .layout import RowLayout, TargetRows
from .publishing import Marker, put_in_place, waiting_in
from .tables import TableRules, TargetTable

T = TypeVar("T")

_OTHERS = """
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
        application: str,
        where: staging.Staging,
        layout: RowLayout,
        rules: TableRules,
    ) -> None:
        self._server = server
        self._application = application
        self._staging = where
        self._layout = layout
        self._rules = rules
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

    def stage(self, rows: pa.Table, commit_id: CommitId, input_bytes: int) -> Manifest:
        """Write a batch to tables of its own, one for each target."""
        del input_bytes
        split = self._layout.split(rows)
        targets = [each for each in split if each.rows.num_rows or each.is_emptied]
        fitted = [self._fit(each) for each in targets]
        schema, parts, changes = self._layout.schema, list[Part](), list[TableChange]()
        with self._copied() as copying:
            for number, (target, batch) in enumerate(zip(fitted, targets, strict=True)):
                name = TableName(schema, self._staging.table(commit_id, number))
                staging.write(copying, name, target, batch)
                changes.append(self._change(target, name, batch))
                path, size = json.dumps([*target.name]), batch.rows.nbytes
                parts.append(Part(path, size, batch.rows.num_rows))
            # A table that is emptied is not emptied twice: that would keep all others out of it.
            if any(each.shows_late for each in fitted) and not any(
                each.is_emptied for each in targets
            ):
                try_changes(copying, changes)
            copying.commit()
        return Manifest(
            self._server.shown,
            self._staging.table(commit_id, 0)[:-1],
            rows.num_rows,
            sum(each.bytes for each in parts),
            len(parts),
            tuple(parts),
            note={
                "mode": self._layout.mode,
                "schema": schema,
                "key": json.dumps(self._rules.key),
                "emptied": json.dumps([each.is_emptied for each in targets]),
                "order": self._layout.order,
            },
        )

    def publish(self, manifest: Manifest, commit_id: CommitId, sequence: int) -> None:
        """Put a batch in place in one transaction, unless its marker says that it is."""
        del sequence
        marker = Marker(str(manifest.note["schema"]), self._staging.cluster_id)
        with self._talking() as connection:
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
        with suppress(SinkAway, SinkBroken, ConfigInvalid), self._talking() as connection:
            staging.drop(connection, self._staging.of_batch(connection, commit_id))

    def sweep(self, resource: Resource, token: Token) -> None:
        """Drop what a task has staged under a token and older ones."""
        where = self._staging._replace(task=resource)
        with self._talking() as connection:
            staging.drop(connection, where.up_to(connection, token))

    def close(self) -> None:
        """End its sessions."""
        for each in (self._copying, self._connection):
            if each is not None:
                with suppress(adbc.Error, psycopg.Error):
                    each.close()
        self._copying = self._connection = None

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
