# pyright: basic
"""The files sink: one Spark job stages a batch in the folder, renames publish it.

A task that begins compares its mark in the folder with the log (`acquire`): a folder or a log that
was restored from a backup is refused, and so is another process that writes as the same task. Then
it writes a mark of its own. Each batch is staged below `_fairlead`, in files with the columns that
all files have, and is durable before its manifest leaves. `publish` moves the files to names that
depend on the commit alone, so that any process can do it, again or for another one; the mark notes
the batch afterwards. Before each batch the mark is read again: a newer one ends the task.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ......events.commits import CommitId, Manifest
from ......events.model import Resource, Token
from ....batches.counting import RowCount
from ....engines.failures import failure_text
from ....engines.sessions import cores_of, runs_elsewhere
from ....spi.errors import BadInput, RowsRefused, SinkAway, SinkBroken, SinkFull
from ....spi.rows import ArrowSchema, ArrowTable, PartedRows
from ....spi.sink import Sink, StagedParts, TaskOwnership
from ...marks import PublishedBatch, is_behind, older_sink, refuse_other_log
from ...staging import escape_name, task_of
from .. import keys
from . import marks, staging
from .arrow_parts import write_parts, write_table
from .columns import align_columns, are_aligned, columns_by_arrow, reconcile_columns
from .marks import SinkClaim, TaskMark
from .null_folder import NULL_FOLDER, NullFolderCounter, refuse_bytes
from .publishing import (
    PartsMissing,
    RowsOf,
    parts_of,
    publish,
    publish_rest,
    unknown_row_count,
    written_since,
)
from .root import OpenRoot, SinkLocation, open_root, sink_full
from .row_counts import counter_of, whole_files
from .staging import STAGING
from .writing import SmallBatches, WriteFormat, WrittenRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_LIKE_NULL: Final = f"""has the text {NULL_FOLDER}, and also null: both would be in one \
folder. Nothing of the batch was written: change the text by a transform"""
_NO_FOLDER: Final = "Mkdirs failed to create"
_LONGEST_NAME: Final = 255
"""The most bytes in the name of a folder."""
_FULL_WORDS: Final = ("No space left on device", "Disk quota exceeded")
_TEMPORARY: Final = """no space left for Spark's temporary files, which lie in data.dir, or in \
spark.local.dir of an executor; the task retries the batch until there is"""
_GONE_WORDS: Final = ("No such file or directory", "does not exist", "FileNotFound")
_AWAY_WORDS: Final = ("Read-only file system", "Stale file handle", "Input/output error")


class FileSink(Sink["DataFrame"]):
    """Appends batches to a folder on a file system that the worker and all executors share."""

    def __init__(
        self,
        place: SinkLocation,
        form: WriteFormat,
        warn: Callable[[str], None],
        *,
        may_evolve: bool = False,
        count: Callable[[], RowCount] = RowCount,
        spark_settings: Mapping[str, str] | None = None,
    ) -> None:
        self._place = place
        self._form = form
        self._warn = warn
        self._may_evolve = may_evolve
        self._count = count
        self._rows_in = counter_of(form)
        """Counts the rows of a written file; None: its format does not tell them."""
        self._columns: tuple[StructType, StructType] | None = None
        """The columns of the rows, and the columns of all files; None: `prepare` was not called."""
        self._mark: TaskMark | None = None
        """The last mark that was written; None: not acquired, only used to publish."""
        self._names_rows = form.name == "parquet"
        """Whether a manifest names the rows of each file, which are in its footer."""
        is_plain = self._names_rows and not (form.partition_by or form.options)
        self._lost = NullFolderCounter(form.partition_by, warn)
        """Counts texts that readers will take for null."""
        self._small = SmallBatches(form.file_bytes if is_plain else 0, spark_settings)
        """Writes small batches without Spark."""

    @property
    def takes_tables(self) -> bool:
        """Whether the files of a table would be as Spark's are, as far as known without it."""
        return self._small.takes_tables

    @property
    def counts_rows(self) -> bool:
        """Rows are counted as they are written, and again in the files."""
        return True

    def acquire(self, ownership: TaskOwnership) -> None:
        """Check that the sink belongs to this log, and write the task's mark."""
        claim = self._place.claim
        if claim is None:
            raise SinkAway(f"{self._place.connector} has not claimed {self._place.root} yet")
        with open_root(self._place) as root:
            before = marks.read_mark(root.path, ownership.task, claim.writer)
            published = None
            if before is not None and before.claim == claim.writer:
                _refuse_others(self._place, ownership, before, self._rows_in)
                published = before.published
            process = marks.this_process()
            mark = TaskMark(claim.writer, ownership.token, process, ownership.log, published)
            if mark != before:
                marks.write_mark(root.path, ownership.task, mark)
            marks.remove_older_marks(root.path, ownership.task, ownership.token)
        self._mark = mark

    def prepare(self, schema: ArrowSchema) -> None:
        """Reconcile the columns of the rows with those of the existing files."""
        found = from_arrow_schema(schema, prefer_timestamp_ntz=True)
        refuse_bytes(found, self._form.partition_by)
        with open_root(self._place) as root:
            columns = reconcile_columns(root.path, self._place, found, may_evolve=self._may_evolve)
        self._columns = found, columns

    def stage(self, rows: "DataFrame", commit_id: CommitId, input_bytes: int) -> Manifest:
        """Write a batch to its staging folder, in few files, and fsync it."""
        with open_root(self._place) as root:
            self._refuse_intruders(root, commit_id)
            rows = self._lost.watch(self._aligned(root, rows))
            where = staging.batch_folder(commit_id)
            # Executors on other machines have only the name of the root, not its descriptor.
            elsewhere = runs_elsewhere(rows.sparkSession)
            folder = (self._place.root if elsewhere else root.path) / where
            is_small = not elsewhere and self._small.take(rows, input_bytes)
            if is_small:
                written = self._small.write(rows, folder)
            else:
                written = self._write(rows, folder, input_bytes, elsewhere=elsewhere)
            manifest = self._staged(root, where, commit_id, written)
            self._lost.warn()
            if not is_small:
                self._small.learn(manifest, input_bytes)
            return manifest

    def _staged(
        self, root: OpenRoot, where: str, commit_id: CommitId, written: WrittenRows
    ) -> Manifest:
        """Make written files durable and return their manifest; raises `SinkAway`."""
        with whole_files(root, where) as compare:
            self._refuse_absent(root, where, written)
            staging.make_durable(root.path, root.path / where)
            manifest = self._manifest(root.path, where, commit_id, written)
            compare(written, manifest.rows)
        if not root.is_current():
            raise SinkAway(f"{self._place.root} was unmounted or replaced during a batch")
        return manifest

    def stage_parts(
        self, spark: "SparkSession", rows: PartedRows, commit_id: CommitId, input_bytes: int
    ) -> StagedParts | None:
        """Write a batch by Arrow in tasks of Spark, or here if it is small; None: Spark has to."""
        if rows.is_small:
            if not self._small.are_alike(spark, from_arrow_schema(rows.schema)):
                return None
            manifest = self.stage_table(rows.table(), commit_id, input_bytes, spark)
            return None if manifest is None else StagedParts(manifest, manifest.rows)
        with open_root(self._place) as root:
            self._refuse_intruders(root, commit_id)
            schema = self._schema_of_files(root, rows.schema)
            if schema is None or not self._small.are_alike(spark, from_arrow_schema(schema)):
                return None
            where = staging.batch_folder(commit_id)
            elsewhere = runs_elsewhere(spark)
            folder = (self._place.root if elsewhere else root.path) / where
            staging.make_empty_folder(root.path / where)
            rest = self._write_rest(rows, folder, input_bytes, elsewhere=elsewhere)
            # Spark's file may have no row, and then its number is not among those of `rest`.
            first = 1 + max(rest.parts | staging.part_numbers(root.path / where), default=-1)
            count = self._form.parts_of(input_bytes, cores_of(spark))
            with self._explaining():
                parts = write_parts(spark, rows, schema, count, folder, first)
            numbers = rest.parts | {*range(first, first + len(parts))}
            in_parts = sum(each.rows for each in parts)
            written = WrittenRows(rest.rows + in_parts, numbers if elsewhere else frozenset())
            return StagedParts(self._staged(root, where, commit_id, written), in_parts)

    def _write_rest(
        self, rows: PartedRows, folder: Path, input_bytes: int, *, elsewhere: bool
    ) -> WrittenRows:
        """Write by Spark what has to be read by it."""
        if rows.rest is None:
            return WrittenRows(0)
        frame = rows.rest()
        frame = align_columns(frame, *self._columns) if self._columns else frame
        return self._write(frame, folder, input_bytes, elsewhere=elsewhere, with_parts=True)

    def stage_table(
        self,
        table: ArrowTable,
        commit_id: CommitId,
        input_bytes: int,
        spark: "SparkSession | None" = None,
    ) -> Manifest | None:
        """Write a batch by Arrow in this process; None: its files would not be as Spark's are."""
        with open_root(self._place) as root:
            self._refuse_intruders(root, commit_id)
            schema = self._schema_of_files(root, table.schema)
            if schema is None or not self._small.are_alike(spark, from_arrow_schema(schema)):
                return None
            where = staging.batch_folder(commit_id)
            staging.make_empty_folder(root.path / where)
            parts = write_table(
                table, schema, self._form.parts_of(input_bytes, 1), root.path / where
            )
            written = WrittenRows(sum(each.rows for each in parts))
            return self._staged(root, where, commit_id, written)

    def publish(self, manifest: Manifest, commit_id: CommitId, sequence: int) -> None:
        """Rename the batch's files to their final paths, and record that in the task's mark."""
        del sequence
        place = self._place
        if Path(manifest.root) != place.root:  # the sink of an earlier config
            claim = SinkClaim(manifest.claim, 0) if manifest.claim else None
            place = replace(place, root=Path(manifest.root), claim=claim)
        with open_root(place) as root:
            self._refuse_intruders(root, commit_id)
            task = task_of(commit_id)
            mark = marks.read_mark(root.path, task, place.claim.writer) if place.claim else None
            if mark and mark.claim == manifest.claim and _is_done(mark, commit_id):
                return
            self._put_in_place(root, manifest, commit_id)
            if mark and place.claim and mark.claim == place.claim.writer:
                marks.write_mark(root.path, task, mark.after(commit_id))
                if self._mark is not None and place is self._place:
                    self._mark = self._mark.after(commit_id)

    def discard(self, commit_id: CommitId) -> None:
        """Remove the batch's staging folder."""
        with suppress(SinkAway, SinkBroken), open_root(self._place) as root:
            staging.discard(root.path, commit_id)

    def sweep(self, resource: Resource, token: Token) -> None:
        """Remove the staging folders of this token and older ones."""
        with open_root(self._place) as root:
            staging.sweep(root.path, resource, token)

    def _aligned(self, root: OpenRoot, rows: "DataFrame") -> "DataFrame":
        """Return rows with the columns of all files, which other tasks may have extended."""
        if self._is_aligned(root) or self._columns is None:
            return rows
        return align_columns(rows, *self._columns)

    def _schema_of_files(self, root: OpenRoot, schema: ArrowSchema) -> ArrowSchema | None:
        """Return the columns of all files, for rows of a schema; None: Spark has to cast them."""
        if self._is_aligned(root) or self._columns is None:
            return schema
        return columns_by_arrow(*self._columns)

    def _is_aligned(self, root: OpenRoot) -> bool:
        """Return whether rows have the columns of all files as they are now."""
        if self._columns is None:
            return True
        found, last = self._columns
        columns = reconcile_columns(
            root.path, self._place, found, last=last, may_evolve=self._may_evolve
        )
        self._columns = found, columns
        return are_aligned(found, columns)

    def _write(
        self,
        rows: "DataFrame",
        where: Path,
        input_bytes: int,
        *,
        elsewhere: bool,
        with_parts: bool = False,
    ) -> WrittenRows:
        """Write a batch to a folder by Spark; if executors run elsewhere, they create it."""
        if not elsewhere:
            staging.make_batch_folder(where)
        with self._explaining():
            return self._form.write(
                rows,
                where,
                input_bytes,
                self._count(),
                is_there=not elsewhere,
                with_parts=with_parts or elsewhere or self._rows_in is None,
            )

    @contextmanager
    def _explaining(self) -> Generator[None]:
        """Raise the sink's error behind an error of a job, if there is one."""
        try:
            yield
        except Exception as error:
            explained = explain_spark_error(self._place.root, error)
            if explained is None:
                with open_root(self._place):  # raises if a missing root is the cause
                    explained = explain_lost_files(self._place.root, error)
            if explained is not None:
                raise explained from error
            raise

    def _put_in_place(self, root: OpenRoot, manifest: Manifest, commit_id: CommitId) -> None:
        place = root.place
        rows_of = (self._names_rows and self._rows_in) or unknown_row_count
        try:
            publish(root.path, manifest, commit_id, rows_of)
        except PartsMissing as missing:
            claim = place.claim
            if claim and claim.is_adopted and claim.writer != manifest.claim:
                self._warn(f"{missing}; the sink was adopted, so the task continues without them")
                publish_rest(root.path, manifest, commit_id, rows_of)
                return
            remedy = place.adopt_remedy
            if place is not self._place:  # to adopt claims the folder of the config
                remedy = (
                    f"set the path back to {place.root}, with {keys.SINK_ADOPT}=true, until the "
                    "batch is published"
                )
            raise SinkBroken(
                f"{missing}. Nothing was moved or removed. Restore them, or, to continue without "
                f"their rows, {remedy}"
            ) from None

    def _refuse_intruders(self, root: OpenRoot, commit_id: CommitId) -> None:
        """Raise if another log, or another process with a newer token, has acquired the sink."""
        claim = root.place.claim
        if self._mark is None or claim is None or root.place is not self._place:
            return
        task, own = task_of(commit_id), self._mark
        mark = marks.read_mark(root.path, task, own.claim)
        if mark is None or mark.claim != own.claim:
            raise SinkAway(f"{root.place.root} has another mark of {task} than this task wrote")
        if marks.is_intruder(mark, own.token):
            raise _intruded(root.place, task, own.token, mark)
        if mark.published and is_behind(mark.published, own.published):
            shown, remedy = str(root.place.root), root.place.adopt_remedy
            raise older_sink(shown, task, mark.published, own.published, remedy)

    def _refuse_absent(self, root: OpenRoot, where: str, written: WrittenRows) -> None:
        """Raise `SinkAway` if a part with rows has no file, where that is looked at."""
        if not written.parts <= staging.part_numbers(root.path / where):
            raise SinkAway(
                f"{root.place.root} does not have the files that Spark has written: is it mounted "
                "on all hosts of executors, and does nothing remove files from its _fairlead?"
            )

    def _manifest(
        self, root: Path, where: str, commit_id: CommitId, written: WrittenRows
    ) -> Manifest:
        """Return the manifest of what is staged, with the rows of its files if they have them."""
        claim = self._place.claim.writer if self._place.claim else ""
        bare = Manifest(str(self._place.root), where, -1, 0, 0, claim=claim)
        parts = parts_of(root, bare, commit_id, self._rows_in or unknown_row_count)
        is_counted = all(each.rows >= 0 for each in parts) and self._rows_in
        rows = sum(each.rows for each in parts) if is_counted else written.rows
        if not self._names_rows:
            parts = tuple(each._replace(rows=-1) for each in parts)
        size = sum(each.bytes for each in parts)
        return replace(bare, rows=rows, bytes=size, files=len(parts), parts=parts)


def _is_done(mark: TaskMark, commit_id: CommitId) -> bool:
    """Return whether the mark shows a commit as published; a task publishes in order."""
    return mark.published is not None and mark.published >= PublishedBatch.of(commit_id)


def _refuse_others(
    place: SinkLocation, ownership: TaskOwnership, mark: TaskMark, rows_of: RowsOf | None
) -> None:
    """Raise if a task's mark is of another log, or of a newer state of this one."""

    def to_use_older() -> str:
        since = written_since(
            place.root, ownership.task, ownership.last, rows_of or unknown_row_count
        )
        return (
            "to continue with this one, move what was written since the copy "
            f"({since}: part-{escape_name(ownership.task)}-*) out of the folder, since it is read "
            f"again and would be there twice, and {place.adopt_remedy}"
        )

    if mark.published is not None:
        shown, remedy = str(place.root), place.adopt_remedy
        refuse_other_log(ownership, mark.published, shown, remedy, to_use_older)
    is_copy = mark.log != ownership.log and marks.runs_here(mark.process)
    if is_copy or marks.is_intruder(mark, ownership.token):
        raise _intruded(place, ownership.task, ownership.token, mark)


def _intruded(place: SinkLocation, task: Resource, token: Token, mark: TaskMark) -> SinkBroken:
    return SinkBroken(
        f"{task} also writes to {place.root} from another log: process {mark.process} has token "
        f"{mark.token}, which this log, at token {token}, has not given. Nothing more was "
        "written. Stop that node, or, after it is gone and its files are dealt with, "
        f"{place.adopt_remedy}"
    )


def explain_spark_error(root: Path, error: Exception) -> SinkAway | BadInput | None:
    """Return the sink's error behind the error of a Spark job; None: the sink did not cause it.

    A full disk of Spark's own temporary files is waited for like that of a sink.
    """
    text = failure_text(error) or ""
    if NULL_FOLDER in text and "already exists" in text:
        return BadInput(f"a column of {keys.SINK_PARTITION_BY} {_LIKE_NULL}")
    names = text.split("/") if _NO_FOLDER in text else []
    if any(len(each.encode()) > _LONGEST_NAME or "\0" in each for each in names):
        why = "has a NUL, so it cannot" if "\0" in text else "is too long to"
        return RowsRefused(f"a value of `{keys.SINK_PARTITION_BY}` {why} name a folder")
    if any(each in text for each in _FULL_WORDS):
        return SinkFull(_TEMPORARY) if _is_of_temporary_files(str(error)) else sink_full(root)
    found = next((each for each in _AWAY_WORDS if each in text), "")
    return SinkAway(f"{root}: {found.lower()}") if found else None


def explain_lost_files(root: Path, error: Exception) -> SinkAway | None:
    """Return the error of staged files that vanished during a job; None: it is another.

    The root itself must have been found there.
    """
    text = str(error) if isinstance(error, OSError) else failure_text(error) or ""
    if STAGING not in text or not any(each in text for each in _GONE_WORDS):
        return None
    return SinkAway(
        f"files of a batch vanished from {root}/{STAGING} while Spark wrote them. Nothing of the "
        f"batch counts, and it is written again. Keep whatever cleans up away from "
        f"{root}/{STAGING}"
    )


def _is_of_temporary_files(trace: str) -> bool:
    """Return whether rows were sorted or shuffled, and not written to the sink."""
    is_in_task = "Job aborted due to stage failure" in trace
    return "spill()" in trace or (is_in_task and "TASK_WRITE_FAILED" not in trace)
