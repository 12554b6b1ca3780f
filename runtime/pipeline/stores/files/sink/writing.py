# pyright: basic
"""Spark's file writer: the format, its options, and the number of files."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from pyspark.sql import functions as sf
from pyspark.sql import types as st

from ......events.commits import Manifest
from ....batches.counting import RowCount
from ....batches.frames import rows_of
from ....engines.sessions import cores_of
from ....engines.spelling import path_to_write
from ....formats.spark.options import SINK_OPTION, options_of
from ....spi.config import ParsedConfig
from .. import keys
from ..sink_folder.staging import make_empty_folder
from .arrow_parts import write_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LARGEST_PART = 64 << 20
_BYTES_PER_PART = 4 << 20
"""The input for one Spark task, so that a batch is written by all cores."""
_WRITE = {
    # Staged files have no readers, so the safety measures of the committer only cost time.
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
}

_PART = "_fairlead_part"
_RFC_4180 = {
    "header": "true",
    "ignoreleadingwhitespace": "false",
    "ignoretrailingwhitespace": "false",
}
_TIMES = {
    "timestampformat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampntzformat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


class WrittenRows(NamedTuple):
    """The number of rows that a writer reports."""

    rows: int
    parts: frozenset[int] = frozenset()
    """The numbers of the parts with rows, if they were asked for."""


@dataclass(frozen=True, slots=True)
class WriteFormat:
    """The format to write, with its options and partition columns."""

    name: str
    partition_by: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    """The options of Spark's writer, with names in lower case."""
    file_bytes: int = _LARGEST_PART
    """The most input for one file."""

    @classmethod
    def of(cls, settings: ParsedConfig, config: Mapping[str, str]) -> Self:
        """Return the format of a config; its options override the defaults.

        By default, csv is RFC 4180 and timestamps have all digits, unlike Spark's defaults.
        """
        overrides = options_of(SINK_OPTION, config)
        name = settings.text(keys.SINK_FORMAT)
        options = {} if name == "parquet" else _TIMES
        if name == "csv":
            options = options | _RFC_4180 | {"escape": overrides.get("quote", '"')}
        most = settings.number(keys.SINK_FILE_BYTES)
        return cls(name, settings.items(keys.SINK_PARTITION_BY), {**options, **overrides}, most)

    def write(
        self,
        rows: "DataFrame",
        folder: Path,
        input_bytes: int,
        count: RowCount,
        *,
        is_there: bool,
        with_parts: bool,
    ) -> WrittenRows:
        """Write rows to a folder; `input_bytes` sizes the files, `is_there`: the folder exists."""
        spread = self._spread(rows, input_bytes)
        if with_parts:
            # Spark does not evaluate the number of a part in an observation itself.
            numbered = spread.withColumn(_PART, sf.spark_partition_id())
            watched = count.on(numbered, sf.collect_set(_PART).alias(_PART)).drop(_PART)
        else:
            watched = count.on(spread)
        self._save(watched, folder, "append" if is_there else "overwrite")
        return WrittenRows(count.rows, frozenset(count.values.get(_PART) or ()))

    def _save(self, rows: "DataFrame", folder: Path, mode: str) -> None:
        writer = rows.write.mode(mode).format(self.name)
        writer = writer.options(**_WRITE, **self._options(rows))
        writer = writer.partitionBy(*self.partition_by)
        writer.save(path_to_write(folder))

    def _options(self, rows: "DataFrame") -> Mapping[str, str]:
        """Return the options for writing `rows`.

        In csv with one column a null would be an empty line, which Spark skips: it is written as an
        empty text, so that the row is kept.
        """
        options = self.options
        if self.name != "csv" or "nullvalue" in options:
            return self.options
        folders = {each.lower() for each in self.partition_by}
        if sum(each.lower() not in folders for each in rows.schema.names) != 1:
            return self.options
        return {**self.options, "nullvalue": 2 * options.get("quote", "") or '""'}

    def _spread(self, rows: "DataFrame", input_bytes: int) -> "DataFrame":
        """Repartition rows: few files, but all cores write; more files if they must be small."""
        files = _parts_of(input_bytes, cores_of(rows.sparkSession))
        wanted = -(-input_bytes // self.file_bytes)
        return rows.repartition(wanted) if wanted > files else rows.coalesce(files)

    def parts_of(self, input_bytes: int, cores: int) -> int:
        """Return in how many parts to write a batch on so many cores."""
        return max(_parts_of(input_bytes, cores), -(-input_bytes // self.file_bytes))


def _parts_of(input_bytes: int, cores: int) -> int:
    used = min(cores, 1 + input_bytes // _BYTES_PER_PART)
    return max(used, 1 + input_bytes // _LARGEST_PART)


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
    """Decides which batches of one sink the worker writes, since they are small or in Arrow."""

    def __init__(self, file_bytes: int, settings: Mapping[str, str] | None = None) -> None:
        """Start with the most input of one file; 0: files are not plain, so Spark writes them.

        `settings` are those of Spark that differ from its defaults; None: a session is asked.
        """
        self._most_bytes = min(_MOST_BYTES, file_bytes)
        """The most input of a batch that is small."""
        self._rows_per_byte = inf
        """The rows per input byte of the last batch that Spark wrote."""
        self._is_alike = None if settings is None else _is_alike({**_SETTINGS, **settings}.get)
        """Whether Spark has the settings above; None: not checked yet."""

    @property
    def takes_tables(self) -> bool:
        """Whether Arrow writes the same files as Spark does, as far as known without Spark."""
        return bool(self._most_bytes and self._is_alike)

    def learn(self, manifest: Manifest, input_bytes: int) -> None:
        """Note the rows of a batch that Spark wrote."""
        self._rows_per_byte = manifest.rows / input_bytes if input_bytes else inf

    def take(self, rows: "DataFrame", input_bytes: int) -> bool:
        """Return whether a batch is small."""
        most_rows = input_bytes * self._rows_per_byte
        if not 0 < input_bytes <= self._most_bytes or most_rows > _MOST_ROWS:
            return False
        return self.are_alike(rows.sparkSession, rows.schema)

    def are_alike(self, spark: "SparkSession | None", schema: st.StructType) -> bool:
        """Return whether Spark would write the same files as Arrow does; None: it is not there."""
        if self._is_alike is None and spark is not None:
            self._is_alike = _is_alike(spark.conf.get)
        return self.takes_tables and bool(schema.fields) and all(map(_is_plain, schema.fields))

    def write(self, rows: "DataFrame", folder: Path) -> WrittenRows:
        """Write a batch as one file to a new folder."""
        table = rows_of(rows)
        make_empty_folder(folder)
        write_table(table, table.schema, 1, folder)
        return WrittenRows(table.num_rows)


def _is_plain(column: st.StructField) -> bool:
    return isinstance(column.dataType, _PLAIN) or column.dataType == _TEXT


def _is_alike(setting: Callable[[str], str | None]) -> bool:
    return all(setting(name) == value for name, value in _SETTINGS.items())
