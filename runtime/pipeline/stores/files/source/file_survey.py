# pyright: basic
"""Scan of each file before Spark reads it: whether it can be read, and which columns it has.

Spark's readers ignore columns that are not in the schema. So the columns of each file are compared
with the schema here, and `source.schema.evolution` decides about new ones. The files of the next
batch are scanned while Spark works on the current one.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import Final

import pyarrow as pa
from pyspark.sql.types import StringType, StructField, StructType

from ....batches.frames import arrow_schema_of
from ....formats.evolution.arrow_columns import to_ddl
from ....formats.evolution.policy import ADD_COLUMNS, EVOLUTION, LEAVE_OUT, parse_ddl
from ....formats.inference import refuse_duplicates
from ....formats.json.columns import JsonColumns
from ....formats.parquet import (
    is_converted,
    parquet_columns,
    refuse_unreadable,
    refuse_zone_clash,
    rows_of,
    with_values,
)
from ....formats.spark.odd_texts import OddTextScan
from ....spi.errors import BadInput, SchemaRefused
from ..compression import is_compressed
from ..copies import Copies, FileSurvey, is_misread
from ..folders import FolderColumn, folders_of
from .formats import ReadFormat
from .inference import csv_columns
from .listing import SourceFile, asking_about
from .text import prove_csv, survey_csv, to_utf8, with_text

_SAMPLE: Final = 16 << 20
"""The bytes of a csv file that are sampled for the types of new columns."""
MOST_HELD: Final = 64 << 20
"""The most text of compressed files, or rows, in memory; other text is limited by the batch."""


class LookAhead:
    """Scans the files of the next batch in a background thread."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._thread: ThreadPoolExecutor | None = None
        """None: there was nothing to scan yet."""
        self._begun: Future[None] | None = None
        """The scan that runs; None: none was begun."""
        self._is_wanted = Event()
        """Cleared to end the scan after the current file."""
        self._form: ReadFormat | None = None
        """The format of the current scan."""
        self._found: dict[SourceFile, FileSurvey] = {}
        """The results so far."""
        self._copies = Copies()
        """The copies of files that Spark cannot read directly."""

    def begin(
        self, form: ReadFormat, files: Sequence[SourceFile], within: str | None, *, keeps_text: bool
    ) -> None:
        """Start to scan files, in their order, until `take` is called."""
        if not files:
            return
        self._form = form
        self._is_wanted.set()
        self._thread = self._thread or ThreadPoolExecutor(1, "files-ahead")
        self._begun = self._thread.submit(self._look, form, files, within, keeps_text=keeps_text)

    def take(self, form: ReadFormat) -> tuple[Mapping[SourceFile, FileSurvey], Copies]:
        """Stop the scan after the current file; return the results for a format, with the copies.

        Unreadable files have no result.
        """
        self._is_wanted.clear()
        begun, self._begun = self._begun, None
        if begun is not None:
            begun.result()
        found, copies = self._found, self._copies
        self._found, self._copies = {}, Copies()
        if self._form is not form:  # the schema was extended since
            copies.clear()
            return {}, copies
        return found, copies

    def close(self) -> None:
        """End the thread, and remove its copies."""
        if self._form is not None:
            self.take(self._form)[1].clear()
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None

    def _look(
        self, form: ReadFormat, files: Sequence[SourceFile], within: str | None, *, keeps_text: bool
    ) -> None:
        held = 0
        for each in files:
            if not self._is_wanted.is_set():
                return
            keeps = keeps_text and held < MOST_HELD
            with suppress(Exception):  # the read scans the file again, and reports the error
                self._found[each] = survey = survey_file(
                    form,
                    self._root / each.path,
                    self._copies,
                    within,
                    root=self._root,
                    keeps_text=keeps,
                )
                held += held_of(survey)


def survey_file(  # two of them have defaults
    form: ReadFormat,
    file: Path,
    copies: Copies,
    within: str | None,
    *,
    root: Path | None = None,
    keeps_text: bool = False,
) -> FileSurvey:
    """Scan a file; raises `BadInput`.

    `within` is the parent of temporary folders; folders below `root` may name columns.
    `keeps_text`: text or rows may stay in memory, see `survey_csv` and `JsonColumns`.
    """
    named = folders_of(file, root)
    survey = _looked_at(form, file, copies, within, named, keeps_text=keeps_text)
    own = {each.lower() for each in survey.header or (survey.columns or StructType()).names}
    folders = tuple(each for each in named if each.name.lower() not in own)
    shadowed = tuple(each.name for each in named if each not in folders)
    survey = replace(survey, folders=folders, shadowed=shadowed)
    if folders or shadowed:  # Arrow knows nothing of folders
        survey = replace(survey, proof=None)
    if survey.path != file:
        path = copies.place(survey.path, within, folders) if folders else survey.path
        return replace(survey, path=path, base=copies.base)
    if is_misread(file) or shadowed:
        link = copies.link(file, within, folders)
        return replace(survey, path=link, base=copies.base, proof=None)
    return replace(survey, base=root)


def _looked_at(
    form: ReadFormat,
    file: Path,
    copies: Copies,
    within: str | None,
    named: Sequence[FolderColumn],
    *,
    keeps_text: bool,
) -> FileSurvey:
    if form.name == "json":
        is_one = form.option("multiline").lower() == "true"
        # With a line separator of the user, only Spark's reader can tell the lines.
        refuse = None if form.option("linesep") else partial(_refuse_remainder, file, is_one=is_one)
        text = partial(_refuse_text, file)
        reading = form.json_reading() if keeps_text and not named else None
        columns = JsonColumns(
            form.columns, is_one=is_one, refuse=refuse, refuse_text=text, reading=reading
        )
        odd = OddTextScan(form.odd)

        def show(chunk: bytes) -> None:
            columns.feed(chunk)
            odd.feed(chunk)

        path = to_utf8(file, form.style.encoding, copies, within, show)
        schema = parse_ddl(to_ddl(columns.end()))
        rows = None if odd.found else columns.rows
        return FileSurvey(path, is_odd=odd.found, columns=schema, rows=rows)
    if form.name == "parquet":
        if form.tolerant:
            with asking_about(file):
                rows_of(file)
        return _of_parquet(form, file)
    survey = _look_at_csv(form, file, copies, within, named, keeps_text=keeps_text)
    if not form.style.header or not survey.header:
        return survey
    return replace(survey, columns=_of_csv(form, file, survey, named))


def _look_at_csv(
    form: ReadFormat,
    file: Path,
    copies: Copies,
    within: str | None,
    named: Sequence[FolderColumn],
    *,
    keeps_text: bool,
) -> FileSurvey:
    """Prove a csv file; if it cannot be proved, scan it."""
    plain, names = form.plain_form(), form.names_in_files((), named)
    if form.proves:
        proved = prove_csv(file, plain, names)
        if proved is not None:
            return proved
    found = survey_csv(file, form.style, copies, within, keeps_text=keeps_text, odd=form.odd)
    if form.proves and found.path != file:  # the copy has UTF-8, one line end and no comments
        style = replace(form.style, encoding="UTF-8", comment="")
        return prove_csv(found.path, replace(plain, style=style), names) or found
    return found


def _refuse_remainder(file: Path, line: int, *, is_one: bool) -> None:
    if is_one:
        raise BadInput(
            f"{file}: there is text after its first value, which would be ignored with "
            "`source.option.multiLine`: leave that out if each line is an object, or make them one "
            "array"
        )
    raise BadInput(
        f"{file}: line {line} has text after its first value, which would be ignored: "
        "write one object per line"
    )


def _refuse_text(file: Path, line: int, why: str) -> None:
    raise BadInput(f"{file}: line {line} {why}: correct it, or move the file away")


def held_of(survey: FileSurvey) -> int:
    """Return the bytes of a file's rows, or of a compressed file's text, in memory."""
    if survey.rows is not None:
        return survey.rows.nbytes
    return len(survey.text or b"") if is_compressed(survey.path) else 0


def with_texts(surveys: Sequence[FileSurvey]) -> list[FileSurvey]:
    """Return surveys with the texts of small proved files, so that they may be merged.

    Raises `BadInput`.
    """
    held = sum(map(held_of, surveys))
    found: list[FileSurvey] = []
    for each in surveys:
        survey = with_text(each) if held < MOST_HELD else each
        held += held_of(survey) - held_of(each)
        found.append(survey)
    return found


def admit(form: ReadFormat, survey: FileSurvey, file: Path) -> tuple[ReadFormat, tuple[str, ...]]:
    """Return the format extended by a file's new columns, and the columns that are left out.

    Raises `SchemaRefused` if new columns are not allowed.
    """
    form, more = _admit_folders(form, survey)
    if survey.columns is None:
        return form, more
    known = form.columns
    schema, left_out = form.policy.admit(form.declared, known, survey.columns, str(file))
    if schema is known:
        return form, (*left_out, *more)
    refuse_duplicates(schema.fieldNames(), f"{file}: ")
    return replace(form, grown=schema), (*left_out, *more)


def _admit_folders(form: ReadFormat, survey: FileSurvey) -> tuple[ReadFormat, tuple[str, ...]]:
    """Return the format extended by the columns that folders name, or those that are left out."""
    known = {each.lower() for each in form.columns.names}
    new = [each.name for each in survey.folders if each.name.lower() not in known]
    if not new or not form.policy.adds:
        return form, tuple(new)
    fields = [*form.columns.fields, *(StructField(name, StringType()) for name in new)]
    return replace(form, grown=StructType(fields)), ()


def _of_parquet(form: ReadFormat, file: Path) -> FileSurvey:
    """Return the columns of a parquet file; the reader reports an invalid file.

    Raises `BadInput` for a new column of a type that Spark cannot read, and for times in UTC in a
    column of times without a zone, or the other way round, unless a user gave the types.
    """
    try:
        with asking_about(file):
            stored = parquet_columns(file)
    except (pa.ArrowException, OSError):
        return FileSurvey(file)
    _refuse_misread(form, file, stored)
    kept = [(each, with_values(each.type)) for each in stored]
    fields = [each.with_type(kind) for each, kind in kept if kind is not None]
    none = frozenset(each.name.lower() for each in stored if pa.types.is_null(each.type))
    odd = {each.name.lower(): each.type for each in stored if is_converted(each.type)}
    converted = {name: kind for name, kind in odd.items() if name not in none}
    columns = parse_ddl(to_ddl(pa.schema(fields)))
    return FileSurvey(file, columns=columns, valueless=none, converted=converted)


def _refuse_misread(form: ReadFormat, file: Path, stored: pa.Schema) -> None:
    known = {each.lower() for each in form.columns.names}
    try:
        if form.policy.mode != LEAVE_OUT:
            refuse_unreadable(
                pa.schema([each for each in stored if each.name.lower() not in known])
            )
    except BadInput as error:
        raise BadInput(f"{file}: {error}") from None
    if form.is_inferred:
        refuse_zone_clash(arrow_schema_of(form.columns), stored, file)


def _of_csv(
    form: ReadFormat, file: Path, surveyed: FileSurvey, named: Sequence[FolderColumn]
) -> StructType | None:
    """Return the columns of a csv file; raises `SchemaRefused` if the header does not match."""
    header = surveyed.header
    if not form.policy.adds:
        _check_header(file, header, form.names_in_files(header, named))
        return None
    refuse_duplicates(header, f"{file}: ")
    if surveyed.proof is not None:
        types = [each.dataType for each in surveyed.proof.columns.fields]
        return StructType([*map(StructField, header, types)])
    known = {each.name.lower(): each.dataType for each in form.declared.fields}
    if not form.policy.widens and all(name.lower() in known for name in header):
        return StructType([StructField(name, known[name.lower()]) for name in header])
    how = {"has_empty_texts": surveyed.quotes_nothing, "tolerant": form.tolerant}
    found = csv_columns(file, form.style, _SAMPLE, known, **how)
    return None if found is None else parse_ddl(to_ddl(found))


def _check_header(file: Path, found: Sequence[str], expected: Sequence[str]) -> None:
    if [name.lower() for name in found] != [name.lower() for name in expected]:
        raise SchemaRefused(
            f"{file}: CSV header does not conform to the schema. Header: {', '.join(found)} "
            f"Schema: {', '.join(expected)}; set {EVOLUTION}={ADD_COLUMNS} to match columns by "
            "their names, set `source.schema`, or move the file away"
        )
