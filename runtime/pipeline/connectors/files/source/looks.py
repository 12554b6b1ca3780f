# pyright: basic
"""A look at a file before Spark reads it: whether it can be read, and which columns it has.

Spark's readers pass over columns that they are not told. So what a file has is held against the
schema here, and what becomes of the remainder is a matter of `source.schema.evolution`. The files
of the next batch are looked at while Spark works on the one before.
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
from pyspark.sql.types import StructField, StructType

from ....spark.spelling import path_to_read, path_to_write
from ....spi.errors import BadInput, SchemaRefused
from ...evolution.arrow_columns import is_of_nanoseconds, parquet_columns, rows_of, to_ddl
from ...evolution.json_columns import JsonColumns
from ...evolution.policy import ADD_COLUMNS, EVOLUTION, parse_ddl
from ..copies import Copies, Surveyed
from ..packed import is_packed
from .formats import ReadFormat
from .inference import csv_columns, refuse_twins
from .listing import SourceFile
from .text import survey, transcoded

_SAMPLE: Final = 16 << 20
"""How many bytes of a csv file tell the types of columns that the schema has not."""
MOST_HELD: Final = 64 << 20
"""How many bytes of text are held of packed files at once; that of others is within the batch."""


class LookAhead:
    """What was found in files before anybody asked; all but the looks is of one thread."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._thread: ThreadPoolExecutor | None = None
        """None: there never was anything to look at."""
        self._begun: Future[None] | None = None
        self._is_wanted = Event()
        self._form: ReadFormat | None = None
        """The format by which files are looked through."""
        self._found: dict[SourceFile, Surveyed] = {}
        self._copies = Copies()
        """The copies of files that Spark would not read as they are."""

    def begin(
        self, form: ReadFormat, files: Sequence[SourceFile], within: str | None, *, keeps_text: bool
    ) -> None:
        """Look through files meanwhile, in their order, until somebody takes what was found."""
        if not files:
            return
        self._form = form
        self._is_wanted.set()
        self._thread = self._thread or ThreadPoolExecutor(1, "files-ahead")
        self._begun = self._thread.submit(self._look, form, files, within, keeps_text=keeps_text)

    def take(self, form: ReadFormat) -> tuple[Mapping[SourceFile, Surveyed], Copies]:
        """Return what was found by a format, and the copies that this needs.

        A file that cannot be read is not among it. One that is being looked through is waited for.
        """
        self._is_wanted.clear()
        begun, self._begun = self._begun, None
        if begun is not None:
            begun.result()
        found, copies = self._found, self._copies
        self._found, self._copies = {}, Copies()
        if self._form is not form:  # it has learned of columns since
            copies.clear()
            return {}, copies
        return found, copies

    def close(self) -> None:
        """End the thread, and remove what it copied."""
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
            with suppress(Exception):  # whoever reads it looks again, and tells what is wrong
                self._found[each] = found = look_through(
                    form, self._root / each.path, self._copies, within, keeps_text=keeps
                )
                held += held_of(found)


def look_through(
    form: ReadFormat, file: Path, copies: Copies, within: str | None, *, keeps_text: bool = False
) -> Surveyed:
    """Look at a file as far as has to be before Spark reads it; raises `BadInput`.

    `within` is where folders of copies are made; `keeps_text` as `survey` has it.
    """
    found = _looked_at(form, file, copies, within, keeps_text=keeps_text)
    if found.path == file and _is_misread(file):
        return replace(found, path=copies.link(file, within))
    return found


def _is_misread(file: Path) -> bool:
    """Tell whether Hadoop takes a colon in a file's path for the end of a scheme.

    In the name of the file it does so always, in one of a folder where a pattern is looked for.
    """
    has_pattern = path_to_read(file) != path_to_write(file)
    return ":" in (str(file) if has_pattern else file.name)


def _looked_at(
    form: ReadFormat, file: Path, copies: Copies, within: str | None, *, keeps_text: bool
) -> Surveyed:
    if form.name == "json":
        is_one = form.option("multiline").lower() == "true"
        # Where the user says what ends lines, nobody but the reader knows what is one.
        refuse = None if form.option("linesep") else partial(_refuse_remainder, file, is_one=is_one)
        text = partial(_refuse_text, file)
        columns = JsonColumns(form.columns, is_one=is_one, refuse=refuse, refuse_text=text)
        path = transcoded(file, form.style.encoding, copies, within, columns.feed)
        return Surveyed(path, columns=parse_ddl(to_ddl(columns.end())))
    if form.name == "parquet":
        if form.tolerant:
            rows_of(file)
        return _of_parquet(file)
    how = {"keeps_text": keeps_text, "finds_names": form.refuses_names}
    found = survey(file, form.style, copies, within, **how)
    if not form.style.header or not found.header:
        return found
    return replace(found, columns=_of_csv(form, file, found))


def _refuse_remainder(file: Path, line: int, *, is_one: bool) -> None:
    if is_one:
        raise BadInput(
            f"{file}: it goes on after its first value, which is all that is read with "
            "`source.option.multiLine`: leave that out if each line is an object, or make them one "
            "array"
        )
    raise BadInput(
        f"{file}: line {line} goes on after its first value, which is all that is read of it: "
        "write one object a line"
    )


def _refuse_text(file: Path, line: int, why: str) -> None:
    raise BadInput(f"{file}: line {line} {why}: write it anew, or move the file away")


def held_of(found: Surveyed) -> int:
    """Return how many bytes of text are held of a packed file."""
    return len(found.text or b"") if is_packed(found.path) else 0


def admit(form: ReadFormat, found: Surveyed, file: Path) -> tuple[ReadFormat, tuple[str, ...]]:
    """Return a format with what a file has beyond its schema, and the columns that are left out.

    Raises `SchemaRefused` where the file must not have any.
    """
    if found.columns is None:
        return form, ()
    known = form.columns
    schema, left_out = form.policy.admit(form.declared, known, found.columns, str(file))
    if schema is known:
        return form, left_out
    refuse_twins(schema.fieldNames(), f"{file}: ")
    return replace(form, grown=schema), left_out


def _of_parquet(file: Path) -> Surveyed:
    """Tell the columns of a parquet file; what is none is told by the reader."""
    try:
        found = parquet_columns(file)
    except (pa.ArrowException, OSError):
        return Surveyed(file)
    valueless = [each for each in found if pa.types.is_null(each.type)]
    columns = parse_ddl(to_ddl(pa.schema([each for each in found if each not in valueless])))
    nanos = frozenset(each.name.lower() for each in found if is_of_nanoseconds(each.type))
    none = frozenset(each.name.lower() for each in valueless)
    return Surveyed(file, columns=columns, valueless=none, nanos=nanos)


def _of_csv(form: ReadFormat, file: Path, surveyed: Surveyed) -> StructType | None:
    """Return the columns of a csv file; raises `SchemaRefused` if it would fill wrong ones."""
    header = surveyed.header
    if not form.policy.adds:
        _check_header(file, header, form.columns.fieldNames())
        return None
    refuse_twins(header, f"{file}: ")
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
            f"Schema: {', '.join(expected)}; set {EVOLUTION}={ADD_COLUMNS} to go by the names in "
            "headers, give `source.schema`, or move the file away"
        )
