"""Reads the files of a batch, and finds the file that caused an error of the Spark job.

Files that are proved are read by Arrow: in parts, or in this process if they are small. What it
could not read after all is surveyed again, as if nothing could be proved, and read by Spark, so
that errors, positions and bad rows are those of Spark's way.
"""

import errno
import os
import re
import sys
import tempfile
from collections.abc import Container, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import unquote

from ....engines.failures import failure_text, is_of_spark_task
from ....engines.sessions import cores_of, may_run_arrow, runs_elsewhere, scratch_of
from ....formats.bad_rows import BAD_VALUE
from ....formats.evolution.policy import DEAD_LETTER
from ....formats.json.attempts import ProofAttempts
from ....spi.context import Context
from ....spi.errors import BadInput, LostRange, SchemaRefused, SourceAway, Unreadable
from ....spi.rows import ArrowTable, PartedRows, Rejects, Unproved
from ..copies import Copies, FileSurvey, merge_small_files
from ..lanes import LaneCounter
from .file_survey import MOST_HELD, LookAhead, admit, held_of, survey_file, with_texts
from .formats import ReadFormat
from .listing import SourceFile
from .text import find_mismatch_in, is_about_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BLAMED = re.compile(r"FAILED_READ_FILE\S* [^\n]*?file (?:file:(?://)?)?(?P<path>/\S+?)\.?\s")
_VALUE = re.compile(
    BAD_VALUE + r" (?:file:(?://)?)?(?P<path>/\S+) (?P<why>column `.*?)(?: SQLSTATE: \w+|$)",
    re.S | re.M,
)
_UNREADABLE = re.compile(
    r"column: \[(?P<name>.+?)\], physicalType: (?P<stored>\w+), logicalType: (?P<wanted>.+)"
)
"""Spark's error for a parquet column whose stored type does not fit the schema."""
_CAUSE = re.compile(r"^Caused by: \S+?: (?P<why>.+)$", re.M)
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w+")
_WORDS: Final = """
    dateformat delimiter escape header locale nullvalue quote sep timestampformat timestampntzformat
"""
_OF_VALUES: Final = frozenset(_WORDS.split())
"""Csv options, in lower case, with which merged files can be read like single ones."""
_NOT_FOUND: Final = "FAILED_READ_FILE.FILE_NOT_EXIST"
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)
_AWAY_WORDS: Final = (
    "Input/output error",
    "Stale file handle",
    "Transport endpoint is not connected",
    "Connection timed out",
    "No space left on device",
)
_ANY: Final = sys.maxsize
_LEAST_PARTED: Final = 4 << 20
"""The least bytes that tasks of Spark read: what is less is read in this process, without a job."""
_NO_ARROW: Final = "executors do not have the pyarrow and the Python of this node"


class DeferredFiles:
    """The files that batches of one task failed with: read in halves, until one fails alone.

    That one is read last, so that no other waits. Each counts in the state in which it failed.
    """

    def __init__(self, memory: dict[str, object]) -> None:
        self._memory = cast("dict[str, tuple[SourceFile, int]]", memory)
        """The files by path, each with the largest number that is read together; 0: it has failed
        alone. It outlives an attempt of the task."""

    def add(self, files: Sequence[SourceFile]) -> None:
        """Defer the files of a failed batch: they are read in halves, a single one last."""
        for each in files:
            self._memory[each.path] = each, len(files) // 2

    def forget(self, path: str) -> None:
        """Remove a file that was read after all, or is gone."""
        self._memory.pop(path, None)

    def keep(self, paths: Container[str]) -> None:
        """Forget the files that are no longer in the folder."""
        for path in [each for each in self._memory if each not in paths]:
            del self._memory[path]

    def turn(self, file: SourceFile) -> tuple[bool, int]:
        """Return the sort key of a file: files that failed alone come last.

        The smallest parts of a failed batch come first, so that the file that is to blame is found
        soon: what fails for all files would else halve batches of new ones for ever.
        """
        most = self._most(file)
        return most == 0, most

    def fits(self, file: SourceFile, taken: Sequence[SourceFile]) -> bool:
        """Return whether a file may be read in one batch with others."""
        most = self._most(file)
        return not taken or (len(taken) < most and self._most(taken[0]) == most)

    def _most(self, file: SourceFile) -> int:
        failed, most = self._memory.get(file.path, (None, _ANY))
        return most if failed == file else _ANY


class Reading:
    """Reads batches of files, one after the other."""

    def __init__(self, root: Path, form: ReadFormat, context: Context) -> None:
        self._root = root
        self._form = form
        self.deferred = DeferredFiles(context.deferred)
        self._may_merge = _can_merge(form) and not context.may_use_file_names
        """Whether small files may be merged."""
        self._merges = False
        """Whether the files of the current batch may be merged."""
        self._may_be_parted = context.by_arrow and form.name == "csv"
        """Whether Arrow may read proved files."""
        self._doubted: Sequence[SourceFile] = ()
        """The files of a batch that Arrow could not read after all."""
        self.lanes = LaneCounter(form.name, self._find_mismatch)
        """Counts the files that Arrow reads."""
        # When to try whether Arrow may read files of json.
        self._attempts = ProofAttempts(is_allowed=context.by_arrow and form.name == "json")
        self._ahead = LookAhead(root)
        """Scans the files of the next batch."""
        self._shared = context.reach.paths
        """The folders that executors elsewhere read, too."""
        self._within: str | None = None
        """The parent of the last temporary folder."""
        self._files: Sequence[SourceFile] = ()
        """The files of the last batch."""
        self.rejects: tuple[Rejects, ...] = ()
        """The bad rows of the last batch."""
        self.left_out: dict[str, None] = {}
        """The columns of files that are not in the schema and were left out."""
        self.shadowed: dict[str, None] = {}
        """The columns that folders name, and whose values the files below them have themselves."""
        self._copies = Copies()
        """The temporary files of the last batch."""

    def read(
        self, spark: "SparkSession", files: Sequence[SourceFile]
    ) -> "DataFrame | ArrowTable | PartedRows":
        """Return the rows of files; may extend the schema.

        Raises `Unreadable` for unreadable files if these are tolerated; else `BadInput`.
        """
        self._clear()
        self._files = files
        elsewhere = runs_elsewhere(spark)
        self._within = _first_writable(self._shared) if elsewhere else scratch_of(spark)
        # With one column, an empty line is a value.
        is_one = len(self._form.columns.fields) == 1
        is_doubted = files == self._doubted
        self._merges = self._may_merge and not (is_one or elsewhere or is_doubted)
        self._form = self._form.in_session(spark)
        proves = not is_doubted
        if proves is not self._form.proves:
            self._form = replace(self._form, proves=proves)
        keeps_rows = self._may_keep_rows(files)
        try:
            surveys = self._look_through(files, keeps=keeps_rows or self._merges)
        except OSError as error:
            where = self._within or tempfile.gettempdir()
            if error.errno in _NO_ROOM:
                remedy = "make room there"
            elif elsewhere and not _is_writable(where):
                remedy = f"let this node's user write to one of {', '.join(self._shared)}"
            else:
                raise
            raise SourceAway(
                f"cannot copy input files to {where}: {error.strerror}; {remedy}"
            ) from error
        by_arrow = self._by_arrow(spark, surveys, keeps_rows=keeps_rows)
        return by_arrow or self._rows(spark, surveys)

    def _by_arrow(
        self, spark: "SparkSession", surveys: Sequence[FileSurvey], *, keeps_rows: bool
    ) -> "ArrowTable | PartedRows | None":
        """Return the rows that Arrow has read, or may read; None: Spark has to."""
        table = self._form.table(surveys)
        self._attempts.end_turn(is_tried=keeps_rows, has_failed=table is None)
        if table is not None:
            return table
        parts = self._parts(spark, surveys)
        if self._may_be_parted:
            paths = [self._root / each.path for each in self._files]
            found = [*zip(paths, surveys, strict=True)]
            form = self._form.plain_form()
            self.lanes.count(form, found, is_parted=parts is not None)
        return parts

    @property
    def has_table(self) -> bool:
        """Whether the rows of the last batch were a table."""
        return self._attempts.has_succeeded

    def _may_keep_rows(self, files: Sequence[SourceFile]) -> bool:
        """Return whether Arrow may read all rows of files while it looks for their columns."""
        return self._attempts.is_due and sum(each.size for each in files) <= MOST_HELD

    def _may_read_by_arrow(self, spark: "SparkSession") -> bool:
        if self._may_be_parted and not may_run_arrow(spark):
            self.lanes.refusal = _NO_ARROW
            return False
        return self._may_be_parted

    def _parts(self, spark: "SparkSession", surveys: Sequence[FileSurvey]) -> PartedRows | None:
        """Return the rows in parts, if there is enough that Arrow may read."""
        proved = [each for each in surveys if each.proof is not None]
        size = sum(each.proof.cuts[-1] for each in proved if each.proof is not None)
        others = [each for each in surveys if each.proof is None]
        is_small = size < _LEAST_PARTED
        if not proved or (is_small and others):
            return None  # Spark has a job to run anyway
        if not (self._may_be_parted if is_small else self._may_read_by_arrow(spark)):
            return None
        rest = partial(self._rows, spark, others) if others else None
        return self._form.parts(
            proved, partial(self._rows, spark, surveys), rest, is_small=is_small
        )

    def _find_mismatch(self, file: Path, survey: FileSurvey) -> str:
        names = self._form.names_in_files((), survey.folders)
        return find_mismatch_in(file, self._form.plain_form(), names)

    def _rows(self, spark: "SparkSession", surveys: Sequence[FileSurvey]) -> "DataFrame":
        """Return the rows of files as Spark reads them."""
        if self._merges:
            with suppress(OSError, BadInput):  # without disk space they are read one by one
                surveys = merge_small_files(
                    with_texts(surveys), lambda: cores_of(spark), self._copies, self._within
                )
        good, self.rejects = self._form.rows(spark, surveys, self._copies)
        return good

    def verify(self) -> None:
        """Raise `SourceAway` if a copy that Spark reads was changed."""
        self._copies.verify()

    def look_ahead(self, files: Sequence[SourceFile]) -> None:
        """Scan the files of the next batch in the background."""
        keeps = self._merges or self._may_keep_rows(files)
        self._ahead.begin(self._form, files, self._within, keeps_text=keeps)

    def _look_through(self, files: Sequence[SourceFile], *, keeps: bool) -> list[FileSurvey]:
        ahead, self._copies = self._ahead.take(self._form)
        surveys: list[FileSurvey] = []
        lost: list[LostRange] = []
        refused: BadInput | None = None
        held = 0
        for each in files:
            file = self._root / each.path
            try:
                surveyed = ahead.get(each) or survey_file(
                    self._form,
                    file,
                    self._copies,
                    self._within,
                    root=self._root,
                    keeps_text=keeps and held < MOST_HELD,
                )
                held += held_of(surveyed)
                self._form, left_out = admit(self._form, surveyed, file)
                self.left_out |= dict.fromkeys(left_out)
                self.shadowed |= dict.fromkeys(surveyed.shadowed)
                surveys.append(surveyed)
            except BadInput as error:
                if not self._is_tolerated(error):
                    if not is_about_file(error):
                        raise
                    # The loop continues, to find all unreadable files in one attempt.
                    self._read_last(each, error)
                    refused = refused or error
                    continue
                reason = str(error).removeprefix(f"{file}: ")
                lost.append(LostRange(each, {"file": str(file)}, reason))
        if refused:
            raise refused
        if lost:
            raise Unreadable(lost)
        return surveys

    def _is_tolerated(self, error: BadInput) -> bool:
        """Return whether the batch continues without the file of an error."""
        if isinstance(error, SchemaRefused):
            return self._form.policy.mode == DEAD_LETTER
        return self._form.tolerant and is_about_file(error)

    def blame(self, error: Exception) -> BadInput | None:
        """Return `BadInput` with the file and the reason, if a file caused Spark's error.

        Raises `SourceAway` for a file that Spark does not find, and this process can read, and if
        a file system does not answer.
        """
        blamed_file = _file_and_reason(str(error))
        if blamed_file is None:
            return None
        self._copies.verify()  # else the input file would be to blame
        plain, why = unquote(blamed_file[0]), blamed_file[1]
        file = str(self._copies.originals.get(plain, plain))
        if _NOT_FOUND in str(error) and os.access(file, os.R_OK):
            raise SourceAway(
                f"{file} is there, and Spark does not find {plain}: is its folder mounted on all "
                "hosts of executors, for their user too?"
            ) from error
        if any(each in why for each in _AWAY_WORDS):
            raise SourceAway(f"{file}: {why}") from error
        path = os.path.relpath(file, self._root)
        read = next((each for each in self._files if each.path == path), None)
        if self._form.tolerant and read:
            return Unreadable([LostRange(read, {"file": file}, why)])
        blamed = BadInput(f"{file}: {why}")
        if read:
            self._read_last(read, blamed)
        return blamed

    def _read_last(self, file: SourceFile, error: BadInput) -> None:
        """Plan an unreadable file last, so that it does not block others."""
        self.deferred.add([file])
        error.is_deferred = True

    def narrow(self, error: Exception) -> bool:
        """Return whether the batch is to be read in another way, after an error.

        What Arrow could not read is read by Spark, file by file. If a merged file caused the error,
        files are not merged again.
        """
        blamed = _file_and_reason(str(error))
        is_of_parts = isinstance(error, Unproved) or (blamed is None and is_of_spark_task(error))
        if self.lanes.last.ranges and is_of_parts:
            self._doubted = self._files
            self.lanes.refusal = failure_text(error) or str(error)
            return True
        is_merged = blamed is not None and unquote(blamed[0]) in self._copies.merged
        self._may_merge = self._may_merge and not is_merged
        return is_merged

    def close(self) -> None:
        """Remove the temporary files."""
        self._ahead.close()
        self._clear()

    def _clear(self) -> None:
        self._copies.clear()
        self.rejects = ()


def _first_writable(folders: Sequence[str]) -> str | None:
    """Return the first folder that takes copies; if none does, the first one, for the error."""
    return next(filter(_is_writable, folders), next(iter(folders), None))


def _is_writable(folder: str) -> bool:
    return os.access(folder, os.W_OK | os.X_OK)


def _can_merge(form: ReadFormat) -> bool:
    """Tell whether files may be merged; not with tolerance, since bad rows must name their file."""
    is_csv = form.name == "csv" and not form.tolerant
    return is_csv and form.options.keys() <= _OF_VALUES


def _file_and_reason(text: str) -> tuple[str, str] | None:
    """Return the file, as Spark names it, and the reason in a job's error; None: no file in it."""
    value = _VALUE.search(text)
    if value:
        return value["path"], value["why"]
    blamed = _BLAMED.search(text)
    if not blamed:
        return None
    causes = [_SQLSTATE.sub("", each).strip() for each in _CAUSE.findall(text)]
    causes = [_UNREADABLE.sub(_wrong_type, each) for each in causes]
    return blamed["path"], "; ".join(dict.fromkeys(causes)) or "it cannot be read"


def _wrong_type(match: "re.Match[str]") -> str:
    name, stored, wanted = match["name"], match["stored"], match["wanted"].upper()
    return (
        f"column `{name}` is stored as {stored}, which Spark cannot read as {wanted}; give it a "
        "type in `source.schema` that fits the stored one, or write the file again"
    )
