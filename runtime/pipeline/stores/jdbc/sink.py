# pyright: basic
"""The JDBC sink: appends each batch to a table in one transaction, before its commit."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from .....events.commits import CommitId, Manifest
from .....events.model import Resource, Token
from ...spi.errors import SchemaRefused, SinkAway
from ...spi.sink import Sink
from . import keys
from .connecting import why_away, without_driver

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class JdbcSink(Sink["DataFrame"]):
    """Appends the batches of one task to a table."""

    def __init__(self, options: Mapping[str, str], table: str, *, makes_table: bool) -> None:
        self._options = {**options, "dbtable": table}
        self._table = table
        self._makes_table = makes_table
        self._is_there = makes_table
        """Whether the table exists, or may be created."""

    @property
    def writes_at_once(self) -> bool:
        """Whether batches are written before their commit: always."""
        return True

    def write(self, rows: "DataFrame", commit_id: CommitId, input_bytes: int) -> Manifest:
        """Append a batch over one connection, in one transaction."""
        del commit_id
        try:
            self._look(rows)
            told = self._written(rows).coalesce(1).write.format("jdbc").options(**self._options)
            told.mode("append").save()
        except SchemaRefused:
            raise
        except Exception as error:
            if missing := without_driver("sink", error):
                raise missing from error
            if why := why_away(error):
                raise SinkAway(why) from error
            if isinstance(error, AnalysisException):
                raise SchemaRefused(f"{self._table}: {error.getMessage()}") from error
            raise
        return Manifest(self._options["url"].partition("?")[0], "", -1, input_bytes, 0)

    def stage(self, rows: "DataFrame", commit_id: CommitId, input_bytes: int) -> Manifest:
        """Raise: this sink cannot stage, so bad rows are not bisected."""
        raise NotImplementedError

    def publish(self, manifest: Manifest, commit_id: CommitId, sequence: int) -> None:
        """Do nothing: batches are written directly."""

    def discard(self, commit_id: CommitId) -> None:
        """Do nothing: nothing is staged."""

    def sweep(self, resource: Resource, token: Token) -> None:
        """Do nothing, as above."""

    def _written(self, rows: "DataFrame") -> "DataFrame":
        """Return the columns of the table, whose names do not begin with _."""
        if names := [each for each in rows.columns if not each.startswith("_")]:
            return rows.select(names)
        raise SchemaRefused(
            f"{self._table}: no column is left for it, as all names begin with _: give those that "
            "it shall have other names by a transform. Nothing of the batch was written"
        )

    def _look(self, rows: "DataFrame") -> None:
        """Check once that the table exists, since Spark would create it."""
        if self._is_there:
            return
        try:
            rows.sparkSession.read.format("jdbc").options(**self._options).load()
        except Exception as error:
            if why_away(error) or without_driver("sink", error):
                raise
            raise SchemaRefused(
                f"there is no table {self._table}, or it cannot be read: make it, or set "
                f"{keys.AUTO_CREATE}=true ({error})"
            ) from error
        self._is_there = True
