# pyright: basic
"""The files sink: one Spark job stages a batch in the folder, renames publish it.

All files have the same columns. A batch that is small, or that Arrow reads, is written by Arrow: in
this process, or in tasks of Spark. What it shares with other sinks of a folder is in `FolderSink`.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ......events.commits import CommitId, Manifest
from ....batches.counting import RowCount
from ....engines.failures import failure_text
from ....engines.sessions import cores_of, runs_elsewhere
from ....spi.errors import BadInput, RowsRefused, SinkAway, SinkFull
from ....spi.rows import ArrowSchema, ArrowTable, PartedRows
from ....spi.sink import StagedParts
from .. import keys
from ..sink_folder import staging
from ..sink_folder.root import OpenRoot, SinkLocation, open_root, sink_full
from ..sink_folder.staging import STAGING
from .arrow_parts import write_parts, write_table
from .columns import align_columns, are_aligned, columns_by_arrow, reconcile_columns
from .folder_sink import LONGEST_NAME, FolderSink
from .null_folder import NULL_FOLDER, NullFolderCounter, refuse_bytes
from .row_counts import counter_of
from .writing import SmallBatches, WriteFormat, WrittenRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_LIKE_NULL: Final = f"""has the text {NULL_FOLDER}, and also null: both would be in one \
folder. Nothing of the batch was written: change the text by a transform"""
_NO_FOLDER: Final = "Mkdirs failed to create"
_FULL_WORDS: Final = ("No space left on device", "Disk quota exceeded")
_TEMPORARY: Final = """no space left for Spark's temporary files, which lie in data.dir, or in \
spark.local.dir of an executor; the task retries the batch until there is"""
_GONE_WORDS: Final = ("No such file or directory", "does not exist", "FileNotFound")
_AWAY_WORDS: Final = ("Read-only file system", "Stale file handle", "Input/output error")


class FileSink(FolderSink["DataFrame"]):
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
        is_parquet = form.name == "parquet"
        super().__init__(place, warn, counter_of(form), names_rows=is_parquet)
        self._form = form
        self._may_evolve = may_evolve
        self._count = count
        self._columns: tuple[StructType, StructType] | None = None
        """The columns of the rows, and the columns of all files; None: `prepare` was not called."""
        is_plain = is_parquet and not (form.partition_by or form.options)
        self._lost = NullFolderCounter(form.partition_by, warn)
        """Counts texts that readers will take for null."""
        self._small = SmallBatches(form.file_bytes if is_plain else 0, spark_settings)
        """Writes small batches without Spark."""

    @property
    def takes_tables(self) -> bool:
        """Whether the files of a table would be as Spark's are, as far as known without it."""
        return self._small.takes_tables

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


def explain_spark_error(root: Path, error: Exception) -> SinkAway | BadInput | None:
    """Return the sink's error behind the error of a Spark job; None: the sink did not cause it.

    A full disk of Spark's own temporary files is waited for like that of a sink.
    """
    text = failure_text(error) or ""
    if NULL_FOLDER in text and "already exists" in text:
        return BadInput(f"a column of {keys.SINK_PARTITION_BY} {_LIKE_NULL}")
    names = text.split("/") if _NO_FOLDER in text else []
    if any(len(each.encode()) > LONGEST_NAME or "\0" in each for each in names):
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
