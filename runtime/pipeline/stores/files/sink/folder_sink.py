# pyright: basic
"""Sinks of a folder: the mark of a task in it, and how its batches are published.

A task that begins compares its mark in the folder with the log (`acquire`): a folder or a log that
was restored from a backup is refused, and so is another process that writes as the same task. Then
it writes a mark of its own. Each batch is staged below `_fairlead`, and is durable before its
manifest leaves. `publish` moves the files to names that depend on the commit alone, so that any
process can do it, again or for another one; the mark notes the batch afterwards. Before each batch
the mark is read again: a newer one ends the task.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from ......events.commits import CommitId, Manifest
from ......events.model import Resource, Token
from ....spi.errors import SinkAway, SinkBroken
from ....spi.sink import Rows, Sink, TaskOwnership
from ...marks import PublishedBatch, is_behind, older_sink, refuse_other_log
from ...staging import escape_name, task_of
from .. import keys
from ..sink_folder import marks, staging
from ..sink_folder.marks import SinkClaim, TaskMark
from ..sink_folder.publishing import (
    PartsMissing,
    RowsOf,
    parts_of,
    publish,
    publish_rest,
    unknown_row_count,
    written_since,
)
from ..sink_folder.root import OpenRoot, SinkLocation, open_root
from .row_counts import whole_files
from .writing import WrittenRows

LONGEST_NAME: Final = 255
"""The most bytes in the name of a folder."""


class FolderSink(Sink[Rows]):
    """Appends batches to a folder on a file system that all workers share."""

    def __init__(
        self,
        place: SinkLocation,
        warn: Callable[[str], None],
        rows_in: RowsOf | None,
        *,
        names_rows: bool,
    ) -> None:
        """`rows_in` counts the rows of a written file; None: its format does not tell them.

        `names_rows`: a manifest names the rows of each file, which are in its footer.
        """
        self._place = place
        self._warn = warn
        self._rows_in = rows_in
        self._names_rows = names_rows
        self._mark: TaskMark | None = None
        """The last mark that was written; None: not acquired, only used to publish."""

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
