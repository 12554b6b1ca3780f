# pyright: basic
"""A folder of files as a sink: staged by one Spark job, published by renames."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as papq
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ......events.commits import CommitId, Manifest
from ......events.model import Resource, Token
from ....spark.failures import failure_text
from ....spark.sessions import runs_elsewhere
from ....spi.errors import SinkAway, SinkBroken
from ....spi.rows import ArrowSchema
from ....spi.sink import Sink, Tenure
from ...marks import PublishedBatch, is_ahead
from . import marks, staging
from .columns import aligned, fitted
from .lost_texts import LostTexts, refuse_bytes
from .marks import SinkClaim, TaskMark
from .publishing import (
    PartsMissing,
    parts_of,
    publish,
    publish_what_is_left,
    say_nothing_of_rows,
)
from .root import OpenRoot, SinkLocation, opened, told_by_spark
from .small import SmallBatches
from .writing import WriteFormat

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class FileSink(Sink["DataFrame"]):
    """Appends batches to a folder on a file system that the worker and all executors see."""

    def __init__(
        self,
        place: SinkLocation,
        form: WriteFormat,
        warn: Callable[[str], None],
        *,
        may_evolve: bool = False,
    ) -> None:
        self._place = place
        self._form = form
        self._warn = warn
        self._may_evolve = may_evolve
        self._columns: tuple[StructType, StructType] | None = None
        """Those of the rows that come, and those of all files; None: nobody told them."""
        self._mark: TaskMark | None = None
        """The mark as it was last left; None: not acquired, only to publish what another staged."""
        is_plain = self.counts_rows and not (form.partition_by or form.options)
        self._lost = LostTexts(form.partition_by, warn)
        self._small = SmallBatches(form.file_bytes if is_plain else 0)

    @property
    def counts_rows(self) -> bool:
        """Parquet files say how many rows they hold."""
        return self._form.name == "parquet"

    def acquire(self, tenure: Tenure) -> None:
        """Look whether the sink is this log's, and leave a mark that it is this task's."""
        claim = self._place.claim
        if claim is None:
            raise SinkAway(f"{self._place.connector} has not claimed {self._place.root} yet")
        with opened(self._place) as root:
            before = marks.read_mark(root.path, tenure.task, claim.writer)
            published = None
            if before is not None and before.claim == claim.writer:
                _refuse_others(self._place, tenure, before)
                published = before.published
            process = marks.this_process()
            mark = TaskMark(claim.writer, tenure.token, process, tenure.log, published)
            if mark != before:
                marks.write_mark(root.path, tenure.task, mark)
            marks.remove_older_marks(root.path, tenure.task, tenure.token)
        self._mark = mark

    def prepare(self, schema: ArrowSchema) -> None:
        """Hold the columns of rows against those of the files that are there."""
        found = from_arrow_schema(schema, prefer_timestamp_ntz=True)
        refuse_bytes(found, self._form.partition_by)
        with opened(self._place) as root:
            columns = fitted(root.path, self._place, found, may_evolve=self._may_evolve)
        self._columns = found, columns

    def stage(self, rows: "DataFrame", commit_id: CommitId, input_bytes: int) -> Manifest:
        """Write a batch to its staging folder, in few files, and flush it to the disk."""
        with opened(self._place) as root:
            self._refuse_intruders(root, commit_id)
            rows = self._lost.watch(self._aligned(root, rows))
            where = staging.batch_folder(commit_id)
            # Elsewhere there is but its name, which leads to another folder once a mount went away.
            elsewhere = runs_elsewhere(rows.sparkSession)
            written = (self._place.root if elsewhere else root.path) / where
            is_small = not elsewhere and self._small.take(rows, input_bytes)
            if is_small:
                self._small.write(rows, written)
            else:
                self._write(rows, written, input_bytes, elsewhere=elsewhere)
            if not (root.path / where).is_dir():
                raise SinkAway(f"{self._place.root} does not show what Spark has written there")
            staging.make_durable(root.path, root.path / where)
            manifest = self._manifest(root.path, where, commit_id)
            self._lost.tell()
            if not is_small:
                self._small.learn(manifest, input_bytes)
            if not root.still_is():
                raise SinkAway(f"{self._place.root} went away while a batch was written")
            return manifest

    def publish(self, manifest: Manifest, commit_id: CommitId, sequence: int) -> None:
        """Rename the batch's files into place, and say in the sink that it is published."""
        del sequence
        place = self._place
        if Path(manifest.root) != place.root:  # the sink of an earlier config
            claim = SinkClaim(manifest.claim, 0) if manifest.claim else None
            place = replace(place, root=Path(manifest.root), claim=claim)
        with opened(place) as root:
            self._refuse_intruders(root, commit_id)
            task = Resource(commit_id.connector, commit_id.task)
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
        with suppress(SinkAway, SinkBroken), opened(self._place) as root:
            staging.discard(root.path, commit_id)

    def sweep(self, resource: Resource, token: Token) -> None:
        """Remove the staging folders of this token and older ones."""
        with opened(self._place) as root:
            staging.sweep(root.path, resource, token)

    def _aligned(self, root: OpenRoot, rows: "DataFrame") -> "DataFrame":
        """Return rows with the columns of all files, which another task may have added to since."""
        if self._columns is None:
            return rows
        found, last = self._columns
        columns = fitted(root.path, self._place, found, last=last, may_evolve=self._may_evolve)
        self._columns = found, columns
        return aligned(rows, found, columns)

    def _write(self, rows: "DataFrame", where: Path, input_bytes: int, *, elsewhere: bool) -> None:
        """Have Spark write a batch into a folder, which other machines make by themselves."""
        if not elsewhere:
            staging.make_batch_folder(where)
        try:
            self._form.write(rows, where, input_bytes, is_there=not elsewhere)
        except Exception as error:
            told = told_by_spark(self._place.root, failure_text(error) or "")
            if told is not None:
                raise told from error
            with opened(self._place):
                pass  # it is there, so that is not why
            raise

    def _put_in_place(self, root: OpenRoot, manifest: Manifest, commit_id: CommitId) -> None:
        place = root.place
        rows_of = _rows_of if self.counts_rows else say_nothing_of_rows
        try:
            publish(root.path, manifest, commit_id, rows_of)
        except PartsMissing as missing:
            claim = place.claim
            if claim and claim.is_adopted and claim.writer != manifest.claim:
                self._warn(f"{missing}; the sink was adopted as it is, so it goes on without them")
                publish_what_is_left(root.path, manifest, commit_id, rows_of)
                return
            raise SinkBroken(
                f"{missing}. Nothing was moved or removed. Bring them back, or, to go on without "
                f"their rows, {place.adopting}"
            ) from None

    def _refuse_intruders(self, root: OpenRoot, commit_id: CommitId) -> None:
        """Raise if another log, or another process under a later token, has acquired the sink."""
        claim = root.place.claim
        if self._mark is None or claim is None or root.place is not self._place:
            return
        task, own = Resource(commit_id.connector, commit_id.task), self._mark
        mark = marks.read_mark(root.path, task, own.claim)
        if mark is None or mark.claim != own.claim:
            raise SinkAway(f"{root.place.root} has another mark of {task} than was left there")
        if marks.intruder(mark, own.token):
            raise _intruded(root.place, task, own.token, mark)
        if own.published and marks.is_behind(mark, own.published):
            raise _older(root.place, task, mark, own.published)

    def _manifest(self, root: Path, where: str, commit_id: CommitId) -> Manifest:
        claim = self._place.claim.writer if self._place.claim else ""
        bare = Manifest(str(self._place.root), where, -1, 0, 0, claim=claim)
        rows_of = _rows_of if self.counts_rows else say_nothing_of_rows
        parts = parts_of(root, bare, commit_id, rows_of)
        rows = sum(each.rows for each in parts) if self.counts_rows else -1
        size = sum(each.bytes for each in parts)
        return replace(bare, rows=rows, bytes=size, files=len(parts), parts=parts)


def _rows_of(file: Path) -> int:
    return int(papq.read_metadata(file).num_rows)


def _is_done(mark: TaskMark, commit_id: CommitId) -> bool:
    """Tell whether a commit is known to be published: those of a task are so in their order."""
    return mark.published is not None and mark.published >= PublishedBatch.of(commit_id)


def _older(
    place: SinkLocation, task: Resource, mark: TaskMark, known: PublishedBatch
) -> SinkBroken:
    return SinkBroken(
        f"{place.root} is older than this log: {known} of {task} was published there, and it "
        f"knows of none after {mark.published}. Nothing more is written to it. Bring the newer "
        f"folder back, or, to go on without what is missing, {place.adopting}"
    )


def _refuse_others(place: SinkLocation, tenure: Tenure, mark: TaskMark) -> None:
    """Raise if a task's mark was left by a log that is not this one, or newer than it."""
    if mark.published is not None and is_ahead(mark.published, tenure.last):
        raise _newer(place, tenure, mark.published)
    known = PublishedBatch.of(tenure.published) if tenure.published else None
    if known and marks.is_behind(mark, known):
        raise _older(place, tenure.task, mark, known)
    is_copy = mark.log != tenure.log and marks.runs_here(mark.process)
    if is_copy or marks.intruder(mark, tenure.token):
        raise _intruded(place, tenure.task, tenure.token, mark)


def _newer(place: SinkLocation, tenure: Tenure, marked: PublishedBatch) -> SinkBroken:
    known = f"none after {PublishedBatch.of(tenure.last)}" if tenure.last else "none of them"
    return SinkBroken(
        f"{place.root} is newer than this log: it holds {tenure.task} up to {marked}, "
        f"and the log knows of {known}, so it is an older one, restored or copied. "
        "Nothing was written or removed. Go on with the newer log, or, to go on with this one, "
        f"move the files that were written since it was copied out of the folder, since their "
        f"rows are read again (part-{staging.escaped(tenure.task)}-*), and {place.adopting}"
    )


def _intruded(place: SinkLocation, task: Resource, token: Token, mark: TaskMark) -> SinkBroken:
    return SinkBroken(
        f"{task} writes to {place.root} from another log as well: process {mark.process} does so "
        f"under token {mark.token}, which this log, at token {token}, has not given. Nothing more "
        "was written. End that node, or, once it is gone and what it wrote is dealt with, "
        f"{place.adopting}"
    )
