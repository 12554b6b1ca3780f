# pyright: basic
"""How files become rows: a format, its options and the schema that they must fit.

Rows that do not fit end the batch (Spark's FAILFAST), unless `errors.tolerance` is `all`, where
they are kept apart (`bad_rows`).
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

from ....spark.spelling import path_to_read, quoted
from ....spi.config import ConfigInvalid, ParsedConfig
from ....spi.errors import BadInput
from ....spi.rows import Rejects
from ...evolution.arrow_columns import rows_of
from ...evolution.filling import fill_columns
from ...evolution.policy import EVOLUTION, SchemaPolicy, parse_ddl
from .. import keys
from ..copies import Copies, Surveyed
from ..csv_style import CsvStyle
from ..options import options_to_read
from ..text_values import TextValues
from .bad_rows import (
    FILE,
    KEEPING,
    RAW,
    csv_reason,
    json_reason,
    parted,
    refuse_value,
    with_file,
    with_raw,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_OF_FILES: Final = frozenset({"header", "multiline", "enforceschema", "columnpruning"})
"""Options that are about files, not about their rows."""


@dataclass(frozen=True, slots=True)
class ReadFormat:
    """A format that Spark reads, with the schema as DDL.

    `options` are the user's own, for Spark's reader, with names in lower case; they go over all
    that is set here.
    """

    name: str
    schema: str
    style: CsvStyle = field(default_factory=CsvStyle)
    tolerant: bool = False
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    policy: SchemaPolicy = field(default_factory=SchemaPolicy)
    is_inferred: bool = False
    """Whether types are by a sample: what a number does not say of its text is lost by mistake."""
    grown: StructType | None = None
    """The schema with what files turned out to have beyond it; None: nothing."""

    @classmethod
    def of(cls, settings: ParsedConfig, config: Mapping[str, str], *, tolerant: bool) -> Self:
        """Return what a task config says; raises `ConfigInvalid` if it says no schema."""
        schema = settings.text(keys.TASK_SCHEMA) or settings.text(keys.SOURCE_SCHEMA)
        if not schema:
            raise ConfigInvalid(f"{keys.TASK_SCHEMA}: the connector gave this task no schema")
        name, is_given = settings.text(keys.SOURCE_FORMAT), bool(settings.text(keys.SOURCE_SCHEMA))
        options = options_to_read(name, config)
        style = CsvStyle.of(settings, config)
        # Spark's reader would drop them without a word: here they are counted as well.
        if "mode" in options:
            tolerant = options["mode"].upper() == "DROPMALFORMED"
        mode = settings.text(EVOLUTION)
        policy = SchemaPolicy.of(mode, is_given=is_given, is_exact=name == "json")
        return cls(name, schema, style, tolerant, options, policy, not is_given)

    def rows(
        self, spark: "SparkSession", files: Sequence[Surveyed], copies: Copies
    ) -> "tuple[DataFrame, tuple[Rejects, ...]]":
        """Describe the rows of files that were looked through, and those that do not fit.

        Csv files go by their headers: those that lack a column have no values in it, as those of
        parquet whose column can hold none; times of nanoseconds are converted.
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

    def _with_columns_of(self, found: Surveyed) -> "ReadFormat":
        """Return this format for files like one: its columns, with the types that all have."""
        if _is_unlike(found):
            has = [each for each in self.columns.fields if each.name.lower() not in found.valueless]
            read = [
                StructField(each.name, LongType()) if each.name.lower() in found.nanos else each
                for each in has
            ]
            return replace(self, grown=StructType(read))
        if found.columns is None or self.name == "parquet":
            return replace(self, grown=None)  # without a header the order is that of the schema
        types = {each.name.lower(): each for each in self.columns.fields}
        # What the schema has not is without a value, and is not among the rows.
        read = [types.get(each.lower(), StructField(each, StringType())) for each in found.header]
        return replace(self, grown=StructType(read))

    def _read(
        self, spark: "SparkSession", files: Sequence[Surveyed], copies: Copies
    ) -> "tuple[DataFrame, tuple[Rejects, ...]]":
        return self._part(self._load(spark, files), copies)

    def _load(self, spark: "SparkSession", files: Sequence[Surveyed]) -> "DataFrame":
        """Describe the rows of files; where bad ones are tolerated they are among them."""
        if self.name == "csv":
            return self._csv(spark, files)
        paths = [path_to_read(each.path) for each in files]
        reader = spark.read.options(**self._options()).format(self.name)
        if not self.parts_rows:
            return reader.schema(self.columns).load(paths)
        return with_file(reader.schema(with_raw(self.columns)).load(paths))

    def _part(self, frame: "DataFrame", copies: Copies) -> "tuple[DataFrame, tuple[Rejects, ...]]":
        """Return the rows of a loaded frame that fit, and those that do not."""
        if not self.parts_rows:
            return frame, ()
        options = {key: text for key, text in self._options().items() if key not in _OF_FILES}
        if self.name == "json":
            reason = json_reason(self.columns, options)
        else:
            reason = csv_reason(self.columns, options, self._text_values().is_misfit)
        good, rejects = parted(frame, reason, copies.originals)
        return good, (rejects,)

    @property
    def parts_rows(self) -> bool:
        """Whether bad rows are kept apart; a parquet file has none, it is bad as a whole."""
        return self.tolerant and self.name != "parquet"

    @property
    def refuses_names(self) -> bool:
        """Whether a text of digits that says more than its number fits no column of numbers."""
        return self.is_inferred and any(
            isinstance(each.dataType, NumericType) for each in self.columns.fields
        )

    @property
    def columns(self) -> StructType:
        """The schema as it is by now."""
        return self.grown or self.declared

    @property
    def declared(self) -> StructType:
        """The schema that the task was given."""
        return parse_ddl(self.schema)

    def count(self, files: Sequence[Path]) -> int:
        """Return how many rows files hold, or -1 if only reading them can tell."""
        if self.name != "parquet":
            return -1
        try:
            return sum(map(rows_of, files))
        except BadInput:  # who reads the file tells of it
            return -1

    def _csv(self, spark: "SparkSession", files: Sequence[Surveyed]) -> "DataFrame":
        schema = self.columns
        is_one = len(schema.fields) == 1  # then a line without a value is empty, and passed over
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

    def _as_text(self, found: Surveyed, schema: StructType) -> bool:
        """Tell whether a file must be read as text, and typed afterwards: that costs a third.

        Spark's reader knows one spelling of null only, takes `""` for a number that is none, and
        `01234` for one.
        """
        has_types = any(not isinstance(each.dataType, StringType) for each in schema.fields)
        is_misread = found.quotes_nothing or found.has_names
        return len(self.style.nulls) > 1 or (is_misread and has_types)

    def _alike(
        self,
        spark: "SparkSession",
        schema: StructType,
        lines: tuple[str, bool, bool],
        files: Sequence[Path],
    ) -> "DataFrame":
        """Describe the rows of files whose lines are alike: their end, by lines, as text."""
        (line_end, by_lines, as_text), nulls = lines, self.style.nulls
        # An empty text in quotes is not null, so null needs a spelling that no file has.
        null = nulls[0] if len(nulls) == 1 and not as_text else f"\ufdd0{uuid4().hex}"
        how = {"nullvalue": null, "linesep": line_end, "multiline": str(not by_lines).lower()}
        reader = spark.read.options(**{**how, **self._options()})
        paths = [path_to_read(each) for each in files]
        parts = self.parts_rows
        texts = StructType([StructField(each.name, StringType()) for each in schema.fields])
        given = texts if as_text else schema
        frame = reader.schema(with_raw(given) if parts else given).csv(paths)
        frame = with_file(frame) if parts else frame
        return self._typed(frame, schema) if as_text else frame

    def _typed(self, frame: "DataFrame", schema: StructType) -> "DataFrame":
        """Give columns of text their types, as the reader would have."""
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
        """Return what the user says of an option of Spark's reader, by its name in lower case."""
        return self.options.get(name, "")

    def _options(self) -> dict[str, str]:
        if self.name == "parquet":
            return {**self.options}
        # Else a column that users call `_corrupt_record` would be Spark's own, and its values lost.
        base = {**KEEPING, "mode": "FAILFAST"}
        if self.name == "json":
            # Only Spark reads such lines: nobody could tell what they have beyond the schema.
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
                # The header was checked before. A bad value is bad even where no transform
                # looks at its column.
                "enforceschema": "true",
                "columnpruning": "false",
            }
        return {**base, **self.options, **(KEEPING if self.tolerant else {})}


def _group(found: Surveyed) -> tuple[tuple[str, ...], ...]:
    """Return what files have in common whose rows have the same columns."""
    header = tuple(each.lower() for each in found.header) if found.columns is not None else ()
    return header, tuple(sorted(found.valueless)), tuple(sorted(found.nanos))


def _is_unlike(found: Surveyed) -> bool:
    """Tell whether Spark does not read a file's columns as what they are."""
    return bool(found.valueless or found.nanos)
