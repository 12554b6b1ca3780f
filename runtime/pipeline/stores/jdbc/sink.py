# pyright: basic
"""`sink.type=jdbc`: appends each batch to a table in one transaction, before its commit."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from pyspark.errors import AnalysisException

from .....events.commits import CommitId, Manifest
from .....events.model import Resource, Token
from ...spi.config import Definition, ParsedConfig
from ...spi.connector import Delivery, Promise
from ...spi.context import Context, ExternalAccess, ProbeResult
from ...spi.errors import SchemaRefused, SinkAway
from ...spi.lineage import Dataset
from ...spi.sink import Sink
from ...spi.types import SinkType
from . import keys
from .connecting import dataset_in, missing_driver_error, options, probe_url, why_away

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class JdbcSink(Sink["DataFrame"]):
    """Appends the batches of one task to a table."""

    def __init__(self, options: Mapping[str, str], table: str, *, makes_table: bool) -> None:
        self._options = {**options, "dbtable": table}
        self._table = table
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
            writer = self._written(rows).coalesce(1).write.format("jdbc").options(**self._options)
            writer.mode("append").save()
        except SchemaRefused:
            raise
        except Exception as error:
            if missing := missing_driver_error("sink", error):
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
            if why_away(error) or missing_driver_error("sink", error):
                raise
            raise SchemaRefused(
                f"there is no table {self._table}, or it cannot be read: make it, or set "
                f"{keys.AUTO_CREATE}=true ({error})"
            ) from error
        self._is_there = True


class JdbcSinkType(SinkType):
    """A table that Spark writes by a JDBC driver."""

    version: ClassVar[str] = "1.0"
    delivery: ClassVar[Delivery] = Delivery.AT_LEAST_ONCE

    @classmethod
    def keys(cls) -> Sequence[Definition]:
        """Return the definitions of its keys."""
        return keys.SINK

    @classmethod
    def complaints(cls, config: Mapping[str, str]) -> Mapping[str, str]:
        """Return errors of keys that do not fit together, by the key to change."""
        return keys.complaints("sink", config)

    @classmethod
    def delivery_of(cls, config: Mapping[str, str]) -> Promise:
        """Return at least once, and why."""
        del config
        return Promise(cls.delivery, ("sink.type=jdbc: rows of a batch come twice after a crash",))

    @classmethod
    def datasets(cls, config: Mapping[str, str], manifest: Manifest) -> Sequence[Dataset]:
        """Return the table."""
        del manifest
        return [dataset_in("sink", config, config[keys.TABLE])]

    @classmethod
    def probe(cls, config: Mapping[str, str], outside: ExternalAccess) -> ProbeResult:
        """Check that the node allows the URL."""
        return probe_url("sink", config, outside.reach)

    @classmethod
    def sink(cls, context: Context, config: Mapping[str, str], settings: ParsedConfig) -> JdbcSink:
        """Make the sink of one task."""
        return JdbcSink(
            options("sink", config, context.reach),
            settings.text(keys.TABLE),
            makes_table=settings.flag(keys.AUTO_CREATE),
        )
