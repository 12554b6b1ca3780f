# pyright: basic
"""Reads proved csv files by Arrow and by Spark, and tells where the rows differ."""

import gzip
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fairlead.events.model import Resource
from fairlead.runtime.pipeline.batches.frames import arrow_schema_of, rows_of
from fairlead.runtime.pipeline.engines.sessions import session_beside
from fairlead.runtime.pipeline.spi.context import Context
from fairlead.runtime.pipeline.spi.errors import BadInput
from fairlead.runtime.pipeline.stores.files.copies import Copies, FileSurvey
from fairlead.runtime.pipeline.stores.files.source.file_survey import admit, survey_file
from fairlead.runtime.pipeline.stores.files.source.listing import stat_file
from fairlead.runtime.pipeline.stores.files.source.reading import Reading

from .drawn_csv import Batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = tuple[object, ...]
_MOST_SHOWN = 3


@dataclass
class Found:
    """What the readers took from batches."""

    proved: int = 0
    """How many files were proved."""
    rows: int = 0
    differences: list[str] = field(default_factory=list[str])
    unread: list[str] = field(default_factory=list[str])
    """Proved files that Arrow could not read, which Spark reads then."""

    def plus(self, other: "Found") -> "Found":
        """Return what is found in both."""
        return Found(
            self.proved + other.proved,
            self.rows + other.rows,
            self.differences + other.differences,
            self.unread + other.unread,
        )


class BothReaders:
    """Reads the proved files of a batch in both ways."""

    def __init__(self, spark: "SparkSession", batch: Batch, folder: Path) -> None:
        zone = {"spark.sql.session.timeZone": batch.zone}
        self._spark = session_beside(spark, zone)
        self._batch = batch
        self._folder = folder
        self._form = batch.form.in_session(self._spark)
        self._copies = Copies()
        """The copies of files that are proved in another form, below the folder."""
        self._context = Context(Resource("c", 0), print, may_use_file_names=False, by_arrow=False)

    def compare(self, surveys: Sequence[FileSurvey]) -> Found:
        """Return what is found in proved files."""
        try:
            rows = len(self.by_arrow(surveys))
        except (pa.ArrowException, OSError):
            unread = [*filter(None, map(self._unread, surveys))]
            return Found(len(surveys), unread=unread)
        return Found(len(surveys), rows, [*islice(self._differences(surveys), _MOST_SHOWN)])

    def surveys(self) -> list[FileSurvey]:
        """Write the files; return the surveys of those that are proved."""
        return [*self._proved()]

    def _proved(self) -> Iterator[FileSurvey]:
        for number, text in enumerate(self._batch.files):
            is_packed = number % 10 == 9
            path = self._folder / f"{number}.csv{'.gz' * is_packed}"
            path.write_bytes(gzip.compress(text, 1) if is_packed else text)
            try:
                survey = survey_file(
                    self._form, path, self._copies, str(self._folder), root=self._folder
                )
                if survey.proof is not None:
                    form, _ = admit(self._form, survey, path)
                    assert form is self._form
                    yield survey
            except BadInput:
                continue

    def by_arrow(self, surveys: Sequence[FileSurvey]) -> list[Row]:
        """Return the rows as Arrow reads them, in three parts."""
        parts = self._form.parts(surveys, _no_frame, None)
        tables: list[Any] = [each for part in parts.parts(3) for each in part()]
        assert all(each.schema == parts.schema for each in tables)
        return [row for each in tables for row in rows_in(each)]

    def _unread(self, survey: FileSurvey) -> str:
        """Return why Arrow does not read a file; empty: it does."""
        try:
            self.by_arrow([survey])
        except (pa.ArrowException, OSError) as error:
            return self._told(survey, [f"Arrow: {error}"])
        return ""

    def _differences(self, surveys: Sequence[FileSurvey]) -> Iterator[str]:
        """Yield where Spark's rows are others; files are halved until one is found."""
        if not surveys:
            return
        expected, actual = Counter(self.by_arrow(surveys)), Counter[Row]()
        why = ""
        try:
            actual.update(self.by_spark(surveys))
        except Exception as error:  # noqa: BLE001  # whatever it is, Arrow had read the files
            why = str(error).partition("\n")[0]
        if expected == actual and not why:
            return
        if len(surveys) > 1:
            half = len(surveys) // 2
            yield from self._differences(surveys[:half])
            yield from self._differences(surveys[half:])
            return
        lines = [_shown("Arrow", expected - actual), _shown("Spark", actual - expected), why]
        yield self._told(surveys[0], [*filter(None, lines)])

    def by_spark(self, surveys: Sequence[FileSurvey]) -> list[Row]:
        """Return the rows as Spark reads them, with the proofs or as if nothing was proved."""
        originals = self._copies.originals
        names = [originals.get(str(each.path), each.path).name for each in surveys]
        files = [each for name in names if (each := stat_file(self._folder, name))]
        reading = Reading(self._folder, self._form, self._context)
        reading._doubted = () if self._batch.keeps_proofs else files
        try:
            frame: Any = reading.read(self._spark, files)
            assert arrow_schema_of(frame.schema) == arrow_schema_of(self._form.columns)
            return [*rows_in(rows_of(frame))]
        finally:
            reading.close()

    def _told(self, survey: FileSurvey, lines: Sequence[str]) -> str:
        data = survey.path.read_bytes()
        text = gzip.decompress(data) if survey.path.suffix == ".gz" else data
        how = f"zone {self._batch.zone}, {dict(self._batch.config)}"
        return "\n".join([f"{text!r}", f"  read with {how}", *(f"  {each}" for each in lines)])


def rows_in(table: Any) -> Iterator[Row]:
    """Yield the rows of a table; numbers and times as their bits."""
    if table.num_columns:
        yield from zip(*(_values(each) for each in table.columns), strict=True)


def _values(column: pa.ChunkedArray) -> list[object]:
    kind = column.type
    bits = {pa.float64(): pa.int64(), pa.float32(): pa.int32(), pa.date32(): pa.int32()}
    if pa.types.is_timestamp(kind):
        bits[kind] = pa.int64()
    if kind in bits:
        column = pa.chunked_array([each.view(bits[kind]) for each in column.chunks], bits[kind])
    return list(column.to_pylist())


def _shown(reader: str, rows: Counter[Row]) -> str:
    return f"{reader}: {[*rows.elements()][:_MOST_SHOWN]}" if rows else ""


def _no_frame() -> "DataFrame":
    raise AssertionError("Arrow reads this")
