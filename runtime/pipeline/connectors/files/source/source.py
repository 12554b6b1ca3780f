"""A folder of files as a source: each file is a source partition, read once, as a whole.

A file that changes after it was read is not read again; the task says so as long as it is so.
"""

import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from ......events.commits import Advance, Document, Lag
from ....spi.context import Context
from ....spi.errors import BadInput, NotReady, SourceAway
from ....spi.rows import Rejects
from ....spi.source import BatchPlan, Limit, Source
from ...evolution.policy import ADD_COLUMNS, EVOLUTION
from .. import keys
from ..arrivals import Arrivals
from .file_index import FileIndex, Ripeness
from .formats import ReadFormat
from .listing import (
    REMEDY,
    Skip,
    SourceFile,
    look,
    some,
    told_of_changed,
    told_of_incomplete,
    told_of_skipped,
)
from .offsets import Folder, offset_of, partition_of
from .reading import Reading
from .shares import bucket_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

UNLIMITED: Final = Limit(sys.maxsize, sys.maxsize, sys.maxsize)


class FileSource(Source[SourceFile]):
    """The files of one task's share of a folder, oldest first."""

    def __init__(
        self, folder: Folder, form: ReadFormat, context: Context, at_most: Limit = UNLIMITED
    ) -> None:
        self._folder = folder
        self._at_most = at_most
        """What a batch may hold whatever the task says."""
        self._form = form
        self._context = context
        arrivals = context.shared.get(Arrivals, Arrivals)
        self._index = context.shared.get(
            (FileIndex, folder.root, folder.glob),
            lambda: FileIndex(folder.root, folder.glob, arrivals),
        )
        self._index.tell(self.wake)
        self._ripeness = Ripeness(folder.root, folder.min_age_ms, self._index.is_whole)
        self._version = 0
        """How far the news of the index were taken up."""
        self._unread: dict[str, SourceFile] = {}
        """The files that have no offset, by path, those planned left out."""
        self._changed: dict[str, tuple[SourceFile, Document]] = {}
        """The files that differ from what was read, by path, each with its offset."""
        self._planned: Sequence[SourceFile] = ()
        """What the last batch holds: it counts once its offsets are there."""
        self._pending: deque[SourceFile] = deque()
        """The files that are ripe to be read, oldest first; looked for again when none is left."""
        self._pending_bytes = 0
        """The size of all pending files together."""
        self._warned: set[str | tuple[str, Skip | str]] = set()
        """Paths that changed, and paths that are skipped or waited for: each is logged once."""
        self._remark = ""
        """What is strange about the folder, as every plan tells it."""
        self._grown = 0
        """How many bytes more than were read the remark tells of."""
        self._reading = Reading(folder.root, form, context)
        self._limit = UNLIMITED
        """What the last batch could hold."""

    def plan(self, offsets: Mapping[str, Document], limit: Limit) -> BatchPlan[SourceFile]:
        """Take the next files; the folder is looked through when none are left."""
        most_files = min(limit.ranges, self._at_most.ranges)
        most_bytes = min(limit.bytes, self._at_most.bytes)
        self._limit = Limit(limit.rows, most_bytes, most_files)
        if not self._pending:
            self._pending.extend(self._scan(offsets))
            self._pending_bytes = sum(each.size for each in self._pending)
        taken: list[SourceFile] = []
        size = 0
        while self._pending and len(taken) < most_files:
            planned = self._pending[0]
            found = look(self._folder.root, planned.path)
            is_full = found and size + found.size > most_bytes
            if taken and (is_full or self._is_put_off(planned)):
                break
            self._pending_bytes -= self._pending.popleft().size
            if found and found.size and self._ripeness.is_ripe(planned, found):
                taken.append(found)
                size += found.size
                self._unread.pop(found.path, None)
        self._planned = taken
        advances = tuple(self._advance(found) for found in taken)
        rows = self._form.count([self._folder.root / each.path for each in taken])
        lag = Lag(len(self._pending), self._pending_bytes)
        told = (self._remark, *self._told_of_incomplete(), self._told_of_columns())
        remark = "; ".join(filter(None, told))
        return BatchPlan(tuple(taken), advances, size, rows, bool(self._pending), lag, remark)

    def read(self, spark: "SparkSession", ranges: Sequence[SourceFile]) -> "DataFrame":
        """Describe the rows of some files; raises `Unreadable` for those that have none."""
        self.verify(ranges)
        known = len(self._reading.left_out)
        frame = self._reading.read(spark, ranges)
        if len(self._reading.left_out) > known:
            self._context.warn(f"{self._folder.root}: {self._told_of_columns()}")
        self._reading.look_ahead([*self._likely_next()])
        return frame

    def wake(self) -> None:
        """Have the task plan again at once: a file was moved in."""
        self._context.wake()

    def rejects(self) -> Sequence[Rejects]:
        """Return the rows read last that do not fit the schema."""
        return self._reading.rejects

    def verify(self, ranges: Sequence[SourceFile]) -> None:
        """Refuse a batch whose files are not what they were when it was planned."""
        for planned in ranges:
            file = self._folder.root / planned.path
            found = look(self._folder.root, planned.path)
            if found is None:
                raise _passing(f"{file}: gone, or behind a link, since the batch was planned")
            if found != planned:
                raise _passing(
                    f"{file}: changed while it was read ({planned.size} bytes before, "
                    f"{found.size} now); move files in when they are complete, "
                    "or set `source.min.age.ms`"
                )

    def blame(self, error: Exception) -> BadInput | None:
        """Name the file and the reason, if an error of Spark's is about a file."""
        return self._reading.blame(error)

    def narrow(self, error: Exception) -> bool:
        """Read files one by one, if an error is of several that were read as one."""
        return self._reading.narrow(error)

    def close(self) -> None:
        """Remove what was copied to be read."""
        self._reading.close()

    def _likely_next(self) -> Iterator[SourceFile]:
        """Yield the files that the next batch will hold, if it may hold as much as the last."""
        size = 0
        for each in islice(self._pending, self._limit.ranges):
            if size and size + each.size > self._limit.bytes:
                return
            size += each.size
            yield each

    def _told_of_incomplete(self) -> Iterator[str]:
        """Yield what is told of files that are waited for; once of each in the log as well."""
        held = self._ripeness.incomplete
        new = [path for path in held if (path, "incomplete") not in self._warned]
        self._warned |= {(path, "incomplete") for path in new}
        for told in told_of_incomplete(new):
            self._context.warn(f"{self._folder.root}: {told}")
        yield from told_of_incomplete(held)

    def _told_of_columns(self) -> str:
        """Say which columns of the files read so far are left out."""
        left_out = list(self._reading.left_out)
        if not left_out:
            return ""
        return (
            f"{len(left_out)} columns of its files are not in {keys.SOURCE_SCHEMA}, and left out "
            f"({some(left_out)}): name them there, or set {EVOLUTION}={ADD_COLUMNS}"
        )

    def _scan(self, offsets: Mapping[str, Document]) -> Sequence[SourceFile]:
        """Look at the folder: return what is ripe to be read, and take up a new remark."""
        folder, index = self._folder, self._index
        try:
            index.refresh()
        except NotReady as missing:
            raise SourceAway(f"{missing}: is it not mounted?") from None
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise SourceAway(f"{error.filename or folder.root}: {why}") from error
        news = index.since(self._version)
        self._version = news.version
        if news.is_all:
            self._unread.clear()
            self._changed.clear()
        for path, found in news.files.items():
            if bucket_of(path) in folder.share:
                self._take_up(path, found, offsets)
        for found in self._planned:  # a batch that did not count is planned again
            self._take_up(found.path, look(folder.root, found.path), offsets)
        self._planned = ()
        skipped = {
            path: why for path, why in index.skipped.items() if bucket_of(path) in folder.share
        }
        changed = dict(self._changed.values())
        self._warn(changed, skipped)
        self._measure(changed)
        told = (*told_of_changed(changed, self._grown), *told_of_skipped(skipped))
        self._remark = "; ".join(told)
        now, ripe = self._ripeness.look(self._unread.values())
        self._unread |= {each.path: each for each in now}
        return sorted(ripe, key=lambda each: (self._is_put_off(each), each.modified_ms, each.path))

    def _is_put_off(self, found: SourceFile) -> bool:
        """Tell whether a file could not be read as it is now: it is read last, and alone."""
        return self._context.put_off.get(found.path) == found

    def _take_up(
        self, path: str, found: SourceFile | None, offsets: Mapping[str, Document]
    ) -> None:
        """Put a file where it belongs by its offset; None: it is gone."""
        self._unread.pop(path, None)
        self._changed.pop(path, None)
        if found is None or not found.size:
            return
        offset = self._folder.offset(offsets, found)
        if offset is None:
            self._unread[path] = found
        elif dict(offset) != offset_of(found):
            self._changed[path] = found, offset

    def _measure(self, changed: Mapping[SourceFile, Document]) -> None:
        """Take up how much more there is now than was read.

        Of a file that keeps growing that is told anew when it has doubled: each remark that
        differs from the one before is written to the group's log.
        """
        grown = sum(max(0, each.size - int(was["size"] or 0)) for each, was in changed.items())
        if not self._grown <= grown < 2 * self._grown:
            self._grown = grown

    def _warn(self, changed: Mapping[SourceFile, Document], skipped: Mapping[str, Skip]) -> None:
        """Write to the log, once each, what the remark tells as long as it is so."""
        for found, offset in changed.items():
            if found.path not in self._warned:
                self._warned.add(found.path)
                self._context.warn(
                    f"{self._folder.root / found.path} changed after it was read "
                    f"({offset.get('size')} bytes then, {found.size} now): it is not read again; "
                    f"{REMEDY}"
                )
        new = {path: why for path, why in skipped.items() if (path, why) not in self._warned}
        self._warned |= set(new.items())
        for told in told_of_skipped(new):
            self._context.warn(f"{self._folder.root}: {told}")

    def _advance(self, found: SourceFile) -> Advance:
        return Advance(partition_of(self._folder.root, found.path), None, offset_of(found))


def _passing(text: str) -> BadInput:
    """Return the error for a batch that the next attempt plans anew, without what it met."""
    error = BadInput(text)
    error.is_put_off = True
    return error
