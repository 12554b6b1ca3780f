"""The files source: each file is a source partition, and is read once, as a whole.

A file that changes after it was read is not read again; a remark in the status reports it.

A plan takes the oldest complete files, up to the limits of the task and of the config. After a
batch that was a table in memory, the next one is no larger than such a table may be.
"""

import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from ......events.commits import Advance, Document, Lag
from ....formats.evolution.policy import ADD_COLUMNS, EVOLUTION
from ....spi.context import Context
from ....spi.errors import BadInput, NotReady, SourceAway
from ....spi.rows import ArrowTable, LaneCount, PartedRows, Rejects
from ....spi.source import BatchPlan, Limit, Source
from .. import keys
from .file_index import QuietPeriod, shared_index
from .file_survey import MOST_HELD
from .formats import ReadFormat
from .listing import (
    REMEDY,
    EmptiedFolder,
    Skip,
    SourceFile,
    away_of,
    changed_remarks,
    incomplete_remarks,
    list_some,
    skipped_remarks,
    stat_file,
)
from .offsets import Folder, bucket_of, offset_of, partition_of
from .reading import Reading

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

UNLIMITED: Final = Limit(sys.maxsize, sys.maxsize, sys.maxsize)


class FileSource(Source[SourceFile]):
    """Reads one task's part of the files in a folder, oldest first."""

    def __init__(
        self, folder: Folder, form: ReadFormat, context: Context, at_most: Limit = UNLIMITED
    ) -> None:
        self._folder = folder
        self._at_most = at_most
        """The config's limit of a batch, beside the task's."""
        self._form = form
        self._context = context
        self._index = shared_index(folder.root, folder.glob, context)
        self._index.wake_on_arrival(self.wake)
        self._emptied = EmptiedFolder(folder.root, context.warn)
        self._quiet_period = QuietPeriod(folder.root, folder.min_age_ms, self._index.was_moved_in)
        self._version = 0
        """The version of the index up to which changes were applied."""
        self._unread: dict[str, SourceFile] = {}
        """The files without an offset, by path, except planned ones."""
        self._changed: dict[str, tuple[SourceFile, Document]] = {}
        """The files that changed after they were read, by path, each with its offset."""
        self._planned: Sequence[SourceFile] = ()
        """The files of the last batch, which may not be committed yet."""
        self._pending: deque[SourceFile] = deque()
        """The complete files to read, oldest first; the folder is scanned when it is empty."""
        self._pending_bytes = 0
        """The total size of pending files."""
        self._warned: set[str | tuple[str, Skip | str]] = set()
        """The changed, skipped or incomplete paths that were logged: each is logged once."""
        self._remark = ""
        """The remark about the folder, for each plan."""
        self._grown = 0
        """The growth of changed files, in bytes, that the remark reports."""
        self._reading = Reading(folder.root, form, context)
        self._limit = UNLIMITED
        """The limit of the last batch."""

    def plan(self, offsets: Mapping[str, Document], limit: Limit) -> BatchPlan[SourceFile]:
        """Plan the next files; scans the folder when none are pending."""
        most_files = min(limit.ranges, self._at_most.ranges)
        most_held = MOST_HELD if self._reading.has_table else sys.maxsize
        most_bytes = min(limit.bytes, self._at_most.bytes, most_held)
        self._limit = Limit(limit.rows, most_bytes, most_files)
        if not self._pending:
            self._pending.extend(self._scan(offsets))
            self._pending_bytes = sum(each.size for each in self._pending)
        taken: list[SourceFile] = []
        size = 0
        while self._pending and len(taken) < most_files:
            planned = self._pending[0]
            present = self._stat(planned.path)
            is_full = present and size + present.size > most_bytes
            if taken and (is_full or not self._reading.deferred.fits(planned, taken)):
                break
            self._pending_bytes -= self._pending.popleft().size
            if present and present.size and self._quiet_period.is_complete(planned, present):
                taken.append(present)
                size += present.size
                self._unread.pop(present.path, None)
        self._planned = taken
        advances = tuple(self._advance(present) for present in taken)
        rows = self._form.count([self._folder.root / each.path for each in taken])
        lag = Lag(len(self._pending), self._pending_bytes)
        remarks = (self._remark, *self._incomplete_remarks(), *self._columns_remarks())
        remark = "; ".join(filter(None, remarks))
        return BatchPlan(tuple(taken), advances, size, rows, bool(self._pending), lag, remark)

    def read(
        self, spark: "SparkSession", ranges: Sequence[SourceFile]
    ) -> "DataFrame | ArrowTable | PartedRows":
        """Return the rows of files; raises `Unreadable` for unreadable ones."""
        self._verify_files(ranges)
        known = set(self._columns_remarks())
        rows = self._reading.read(spark, ranges)
        for remark in self._columns_remarks():
            if remark not in known:
                self._context.warn(f"{self._folder.root}: {remark}")
        self._reading.look_ahead([*self._likely_next()])
        return rows

    def wake(self) -> None:
        """Wake the task, since a file was moved in."""
        self._context.wake()

    def rejects(self) -> Sequence[Rejects]:
        """Return the bad rows of the last read."""
        return self._reading.rejects

    def lane_count(self) -> LaneCount:
        """Return how many files of the last read Arrow may read, and why not the others."""
        return self._reading.lanes.last

    def verify(self, ranges: Sequence[SourceFile]) -> None:
        """Raise `BadInput` if a file has changed since the batch was planned.

        Raises `SourceAway` if the folder leads elsewhere by now, where the connector may not read,
        and if a copy of a file was changed that Spark has read instead.
        """
        self._verify_files(ranges)
        self._reading.verify()

    def _verify_files(self, ranges: Sequence[SourceFile]) -> None:
        self._check_root()
        for planned in ranges:
            file = self._folder.root / planned.path
            present = self._stat(planned.path)
            if present is None:
                raise _passing(f"{file}: gone, or behind a link, since the batch was planned")
            if present != planned:
                raise _passing(
                    f"{file}: changed while it was read ({planned.size} bytes before, "
                    f"{present.size} now); move files in when they are complete, "
                    "or set `source.min.age.ms`"
                )

    def blame(self, error: Exception) -> BadInput | None:
        """Return `BadInput` with the file and the reason, if a file caused Spark's error."""
        return self._reading.blame(error)

    def defer(self, ranges: Sequence[SourceFile]) -> str:
        """Read the files of a failed batch in halves, a single one last; return their names."""
        self._reading.deferred.add(ranges)
        return list_some([str(self._folder.root / each.path) for each in ranges])

    def narrow(self, error: Exception) -> bool:
        """Return whether the files of a failed batch are to be read in another way."""
        return self._reading.narrow(error)

    def close(self) -> None:
        """Remove temporary files."""
        self._reading.close()

    def _stat(self, path: str) -> SourceFile | None:
        return stat_file(self._folder.root, path, is_confined=bool(self._context.reach.paths))

    def _check_root(self) -> None:
        if flaw := self._context.reach.flaw_in_path(str(self._folder.root)):
            raise SourceAway(f"{flaw}: its rows are not read")

    def _likely_next(self) -> Iterator[SourceFile]:
        """Yield the files of the next batch, if its limit is that of the last one."""
        size = 0
        for each in islice(self._pending, self._limit.ranges):
            if size and size + each.size > self._limit.bytes:
                return
            size += each.size
            yield each

    def _incomplete_remarks(self) -> Iterator[str]:
        """Yield the remark about incomplete files; log each file once."""
        held = self._quiet_period.incomplete
        new = [path for path in held if (path, "incomplete") not in self._warned]
        self._warned |= {(path, "incomplete") for path in new}
        for remark in incomplete_remarks(new):
            self._context.warn(f"{self._folder.root}: {remark}")
        yield from incomplete_remarks(held)

    def _columns_remarks(self) -> Iterator[str]:
        """Yield the remarks about columns that were left out, and folders that do not count."""
        if left_out := list(self._reading.left_out):
            yield (
                f"{len(left_out)} columns of its files are not in {keys.SOURCE_SCHEMA}, and left "
                f"out ({list_some(left_out)}): add them there, or set {EVOLUTION}={ADD_COLUMNS}"
            )
        if shadowed := list(self._reading.shadowed):
            yield (
                f"{len(shadowed)} columns that its folders name are in their files, too, and the "
                f"values of the files are taken ({list_some(shadowed)})"
            )

    def _scan(self, offsets: Mapping[str, Document]) -> Sequence[SourceFile]:
        """Scan the folder: return the complete files, and update the remark."""
        folder, index = self._folder, self._index
        self._check_root()
        try:
            index.refresh()
        except NotReady as missing:
            raise SourceAway(f"{missing}: is it not mounted?") from None
        except OSError as error:
            raise away_of(folder.root, error) from error
        new_files = index.since(self._version)
        self._version = new_files.version
        if new_files.is_all:
            self._unread.clear()
            self._changed.clear()
            self._reading.deferred.keep(new_files.files)
        for path, file in new_files.files.items():
            if bucket_of(path) in folder.share:
                self._classify(path, file, offsets)
        for file in self._planned:  # a batch that was not committed is planned again
            self._classify(file.path, self._stat(file.path), offsets)
        self._planned = ()
        skipped = {
            path: why for path, why in index.skipped.items() if bucket_of(path) in folder.share
        }
        changed = dict(self._changed.values())
        self._warn(changed, skipped)
        self._measure(changed)
        remarks = (
            self._emptied.remark(
                is_empty=index.is_empty(), was_read=lambda: folder.has_offset(offsets)
            ),
            *changed_remarks(changed, self._grown),
            *skipped_remarks(skipped),
        )
        self._remark = "; ".join(filter(None, remarks))
        now, ripe = self._quiet_period.look(self._unread.values())
        self._unread |= {each.path: each for each in now}
        turn = self._reading.deferred.turn
        return sorted(ripe, key=lambda each: (turn(each), each.modified_ms, each.path))

    def _classify(
        self, path: str, file: SourceFile | None, offsets: Mapping[str, Document]
    ) -> None:
        """Record a file as unread, changed or read, by its offset; None: it is gone."""
        self._unread.pop(path, None)
        self._changed.pop(path, None)
        if file is None or not file.size:
            self._reading.deferred.forget(path)
            return
        offset = self._folder.offset(offsets, file)
        if offset is None:
            self._unread[path] = file
            return
        self._reading.deferred.forget(path)
        if dict(offset) != offset_of(file):
            self._changed[path] = file, offset

    def _measure(self, changed: Mapping[SourceFile, Document]) -> None:
        """Update the growth of changed files.

        It changes only after the growth has doubled, since each new remark is a record in the
        group's log.
        """
        grown = sum(max(0, each.size - int(was["size"] or 0)) for each, was in changed.items())
        if not self._grown <= grown < 2 * self._grown:
            self._grown = grown

    def _warn(self, changed: Mapping[SourceFile, Document], skipped: Mapping[str, Skip]) -> None:
        """Log each changed or skipped file once."""
        for file, offset in changed.items():
            if file.path not in self._warned:
                self._warned.add(file.path)
                self._context.warn(
                    f"{self._folder.root / file.path} changed after it was read "
                    f"({offset.get('size')} bytes then, {file.size} now): it is not read again; "
                    f"{REMEDY}"
                )
        new = {path: why for path, why in skipped.items() if (path, why) not in self._warned}
        self._warned |= set(new.items())
        for remark in skipped_remarks(new):
            self._context.warn(f"{self._folder.root}: {remark}")

    def _advance(self, file: SourceFile) -> Advance:
        return Advance(partition_of(self._folder.root, file.path), None, offset_of(file))


def _passing(text: str) -> BadInput:
    """Return an error that the next attempt avoids, since it plans the batch again."""
    error = BadInput(text)
    error.is_deferred = True
    return error
