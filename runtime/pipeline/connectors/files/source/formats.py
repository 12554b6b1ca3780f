# pyright: basic
"""Reads files as Spark frames: a format with its options and schema.

A row that does not fit the schema fails the batch (Spark's FAILFAST). With `errors.tolerance=all`
bad rows are separated instead (`bad_rows`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self
from uuid import uuid4

from pyspark.sql import functions as sf
from pyspark.sql.types import (
    LongType,
    NumericType,
    StringType,
    StructField,
    StructType,
)

from ....spark.sessions import read_csv
from ....spark.spelling import path_to_read, quoted
from ....spi.config import ConfigInvalid, ParsedConfig
from ....spi.errors import BadInput
from ....spi.rows import Rejects
from ...evolution.arrow_columns import rows_of
from ...evolution.filling import fill_columns
from ...evolution.policy import EVOLUTION, SchemaPolicy, parse_given
from .. import keys
from ..copies import Copies, FileSurvey
from ..csv_style import CsvStyle
from ..options import options_to_read
from ..text_values import TextValues
from .bad_rows import (
    FILE,
    KEEPING,
    RAW,
    csv_reason,
    json_reason,
    load_json,
    load_parquet,
    refuse_value,
    split_bad_rows,
    with_file,
    with_raw,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_OF_FILES: Final = frozenset({"header", "multiline", "enforceschema", "columnpruning"})
"""Options of files, which `from_csv` and `from_json` do not take."""


@dataclass(frozen=True, slots=True)
class ReadFormat:
    """A file format with its schema as DDL.

    `options` are the user's options for Spark's reader, with names in lower case; they override the
    options that are set here.
    """

    name: str
    schema: str
    style: CsvStyle = field(default_factory=CsvStyle)
    tolerant: bool = False
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    policy: SchemaPolicy = field(default_factory=SchemaPolicy)
    is_inferred: bool = False
    """Whether the schema was inferred from a sample, so that numeric codes must be refused."""
    grown: StructType | None = None
    """The schema with the changes of `source.schema.evolution`; None: unchanged."""
    null_stand_in: str = field(default_factory=lambda: f"\ufdd0{uuid4().hex}", compare=False)
    """A text that no file has."""

    @classmethod
    def of(cls, settings: ParsedConfig, config: Mapping[str, str], *, tolerant: bool) -> Self:
        """Return the format of a task config; raises `ConfigInvalid` if it has no schema."""
        schema = settings.text(keys.TASK_SCHEMA) or settings.text(keys.SOURCE_SCHEMA)
        if not schema:
            raise ConfigInvalid(f"{keys.TASK_SCHEMA}: the connector gave this task no schema")
        name, is_given = settings.text(keys.SOURCE_FORMAT), bool(settings.text(keys.SOURCE_SCHEMA))
        options = options_to_read(name, config)
        style = CsvStyle.of(settings, config)
        # Spark's reader would drop bad rows silently: here they are counted.
        if "mode" in options:
            tolerant = options["mode"].upper() == "DROPMALFORMED"
        mode = settings.text(EVOLUTION)
        policy = SchemaPolicy.of(mode, is_given=is_given, is_exact=name == "json")
        return cls(name, schema, style, tolerant, options, policy, not is_given)

    def rows(
        self, spark: "SparkSession", files: Sequence[FileSurvey], copies: Copies
    ) -> "tuple[DataFrame, tuple[Rejects, ...]]":
        """Return the rows of scanned files, and the bad rows.

        Csv columns are matched by the header; missing columns, and parquet columns of type null,
        are null. Timestamps of nanoseconds are converted.
        """
        is_alike = self.name == "csv" and not self.policy.adds
        if is_alike or not any(each.header or _is_unlike(each) for each in files):
            return self._read(spark, files, copies)
        named = sorted(((_group(each), each) for each in files), key=lambda each: each[0])
        frames: list[DataFrame] = []
        rejects: list[Rejects] = []
        for _, group in groupby(named, lambda each: each[0]):
            alike = [each for _, each in group]
            form = self._with_columns_of(alike[0])
            frame, bad = form._read(spark, alike, copies)  # noqa: SLF001  # of this class
            frames.append(fill_columns(frame, self.columns))
            rejects += bad
        return reduce(lambda one, other: one.unionAll(other), frames), tuple(rejects)

    def _with_columns_of(self, found: FileSurvey) -> "ReadFormat":
        """Return this format with the columns of one file, and the types of the schema."""
        if _is_unlike(found):
            has = [each for each in self.columns.fields if each.name.lower() not in found.valueless]
            read = [
                StructField(each.name, LongType()) if each.name.lower() in found.nanos else each
                for each in has
            ]
            return replace(self, grown=StructType(read))
        if found.columns is None or self.name == "parquet":
            return replace(self, grown=None)  # without a header, columns are in schema order
        types = {each.name.lower(): each for each in self.columns.fields}
        # Columns that are not in the schema have no values, and are dropped later.
        read = [types.get(each.lower(), StructField(each, StringType())) for each in found.header]
        return replace(self, grown=StructType(read))

    def _read(
        self, spark: "SparkSession", files: Sequence[FileSurvey], copies: Copies
    ) -> "tuple[DataFrame, tuple[Rejects, ...]]":
        return self._part(self._load(spark, files), copies)

    def _load(self, spark: "SparkSession", files: Sequence[FileSurvey]) -> "DataFrame":
        """Return the rows of files, including bad rows if these are tolerated."""
        if self.name == "csv":
            return self._csv(spark, files)
        reader = spark.read.options(**self._options()).format(self.name)
        if self.name == "json":
            return load_json(reader, self.columns, files, self._options(), keeps=self.parts_rows)
        return load_parquet(reader, self.columns, files)

    def _part(self, frame: "DataFrame", copies: Copies) -> "tuple[DataFrame, tuple[Rejects, ...]]":
        """Split a loaded frame into good and bad rows."""
        if not self.parts_rows:
            return frame, ()
        options = {key: text for key, text in self._options().items() if key not in _OF_FILES}
        if self.name == "json":
            reason = json_reason(self.columns, options)
        else:
            reason = csv_reason(self.columns, options, self._text_values().is_misfit)
        good, rejects = split_bad_rows(frame, reason, copies.originals)
        return good, (rejects,)

    @property
    def parts_rows(self) -> bool:
        """Whether bad rows are separated; a parquet file is only bad as a whole."""
        return self.tolerant and self.name != "parquet"

    @property
    def refuses_codes(self) -> bool:
        """Whether numeric codes must be searched, as bad values for number columns."""
        return self.is_inferred and any(
            isinstance(each.dataType, NumericType) for each in self.columns.fields
        )

    @property
    def columns(self) -> StructType:
        """The current schema."""
        return self.grown or self.declared

    @property
    def declared(self) -> StructType:
        """The schema in the task config."""
        return parse_given(self.schema)

    def count(self, files: Sequence[Path]) -> int:
        """Return the number of rows of files; -1 if only reading them can tell."""
        if self.name != "parquet":
            return -1
        try:
            return sum(map(rows_of, files))
        except BadInput:  # reading the file reports the error
            return -1

    def _csv(self, spark: "SparkSession", files: Sequence[FileSurvey]) -> "DataFrame":
        schema = self.columns
        is_one = len(schema.fields) == 1  # a null is an empty line then, which a line reader skips
        named = sorted(
            (
                (each.line_end, each.is_by_lines and not is_one, self._as_text(each, schema)),
                each.path,
            )
            for each in files
        )
        frames = [
            self._alike(spark, schema, lines, [each[1] for each in group])
            for lines, group in groupby(named, lambda each: each[0])
        ]
        return reduce(lambda one, other: one.unionAll(other), frames)

    def _as_text(self, found: FileSurvey, schema: StructType) -> bool:
        """Tell whether to read a file as text and convert it afterwards, which costs a third more.

        Spark's reader knows only one text for null, refuses `""` in a number column instead of
        reading null, and takes `01234` for a number.
        """
        has_types = any(not isinstance(each.dataType, StringType) for each in schema.fields)
        is_misread = found.quotes_nothing or found.has_codes
        return len(self.style.nulls) > 1 or (is_misread and has_types)

    def _alike(
        self,
        spark: "SparkSession",
        schema: StructType,
        lines: tuple[str, bool, bool],
        files: Sequence[Path],
    ) -> "DataFrame":
        """Return the rows of files with the same line end, `is_by_lines` and `_as_text`."""
        (line_end, by_lines, as_text), nulls = lines, self.style.nulls
        # `""` is not null, so null needs a text that no file has.
        null = nulls[0] if len(nulls) == 1 and not as_text else self.null_stand_in
        how = {"nullvalue": null, "linesep": line_end, "multiline": str(not by_lines).lower()}
        paths = [path_to_read(each) for each in files]
        parts = self.parts_rows
        texts = StructType([StructField(each.name, StringType()) for each in schema.fields])
        given = texts if as_text else schema
        read = with_raw(given) if parts else given
        frame = read_csv(spark, read, {**how, **self._options()}, paths)
        frame = with_file(frame) if parts else frame
        return self._typed(frame, schema) if as_text else frame

    def _typed(self, frame: "DataFrame", schema: StructType) -> "DataFrame":
        """Convert text columns to their types, as the reader would."""
        values = self._text_values()
        is_strict = self._options()["mode"].upper() == "FAILFAST"
        fits: Column = sf.expr("true")
        columns: list[Column] = []
        for each in schema.fields:
            text = frame[quoted(each.name)]
            columns.append(values.value(text, each).alias(each.name))
            if is_strict or self.parts_rows:
                otherwise = refuse_value(text, each) if is_strict else sf.expr("false")
                fits = sf.when(values.is_misfit(text, each), otherwise).otherwise(fits)
        if not self.parts_rows:
            return frame.where(fits).select(*columns)
        options = {key: text for key, text in self._options().items() if key not in _OF_FILES}
        texts = sf.struct(*(frame[quoted(each.name)] for each in schema.fields))
        row = sf.when(~fits, sf.to_csv(texts, options))
        return frame.select(*columns, sf.coalesce(frame[RAW], row).alias(RAW), FILE)

    def _text_values(self) -> TextValues:
        return TextValues(self.style.nulls, self.options, self.is_inferred)

    def option(self, name: str) -> str:
        """Return the user's value of an option of Spark's reader; `name` is in lower case."""
        return self.options.get(name, "")

    def _options(self) -> dict[str, str]:
        if self.name == "parquet":
            return {**self.options}
        # By default, a user's column `_corrupt_record` would be taken for Spark's and overwritten.
        base = {**KEEPING, "mode": "FAILFAST"}
        if self.name == "json":
            # The scan for new columns cannot parse single quotes.
            base["allowsinglequotes"] = "false"
        if self.name == "csv":
            style = self.style
            trim = str(style.trim).lower()
            base |= {
                "header": str(style.header).lower(),
                "sep": style.separator,
                "quote": style.quote,
                "escape": style.escape or style.quote,
                # By itself Spark drops a NUL before a quote.
                "chartoescapequoteescaping": style.escape or style.quote,
                "ignoreleadingwhitespace": trim,
                "ignoretrailingwhitespace": trim,
                # The header was checked before. A value is bad even if no transform uses its
                # column.
                "enforceschema": "true",
                "columnpruning": "false",
            }
        return {**base, **self.options, **(KEEPING if self.tolerant else {})}


def _group(found: FileSurvey) -> tuple[tuple[str, ...], ...]:
    """Return the key by which files with the same columns are grouped."""
    header = tuple(each.lower() for each in found.header) if found.columns is not None else ()
    return header, tuple(sorted(found.valueless)), tuple(sorted(found.nanos))


def _is_unlike(found: FileSurvey) -> bool:
    """Tell whether a file has columns that Spark cannot read with their types."""
    return bool(found.valueless or found.nanos)
