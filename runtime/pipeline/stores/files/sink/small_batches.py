# pyright: basic
"""Writes small parquet batches in the worker, with pyarrow, at half the cost of a Spark write.

Readers see no difference: only columns of plain types are written here, and only under settings
with which Spark writes the same files.

The number of rows, which must fit into memory, is unknown before a batch is computed. So Spark
writes the first batch of each attempt, and its rows per input byte are the estimate for later ones.
"""

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import pyarrow.parquet as papq
from pyspark.sql import types as st

from ......events.commits import Manifest
from ....batches.counting import rows_of
from .staging import make_empty_folder
from .writing import Written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MOST_BYTES: Final = 1 << 20
"""The most input: a larger batch is worth a write on all cores."""
_MOST_ROWS: Final = 50_000
_PLAIN: Final = (
    *(st.BooleanType, st.ByteType, st.ShortType, st.IntegerType, st.LongType),
    *(st.FloatType, st.DoubleType, st.DecimalType, st.BinaryType),
    *(st.DateType, st.TimestampType, st.TimestampNTZType),
)
_TEXT: Final = st.StringType()
"""Text without a collation."""
_SETTINGS: Final = {
    "spark.sql.files.maxRecordsPerFile": "0",
    "spark.sql.parquet.compression.codec": "snappy",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
}
"""The Spark settings with which Spark writes the same files."""


class SmallBatches:
    """Decides which batches of one sink are small, and writes them."""

    def __init__(self, file_bytes: int) -> None:
        """Take the most input of one file; 0: not plain parquet in one folder, so none is small."""
        self._most_bytes = min(_MOST_BYTES, file_bytes)
        self._rows_per_byte = inf
        """The rows per input byte of the last batch that Spark wrote."""
        self._is_alike: bool | None = None
        """Whether Spark has the settings above; None: not checked yet."""

    def learn(self, manifest: Manifest, input_bytes: int) -> None:
        """Note the rows of a batch that Spark wrote."""
        self._rows_per_byte = manifest.rows / input_bytes if input_bytes else inf

    def take(self, rows: "DataFrame", input_bytes: int) -> bool:
        """Tell whether a batch is small."""
        most_rows = input_bytes * self._rows_per_byte
        if not 0 < input_bytes <= self._most_bytes or most_rows > _MOST_ROWS:
            return False
        if self._is_alike is None:
            self._is_alike = _is_alike(rows.sparkSession)
        return self._is_alike and all(map(_is_plain, rows.schema.fields))

    def write(self, rows: "DataFrame", folder: Path) -> Written:
        """Write a batch as one file to a new folder."""
        table = rows_of(rows)
        make_empty_folder(folder)
        papq.write_table(
            table,
            folder / f"part-00000-{uuid4()}-c000.snappy.parquet",
            compression="snappy",
            store_decimal_as_integer=True,
            store_schema=False,
        )
        return Written(table.num_rows)


def _is_plain(column: st.StructField) -> bool:
    return isinstance(column.dataType, _PLAIN) or column.dataType == _TEXT


def _is_alike(spark: "SparkSession") -> bool:
    return all(spark.conf.get(name) == value for name, value in _SETTINGS.items())
