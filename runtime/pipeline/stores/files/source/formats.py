# pyright: basic
"""Reads files as Spark frames: a format with its options and schema.

A row that does not fit the schema fails the batch (Spark's FAILFAST). With `errors.tolerance=all`
bad rows are separated instead (`formats.bad_rows`).

Files whose columns are alike are read together, and their rows are united in the schema's columns.
Csv is read by Spark's types where these say the same as the texts. Times are read as texts unless
all records of a file are plain (`formats.csv.grammar`), and so are all columns of a file that
Spark would misread. The texts are converted afterwards (`formats.spark.text_values`).
"""

import json
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self, cast
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructField, StructType

from ....batches.frames import arrow_schema_of
from ....engines.sessions import has_old_times, read_csv, zone_of
from ....engines.spelling import path_to_read, quoted
from ....formats.bad_rows import (
    FILE,
    KEEPING,
    RAW,
    csv_reason,
    folder_values,
    json_reason,
    load_json,
    load_parquet,
    refuse_value,
    split_bad_rows,
    with_file,
    with_texts,
)
from ....formats.csv.arrow_reader import CsvReading, TextRange
from ....formats.csv.grammar import PlainForm
from ....formats.csv.style import CsvStyle
from ....formats.evolution.policy import EVOLUTION, SchemaPolicy, parse_given
from ....formats.json.proof import JsonReading, reading_of
from ....formats.json.values import OF_FILES, JsonValues
from ....formats.parquet import field_to_read, rows_of
from ....formats.spark.filling import fill_columns
from ....formats.spark.odd_texts import csv_edges, odd_in_csv, odd_in_json
from ....formats.spark.options import options_to_read
from ....formats.spark.text_values import TIMES, TextValues
from ....spi.config import ConfigInvalid, ParsedConfig
from ....spi.errors import BadInput
from ....spi.rows import ArrowTable, PartedRows, Rejects
from .. import keys
from ..compression import CODECS
from ..copies import Copies, FileSurvey
from ..folders import FolderColumn
from .parts import FileParts

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


_OF_FILES: Final = frozenset({"basepath", "header", "multiline", "enforceschema", "columnpruning"})
"""Options of files, which `from_csv` and `from_json` do not take."""
_ENCODINGS: Final = frozenset({"encoding", "charset"})
"""The options of text that is given to all readers in UTF-8."""


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
    """Whether bad rows are kept apart; else the first one fails the batch."""
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    policy: SchemaPolicy = field(default_factory=SchemaPolicy)
    is_inferred: bool = False
    """Whether the schema was inferred from a sample, so that numeric codes must be refused."""
    folder_names: tuple[str, ...] = ()
    """The columns, in lower case, that folders may name, so that files need not have them."""
    folders: tuple[str, ...] = ()
    """The columns that the folders of the files to read name; Spark reads them as texts."""
    base: str = ""
    """The folder above these folders."""
    zone: str = ""
    """The zone of Spark's session; empty: its readers follow old rules, or it is not known."""
    proves: bool = True
    """Whether the records of csv files may be proved; else they are scanned."""
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
        keys.refuse_flaws_in_reading(config)
        style = CsvStyle.of(settings, config)
        # Spark's reader would drop bad rows silently: here they are counted.
        if "mode" in options:
            tolerant = options["mode"].upper() == "DROPMALFORMED"
        mode = settings.text(EVOLUTION)
        policy = SchemaPolicy.of(mode, is_given=is_given, is_exact=name == "json")
        named = tuple(map(str.lower, json.loads(settings.text(keys.TASK_FOLDERS) or "[]")))
        return cls(name, schema, style, tolerant, options, policy, not is_given, named)

    def rows(
        self, spark: "SparkSession", files: Sequence[FileSurvey], copies: Copies
    ) -> "tuple[DataFrame, tuple[Rejects, ...]]":
        """Return the rows of scanned files, and the bad rows.

        Csv columns are matched by the header; missing columns, and parquet columns of type null,
        are null. Values that Spark reads with other types than their own are converted.
        """
        is_alike = self.name == "csv" and not self.policy.adds
        has_folders = bool(self.folder_names) or any(each.folders for each in files)
        is_plain = is_alike or not any(each.header or _is_unlike(each) for each in files)
        if is_plain and not has_folders:
            return self._read(spark, files, copies)
        named = sorted(((_group(each), each) for each in files), key=lambda each: each[0])
        frames: list[DataFrame] = []
        rejects: list[Rejects] = []
        for _, group in groupby(named, lambda each: each[0]):
            alike = [each for _, each in group]
            form = self._with_columns_of(alike[0])
            frame, bad = form._read(spark, alike, copies)  # noqa: SLF001  # of this class
            frame = form.with_folders(frame, self.columns, spark)
            frames.append(fill_columns(frame, self.columns, is_exact=self.name == "json"))
            rejects += bad
        return reduce(lambda one, other: one.unionAll(other), frames), tuple(rejects)

    def in_session(self, spark: "SparkSession") -> Self:
        """Return this format as it is read in a session; itself, if it is that already."""
        zone = "" if has_old_times(spark) else zone_of(spark)
        return self if self.zone == zone else replace(self, zone=zone)

    def plain_form(self) -> PlainForm:
        """Return what decides which records of csv are plain."""
        zone = self.zone and (self.option("timezone") or self.zone)
        return PlainForm(self.columns, self.style, self.options, zone, self.is_inferred)

    def parts(
        self,
        files: Sequence[FileSurvey],
        frame: "Callable[[], DataFrame]",
        rest: "Callable[[], DataFrame] | None",
        *,
        is_small: bool = False,
    ) -> PartedRows:
        """Return proved files in parts; see `FileParts`."""
        proofs = [(each.path, each.proof) for each in files]
        ranges = [
            TextRange(
                str(path),
                proof.cuts,
                tuple(proof.columns.names),
                bool(proof.has_zones),
                CODECS.get(path.suffix.lower(), ""),
                proof.state,
            )
            for path, proof in proofs
            if proof is not None
        ]
        style = self.style
        schema = arrow_schema_of(self.columns)
        how = CsvReading(schema, style.separator, style.quote, tuple(style.nulls))
        return FileParts(how, ranges, frame, rest, is_small=is_small)

    def json_reading(self) -> JsonReading | None:
        """Return how Arrow reads files of JSON; None: it may not."""
        is_plain = self.options.keys() <= _ENCODINGS and not self.folder_names
        return reading_of(self.columns) if is_plain else None

    def table(self, files: Sequence[FileSurvey]) -> ArrowTable | None:
        """Return the rows of files that Arrow has read with the current schema; None: not all."""
        tables = [each.rows for each in files if each.rows is not None]
        schema = arrow_schema_of(self.columns)
        if not tables or len(tables) < len(files) or any(each.schema != schema for each in tables):
            return None
        return cast("ArrowTable", pa.concat_tables(tables))

    def names_in_files(
        self, header: Sequence[str], folders: Sequence[FolderColumn]
    ) -> Sequence[str]:
        """Return the columns that a file of csv must have, whose folders name others."""
        own = {each.lower() for each in header}
        optional = {*self.folder_names, *(each.name.lower() for each in folders)} - own
        return [each for each in self.columns.names if each.lower() not in optional]

    def with_folders(
        self, frame: "DataFrame", schema: StructType, spark: "SparkSession"
    ) -> "DataFrame":
        """Convert the columns that folders name to the types of a schema."""
        types = {each.name.lower(): each for each in schema.fields}
        values = self.text_values(spark)
        wanted = [types[name.lower()] for name in self.folders if name.lower() in types]
        return folder_values(frame, wanted, values) if wanted else frame

    def _with_columns_of(self, survey: FileSurvey) -> "ReadFormat":
        """Return this format with the columns of one file, and the types of the schema."""
        names = tuple(each.name for each in survey.folders)
        inner = replace(self, folders=names, base=str(survey.base) if names else "")
        return inner._with_own_columns(survey)  # noqa: SLF001  # of this class

    def _with_own_columns(self, survey: FileSurvey) -> "ReadFormat":
        if _is_unlike(survey):
            absent = {*survey.valueless, *(each.lower() for each in self.folders)}
            has = [each for each in self.columns.fields if each.name.lower() not in absent]
            read = [field_to_read(each, survey.converted) for each in has]
            return replace(self, grown=StructType(read))
        if survey.columns is None or self.name != "csv":
            # Without a header, columns are in schema order.
            own = self.names_in_files(survey.header, survey.folders)
            there = {each.lower() for each in (survey.columns or StructType()).names}
            read = [e for e in self.columns.fields if e.name in own or e.name.lower() in there]
            return replace(self, grown=StructType(read))
        types = {each.name.lower(): each for each in self.columns.fields}
        # Columns that are not in the schema have no values, and are dropped later.
        read = [types.get(each.lower(), StructField(each, StringType())) for each in survey.header]
        return replace(self, grown=StructType(read))

    def _read(
        self, spark: "SparkSession", files: Sequence[FileSurvey], copies: Copies
    ) -> "tuple[DataFrame, tuple[Rejects, ...]]":
        frame = self._load(spark, files)
        if not self.separates_bad_rows:
            return frame, ()
        values = self.text_values(spark)
        options = self.parser_options()
        if self.name == "json":
            reason = json_reason(self.columns, options, self._json_values(spark, files))
        else:
            reason = csv_reason(self.columns, options, values)
        good, rejects = split_bad_rows(frame, reason, copies.originals, self.name)
        return good, (rejects,)

    def _load(self, spark: "SparkSession", files: Sequence[FileSurvey]) -> "DataFrame":
        """Return the rows of files, including bad rows if these are tolerated."""
        if self.name == "csv":
            return read_csv_files(self, spark, files)
        reader = spark.read.options(**self.reader_options()).format(self.name)
        paths = [path_to_read(each.path) for each in files]
        if self.name == "json":
            values = self._json_values(spark, files)
            beside = (*self.folders, *([RAW] if self.separates_bad_rows else ()))
            how = self.reader_options()
            return load_json(reader, self.columns, paths, how, values, beside)
        stored = [each.columns for each in files if each.columns]
        return load_parquet(reader, self.columns, paths, stored, self.folders)

    def _json_values(self, spark: "SparkSession", files: Sequence[FileSurvey]) -> JsonValues:
        is_odd = any(each.is_odd for each in files)
        return JsonValues(self.text_values(spark), OF_FILES if is_odd else ())

    @property
    def separates_bad_rows(self) -> bool:
        """Whether bad rows are separated; a parquet file is only bad as a whole."""
        return self.tolerant and self.name != "parquet"

    @property
    def odd(self) -> str:
        """The pattern of texts for which numbers are read as texts; empty: there are none."""
        if self.name == "json":
            return odd_in_json(self.columns)
        edges = csv_edges(self.style.separator, self.style.quote, trims=self.style.trim)
        return odd_in_csv(self.columns, edges, finds_codes=self.is_inferred)

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

    def text_values(self, spark: "SparkSession") -> TextValues:
        """Return the language of values in a session."""
        is_json = self.name == "json"
        nulls, is_inferred = (() if is_json else self.style.nulls), self.is_inferred
        values = TextValues(nulls, self.options, is_inferred, is_json, not is_json)
        return values.within(zone_of(spark))

    def option(self, name: str) -> str:
        """Return the user's value of an option of Spark's reader; `name` is in lower case."""
        return self.options.get(name, "")

    def parser_options(self) -> dict[str, str]:
        """Return the options that `from_csv` and `from_json` take."""
        given = self.reader_options()
        return {name: text for name, text in given.items() if name not in _OF_FILES}

    def reader_options(self) -> dict[str, str]:
        """Return the options of Spark's reader."""
        if self.name == "parquet":
            return {**self.options, **_above(self.base)}
        # By default, a user's column `_corrupt_record` would be taken for Spark's and overwritten.
        base = {**KEEPING, "mode": "FAILFAST", **_above(self.base)}
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


def _above(folder: str) -> dict[str, str]:
    """Return the option below which folder's names are columns."""
    return {"basepath": f"file:{folder}"} if folder else {}


def _group(survey: FileSurvey) -> tuple[tuple[str, ...], ...]:
    """Return the key by which files with the same columns are grouped."""
    header = tuple(each.lower() for each in survey.header) if survey.columns is not None else ()
    converted = sorted(f"{name} {kind}" for name, kind in survey.converted.items())
    names = tuple(each.name for each in survey.folders)
    folders = (*names, str(survey.base)) if names else ()
    return header, tuple(sorted(survey.valueless)), tuple(converted), folders


def _is_unlike(survey: FileSurvey) -> bool:
    """Return whether a file has columns that Spark cannot read with their types."""
    return bool(survey.valueless or survey.converted)


class _Way(NamedTuple):
    """How some files are read."""

    line_end: str
    is_by_lines: bool
    is_as_text: bool
    """Whether all columns are read as texts."""
    is_plain: bool
    """Whether times are read as such."""


def read_csv_files(
    form: "ReadFormat", spark: "SparkSession", files: Sequence[FileSurvey]
) -> "DataFrame":
    """Return the rows of csv files with the same columns, including bad rows if these are kept."""
    schema = form.columns
    is_one = len(schema.fields) == 1  # a null is an empty line then, which a line reader skips
    named = sorted(
        (
            _Way(
                each.line_end,
                each.is_by_lines and not is_one,
                _is_misread(form, each),
                each.plain == schema,
            ),
            each.path,
        )
        for each in files
    )
    frames = [
        _read(form, spark, way, [path for _, path in group])
        for way, group in groupby(named, lambda each: each[0])
    ]
    return reduce(lambda one, other: one.unionAll(other), frames)


def _is_misread(form: "ReadFormat", survey: FileSurvey) -> bool:
    """Return whether to read all of a file as text and convert it afterwards, which costs more.

    Spark's reader knows only one text for null, refuses `""` in a number column instead of reading
    null, and takes `01234` for a number.
    """
    has_types = any(not isinstance(each.dataType, StringType) for each in form.columns.fields)
    is_misread = survey.quotes_nothing or survey.is_odd
    return len(form.style.nulls) > 1 or (is_misread and has_types)


def _read(
    form: "ReadFormat", spark: "SparkSession", way: _Way, files: Sequence[Path]
) -> "DataFrame":
    nulls, as_text = form.style.nulls, way.is_as_text
    # `""` is not null, so null needs a text that no file has.
    null = nulls[0] if len(nulls) == 1 and not as_text else form.null_stand_in
    by_lines = str(not way.is_by_lines).lower()
    how = {"nullvalue": null, "linesep": way.line_end, "multiline": by_lines}
    read = [_column(each, way) for each in form.columns.fields]
    texts = {one.name for one in read if as_text or one not in form.columns.fields}
    beside = (*form.folders, *([RAW] if form.separates_bad_rows else ()))
    given = with_texts(StructType(read), beside)
    paths = [path_to_read(each) for each in files]
    frame = read_csv(spark, given, {**how, **form.reader_options()}, paths)
    frame = with_file(frame) if form.separates_bad_rows else frame
    return _typed(form, frame, texts, form.text_values(spark)) if texts else frame


def _column(column: StructField, way: _Way) -> StructField:
    """Return the column that Spark reads."""
    is_text = way.is_as_text or (isinstance(column.dataType, TIMES) and not way.is_plain)
    return StructField(column.name, StringType()) if is_text else column


def _typed(
    form: "ReadFormat", frame: "DataFrame", texts: Container[str], values: TextValues
) -> "DataFrame":
    """Convert text columns to their types."""
    is_strict = form.reader_options()["mode"].upper() == "FAILFAST"
    fits: Column = sf.expr("true")
    columns: list[Column] = [frame[quoted(name)] for name in form.folders]
    for each in form.columns.fields:
        text = frame[quoted(each.name)]
        if each.name not in texts:
            columns.append(text)
            continue
        value, is_misfit = (of(text, each.dataType) for of in (values.value, values.is_misfit))
        if is_strict:
            otherwise = refuse_value(text, each, values.hint(text, each.dataType))
            fits = sf.when(is_misfit, otherwise).otherwise(fits)
        else:
            fits = ~is_misfit & fits
            value = sf.when(~is_misfit, value)
        columns.append(value.alias(each.name))
    if is_strict:
        return frame.where(fits).select(*columns)
    return (
        _with_bad_rows(form, frame, columns, fits)
        if form.separates_bad_rows
        else frame.select(*columns)
    )


def _with_bad_rows(
    form: "ReadFormat", frame: "DataFrame", columns: "Sequence[Column]", fits: "Column"
) -> "DataFrame":
    read = sf.struct(*(frame[quoted(each.name)] for each in form.columns.fields))
    row = sf.when(~fits, sf.to_csv(read, form.parser_options()))
    return frame.select(*columns, sf.coalesce(frame[RAW], row).alias(RAW), FILE)
