# pyright: basic
"""How files become rows: a format, its options and the schema that they must fit.

Rows that do not fit end the batch (Spark's FAILFAST), unless `errors.tolerance` is `all`,
where they are dropped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.parquet as papq
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructField, StructType

from .spi import BadInput

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class ReadFormat:
    """A format that Spark reads, with the schema as DDL."""

    name: str
    schema: str
    nulls: tuple[str, ...] = ()
    tolerant: bool = False
    options: Mapping[str, str] = field(default_factory=dict[str, str])

    def load(self, spark: "SparkSession", paths: Sequence[str]) -> "DataFrame":
        """Describe the rows of some files; none is opened before the job runs."""
        reader = spark.read.options(**self._options())
        if self.name != "csv" or len(self.nulls) <= 1:
            return reader.schema(self.schema).format(self.name).load(list(paths))
        # Spark's CSV reader knows one spelling of null only, so the others are undone here.
        typed = cast(StructType, StructType.fromDDL(self.schema))
        texts = StructType([StructField(each.name, StringType()) for each in typed.fields])
        frame = reader.schema(texts).format("csv").load(list(paths))
        return frame.select(*(_undone(frame, each, self.nulls) for each in typed.fields))

    def count(self, files: Sequence[Path]) -> int:
        """Return how many rows files hold, or -1 if only reading them can tell."""
        if self.name != "parquet":
            return -1
        return sum(map(_rows_of, files))

    def _options(self) -> Mapping[str, str]:
        if self.name == "parquet":
            return self.options
        base = {"mode": "DROPMALFORMED" if self.tolerant else "FAILFAST"}
        if self.name == "csv":
            # A header in another order must not fill the wrong columns, and a bad value is
            # bad even where no transform looks at its column.
            base |= {"enforceSchema": "false", "columnPruning": "false"}
            if len(self.nulls) == 1:
                base["nullValue"] = self.nulls[0]
        return {**base, **self.options}


def _rows_of(file: Path) -> int:
    try:
        return int(papq.read_metadata(file).num_rows)
    except (pa.ArrowException, OSError) as error:
        raise BadInput(f"{file}: {error}") from error


def _undone(frame: "DataFrame", column: StructField, nulls: tuple[str, ...]) -> "Column":
    text = frame[_quoted(column.name)]
    return sf.when(~text.isin(*nulls), text).cast(column.dataType).alias(column.name)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
