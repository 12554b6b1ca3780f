# pyright: basic, reportAttributeAccessIssue=false
"""Decoders of records with Avro values or Avro keys."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from ....formats.evolution.names import find_twins
from ....spi.config import ConfigInvalid
from ....spi.errors import BadInput, SchemaRefused
from ....spi.rows import Rejects
from ..avro.columns import AvroColumns, Flaws
from .decoding import KafkaRows, RecordDecoder, columns_clash
from .records.bad_records import record_error, reject_records, without_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class AvroDecoder(RecordDecoder):
    """Decodes values in Avro; their columns are known beforehand."""

    def __init__(self, rows: KafkaRows, columns: AvroColumns) -> None:
        """Take the decoder of the columns."""
        super().__init__(rows)
        self._columns = columns
        self._rejects: list[Rejects] = []

    @property
    def parts_rows(self) -> bool:
        """Whether the rows may be fewer than the records."""
        return self._rows.parts_bad or self._columns.sets_aside

    @property
    def remark(self) -> str:
        """Say which columns are left out."""
        return self._columns.remark

    def rejects(self) -> Sequence[Rejects]:
        """Return the records that were left out."""
        return self._rejects

    def decode(self, spark: "SparkSession", table: pa.Table) -> pa.Table:
        """Return the rows in Arrow; raises `BadInput`, `SchemaRefused`."""
        self._rejects, flaws = [], Flaws({}, {})
        found = self._columns.decode(table, flaws)
        if twins := find_twins(self._columns.current, self._rows.metadata):
            raise ConfigInvalid(columns_clash(*twins))
        beside = self._metadata(table)
        for name, column in zip(beside.column_names, beside.columns, strict=True):
            found = found.append_column(name, column)
        return self._without(spark, table, found, flaws)

    def _without(
        self, spark: "SparkSession", table: pa.Table, found: pa.Table, flaws: Flaws
    ) -> pa.Table:
        """Remove bad rows, or raise for the first of them."""
        bad = flaws.unreadable | flaws.unfit
        if flaws.unreadable and not self._rows.parts_bad:
            row = min(flaws.unreadable)
            raise BadInput(record_error(table, row, bad[row]))
        if flaws.unfit and not self._columns.sets_aside:
            row = min(flaws.unfit)
            raise SchemaRefused(record_error(table, row, bad[row]))
        if bad:
            self._rejects.append(reject_records(spark, table, bad))
            return without_rows(found, bad)
        return found


class AvroKeyDecoder(AvroDecoder):
    """Decodes keys in Avro; another decoder decodes the values."""

    def __init__(self, rows: KafkaRows, columns: AvroColumns, values: RecordDecoder) -> None:
        """Take the decoders of keys and of values."""
        super().__init__(rows, columns)
        self._values = values

    @property
    def parts_rows(self) -> bool:
        """Whether the rows may be fewer than the records."""
        return super().parts_rows or self._values.parts_rows

    @property
    def remark(self) -> str:
        """Say which columns are left out."""
        return self._values.remark or super().remark

    def rejects(self) -> Sequence[Rejects]:
        """Return the records with a bad key or a bad value."""
        return [*self._rejects, *self._values.rejects()]

    def decode(self, spark: "SparkSession", table: pa.Table) -> "DataFrame | pa.Table":
        """Return the decoded values with the decoded keys."""
        self._rejects, flaws = [], Flaws({}, {})
        (keys,) = self._columns.decode(table, flaws).columns
        place = table.column_names.index("_key")
        keyed = self._without(spark, table, table.set_column(place, "_key", keys), flaws)
        return self._values.decode(spark, keyed)
