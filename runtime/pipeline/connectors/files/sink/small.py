# pyright: basic
"""A small batch of parquet is written by the worker, to which Spark hands the rows.

That takes half of what it costs to have Spark write them. Which of the two wrote a file makes no
difference to readers: only columns of plain types pass here, under the settings that Spark writes
them alike with.

What a batch comes to is known once it is there, and the rows of one have to fit into memory. So the
first batch of each attempt is Spark's to write, and the ones after it are taken by what it came to.
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

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MOST_BYTES: Final = 1 << 20
"""Of input: above it a batch is worth a job that writes on all cores."""
_MOST_ROWS: Final = 50_000
_PLAIN: Final = (
    *(st.BooleanType, st.ByteType, st.ShortType, st.IntegerType, st.LongType),
    *(st.FloatType, st.DoubleType, st.DecimalType, st.BinaryType),
    *(st.DateType, st.TimestampType, st.TimestampNTZType),
)
_TEXT: Final = st.StringType()
"""Of plain text; one with a collation differs from it."""
_SETTINGS: Final = {
    "spark.sql.files.maxRecordsPerFile": "0",
    "spark.sql.parquet.compression.codec": "snappy",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
}
"""With these Spark writes what is written here."""


class SmallBatches:
    """Which batches of one sink are small, and how they are written."""

    def __init__(self, file_bytes: int) -> None:
        """Take how much input goes into one file; 0: files are no plain parquet in one folder."""
        self._most_bytes = min(_MOST_BYTES, file_bytes)
        self._rows_per_byte = inf
        """How many rows came of a byte of input in the last batch that Spark wrote."""
        self._is_alike: bool | None = None
        """Whether Spark's settings are the ones that this is alike with; None: not asked yet."""

    def learn(self, manifest: Manifest, input_bytes: int) -> None:
        """Take note of what a batch came to that Spark wrote."""
        self._rows_per_byte = manifest.rows / input_bytes if input_bytes else inf

    def take(self, rows: "DataFrame", input_bytes: int) -> bool:
        """Tell whether a batch is one of these."""
        most_rows = input_bytes * self._rows_per_byte
        if not 0 < input_bytes <= self._most_bytes or most_rows > _MOST_ROWS:
            return False
        if self._is_alike is None:
            self._is_alike = _is_alike(rows.sparkSession)
        return self._is_alike and all(map(_is_plain, rows.schema.fields))

    def write(self, rows: "DataFrame", folder: Path) -> None:
        """Write a batch as one file into a folder that is made anew."""
        table = rows_of(rows)
        make_empty_folder(folder)
        papq.write_table(
            table,
            folder / f"part-00000-{uuid4()}-c000.snappy.parquet",
            compression="snappy",
            store_decimal_as_integer=True,
            store_schema=False,
        )


def _is_plain(column: st.StructField) -> bool:
    return isinstance(column.dataType, _PLAIN) or column.dataType == _TEXT


def _is_alike(spark: "SparkSession") -> bool:
    return all(spark.conf.get(name) == value for name, value in _SETTINGS.items())
