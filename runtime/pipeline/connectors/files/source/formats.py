# pyright: basic
"""How files become rows: a format, its options and the schema that they must fit.

Rows that do not fit end the batch (Spark's FAILFAST), unless `errors.tolerance` is `all`, where
they are kept apart (`bad_rows`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, cast
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as papq
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    DataType,
    DateType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ....spi.config import ConfigInvalid, ParsedConfig, under
from ....spi.errors import BadInput, SchemaRefused
from ....spi.rows import Rejects
from .. import keys
from .bad_rows import (
    FILE,
    KEEPING,
    RAW,
    csv_reason,
    json_reason,
    parted,
    with_file,
    with_raw,
)
from .text import ENCODING, Copies, CsvStyle, Surveyed, survey, transcoded

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


BAD_VALUE: Final = "fairlead bad value"
"""Begins the message of a job that met a value that does not fit; its file and reason follow."""
_OF_FILES: Final = frozenset({"header", "multiLine", "enforceSchema", "columnPruning"})
"""Options that are about files, not about their rows."""
_QUOTED: Final = 100
"""How many letters of such a value are told."""


@dataclass(frozen=True, slots=True)
class ReadFormat:
    """A format that Spark reads, with the schema as DDL.

    `options` are the user's own, for Spark's reader; they go over all that is set here.
    """

    name: str
    schema: str
    style: CsvStyle = field(default_factory=CsvStyle)
    tolerant: bool = False
    options: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def of(cls, settings: ParsedConfig, config: Mapping[str, str], *, tolerant: bool) -> Self:
        """Return what a task config says; raises `ConfigInvalid` if it says no schema."""
        schema = settings.text(keys.TASK_SCHEMA) or settings.text(keys.SOURCE_SCHEMA)
        if not schema:
            raise ConfigInvalid(f"{keys.TASK_SCHEMA}: the connector gave this task no schema")
        given = under(keys.SOURCE_OPTION, config).items()
        # Spark is given nothing but UTF-8.
        options = {name: value for name, value in given if name.lower() not in ENCODING}
        style = CsvStyle.of(settings, config)
        # Spark's reader would drop them without a word: here they are counted as well.
        modes = [text.upper() for name, text in options.items() if name.lower() == "mode"]
        tolerant = modes == ["DROPMALFORMED"] if modes else tolerant
        return cls(settings.text(keys.SOURCE_FORMAT), schema, style, tolerant, options)

    def look_through(self, file: Path, copies: Copies, within: str | None) -> Surveyed:
        """Look at a file as far as has to be before Spark reads it; raises `BadInput`.

        `within` is where folders of copies are made. Parquet files are looked at only where the
        batch can go on without one.
        """
        if ":" in file.name:
            raise BadInput(f"{file}: Spark reads no file with a colon in its name; rename it")
        if self.name == "json":
            return Surveyed(transcoded(file, self.style.encoding, copies, within))
        if self.name == "parquet":
            if self.tolerant:
                _rows_of(file)
            return Surveyed(file)
        found = survey(file, self.style, copies, within)
        if self.style.header and found.header:
            _check_header(file, found.header, self.columns.fieldNames())
        return found

    def load(self, spark: "SparkSession", files: Sequence[Surveyed]) -> "DataFrame":
        """Describe the rows of files that were looked through.

        Where bad rows are tolerated they are among them, see `part`.
        """
        if self.name == "csv":
            return self._csv(spark, files)
        paths = [literal(each.path) for each in files]
        reader = spark.read.options(**self._options()).format(self.name)
        if not self.parts_rows:
            return reader.schema(self.schema).load(paths)
        return with_file(reader.schema(with_raw(self.columns)).load(paths))

    def part(self, frame: "DataFrame", copies: Copies) -> "tuple[DataFrame, tuple[Rejects, ...]]":
        """Return the rows of a loaded frame that fit, and those that do not."""
        if not self.parts_rows:
            return frame, ()
        options = {key: text for key, text in self._options().items() if key not in _OF_FILES}
        if self.name == "json":
            reason = json_reason(self.columns, options)
        else:
            reason = csv_reason(self.columns, options, self._is_misfit)
        good, rejects = parted(frame, reason, copies.originals)
        return good, (rejects,)

    @property
    def parts_rows(self) -> bool:
        """Whether bad rows are kept apart; a parquet file has none, it is bad as a whole."""
        return self.tolerant and self.name != "parquet"

    @property
    def columns(self) -> StructType:
        """The schema."""
        return cast(StructType, StructType.fromDDL(self.schema))

    def count(self, files: Sequence[Path]) -> int:
        """Return how many rows files hold, or -1 if only reading them can tell."""
        if self.name != "parquet":
            return -1
        try:
            return sum(map(_rows_of, files))
        except BadInput:
            if self.tolerant:
                return -1
            raise

    def _csv(self, spark: "SparkSession", files: Sequence[Surveyed]) -> "DataFrame":
        schema = self.columns
        styles = sorted((each.line_end, self._as_text(each, schema), each.path) for each in files)
        frames = [
            self._alike(spark, schema, line_end, [each[2] for each in group], as_text=as_text)
            for (line_end, as_text), group in groupby(styles, lambda each: each[:2])
        ]
        return reduce(lambda one, other: one.unionAll(other), frames)

    def _as_text(self, found: Surveyed, schema: StructType) -> bool:
        """Tell whether a file must be read as text, and typed afterwards: that costs a third.

        Spark's reader knows one spelling of null only, and takes `""` for a number that is none.
        """
        typed = any(not isinstance(each.dataType, StringType) for each in schema.fields)
        return len(self.style.nulls) > 1 or (found.quotes_nothing and typed)

    def _alike(
        self,
        spark: "SparkSession",
        schema: StructType,
        line_end: str,
        files: Sequence[Path],
        *,
        as_text: bool,
    ) -> "DataFrame":
        """Describe the rows of files with the same line ends."""
        nulls = self.style.nulls
        # What is not there is null, and an empty text in quotes is none: so null needs a spelling
        # that no file has.
        null = nulls[0] if len(nulls) == 1 and not as_text else f"\ufdd0{uuid4().hex}"
        reader = spark.read.options(**{"nullValue": null, "lineSep": line_end, **self._options()})
        paths = [literal(each) for each in files]
        parts, texts = self.parts_rows, StructType()
        for each in schema.fields:
            texts.add(each.name, StringType())
        given = texts if as_text else schema
        frame = reader.schema(with_raw(given) if parts else given).csv(paths)
        frame = with_file(frame) if parts else frame
        return self._typed(frame, schema) if as_text else frame

    def _typed(self, frame: "DataFrame", schema: StructType) -> "DataFrame":
        """Give columns of text their types, as the reader would have."""
        is_strict = self._options()["mode"].upper() == "FAILFAST"
        fits: Column = sf.expr("true")
        columns: list[Column] = []
        for each in schema.fields:
            text = frame[_quoted(each.name)]
            present = _present(text, each, self.style.nulls)
            columns.append(self._value(present, each.dataType).alias(each.name))
            if is_strict or self.parts_rows:
                otherwise = _raise(text, each) if is_strict else sf.expr("false")
                fits = sf.when(self._is_misfit(text, each), otherwise).otherwise(fits)
        if not self.parts_rows:
            return frame.where(fits).select(*columns)
        options = {key: text for key, text in self._options().items() if key not in _OF_FILES}
        texts = sf.struct(*(frame[_quoted(each.name)] for each in schema.fields))
        row = sf.when(~fits, sf.to_csv(texts, options))
        return frame.select(*columns, sf.coalesce(frame[RAW], row).alias(RAW), FILE)

    def _is_misfit(self, text: "Column", column: StructField) -> "Column":
        """Tell whether a text of csv is no value of a column."""
        if isinstance(column.dataType, StringType):
            return sf.expr("false")
        present = _present(text, column, self.style.nulls)
        value = self._value(present, column.dataType)
        return present.isNotNull() & (value.isNull() | (present != sf.trim(present)))

    def _value(self, text: "Column", kind: DataType) -> "Column":
        pattern = self.options.get(
            "dateFormat" if isinstance(kind, DateType) else "timestampFormat"
        )
        if pattern and isinstance(kind, DateType):
            return sf.try_to_date(text, pattern)
        if pattern and isinstance(kind, TimestampType):
            return sf.try_to_timestamp(text, sf.lit(pattern))
        return text if isinstance(kind, StringType) else text.try_cast(kind)

    def _options(self) -> dict[str, str]:
        if self.name == "parquet":
            return {**self.options}
        base = {"mode": "FAILFAST"}
        if self.name == "csv":
            style = self.style
            trim = str(style.trim).lower()
            base |= {
                "header": str(style.header).lower(),
                "sep": style.separator,
                "quote": style.quote,
                "escape": style.escape or style.quote,
                # By itself Spark drops a NUL before a quote.
                "charToEscapeQuoteEscaping": style.escape or style.quote,
                "multiLine": "true",
                "ignoreLeadingWhiteSpace": trim,
                "ignoreTrailingWhiteSpace": trim,
                # The header was checked before. A bad value is bad even where no transform
                # looks at its column.
                "enforceSchema": "true",
                "columnPruning": "false",
            }
        return {**base, **self.options, **(KEEPING if self.tolerant else {})}


def _check_header(file: Path, found: Sequence[str], expected: Sequence[str]) -> None:
    """Raise `SchemaRefused` if a header would fill the wrong columns."""
    if [name.lower() for name in found] != [name.lower() for name in expected]:
        raise SchemaRefused(
            f"{file}: CSV header does not conform to the schema. Header: {', '.join(found)} "
            f"Schema: {', '.join(expected)}; give `source.schema`, or move the file away"
        )


def _rows_of(file: Path) -> int:
    try:
        return int(papq.read_metadata(file).num_rows)
    except (pa.ArrowException, OSError) as error:
        raise BadInput(f"{file}: {error}") from error


def _present(text: "Column", column: StructField, nulls: tuple[str, ...]) -> "Column":
    """Return a text, or null where it stands for no value."""
    absent = nulls if isinstance(column.dataType, StringType) else ("", *nulls)
    return sf.when(~text.isin(*absent), text) if absent else text


def _raise(text: "Column", column: StructField) -> "Column":
    kind = column.dataType.simpleString().upper()
    why = sf.lit(f' column {_quoted(column.name)} ({kind}): For input string: "')
    told = sf.concat(
        sf.lit(f"{BAD_VALUE} "),
        sf.input_file_name(),
        why,
        sf.left(text, sf.lit(_QUOTED)),
        sf.lit('"'),
    )
    return sf.raise_error(told).cast("boolean")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


_GLOB = frozenset("{}[]*?\\")


def literal(path: Path) -> str:
    """Return a path that Spark reads as one file or folder, whatever characters are in it."""
    return "file:" + "".join("\\" + each if each in _GLOB else each for each in str(path))


def target(path: Path) -> str:
    """Return a path that Spark writes to; there it expands nothing."""
    return f"file:{path}"
