"""A folder of files as a source: each file is a source partition, read once, as a whole.

Its offset, once it was read, is the size and the time of change that it then had. A file that
changes later is not read again; that is told once.
"""

import re
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from ...events.model import Advance, Document, Lag, identity
from .formats import ReadFormat
from .listing import Found, look, walk
from .shares import Share, bucket_of
from .spark_paths import literal
from .spi import BadInput, Context, Limit, Plan, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BLAMED = re.compile(r"FAILED_READ_FILE\S* [^\n]*?file (?:file:(?://)?)?(?P<path>/\S+?)\.?\s")
_HEADER = re.compile(
    r"(?P<why>CSV header does not conform.*?)CSV file: (?:file:(?://)?)?(?P<path>/\S+)", re.S
)
_CAUSE = re.compile(r"^Caused by: \S+?: (?P<why>.+)$", re.M)
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w+")


@dataclass(frozen=True, slots=True)
class Folder:
    """Which files of which folder are one task's."""

    root: Path
    glob: str
    share: Share
    min_age_ms: int = 0


class FileSource(Source[Found]):
    """The files of one task's share of a folder, oldest first."""

    def __init__(self, folder: Folder, form: ReadFormat, context: Context) -> None:
        self._folder = folder
        self._form = form
        self._context = context
        self._pending: deque[Found] = deque()
        self._pending_bytes = 0
        self._warned: set[Found] = set()

    def plan(self, offsets: Mapping[str, Document], limit: Limit) -> Plan[Found]:
        """Take the next files; the folder is looked through when none are left."""
        if not self._pending:
            self._pending.extend(self._scan(offsets))
            self._pending_bytes = sum(each.size for each in self._pending)
        taken: list[Found] = []
        size = 0
        while self._pending and len(taken) < limit.files:
            found = look(self._folder.root, self._pending[0].path)
            if found and taken and size + found.size > limit.bytes:
                break
            self._pending_bytes -= self._pending.popleft().size
            if found and found.size:
                taken.append(found)
                size += found.size
        advances = tuple(_advance(found) for found in taken)
        rows = self._form.count([self._folder.root / each.path for each in taken])
        lag = Lag(len(self._pending), self._pending_bytes)
        return Plan(tuple(taken), advances, size, rows, bool(self._pending), lag)

    def read(self, spark: "SparkSession", ranges: Sequence[Found]) -> "DataFrame":
        """Describe the rows of some files."""
        self.verify(ranges)
        for each in ranges:
            if ":" in each.path.rpartition("/")[2]:
                file = self._folder.root / each.path
                raise BadInput(f"{file}: Spark reads no file with a colon in its name; rename it")
        return self._form.load(spark, [literal(self._folder.root / each.path) for each in ranges])

    def verify(self, ranges: Sequence[Found]) -> None:
        """Refuse a batch whose files are not what they were when it was planned."""
        for planned in ranges:
            file = self._folder.root / planned.path
            found = look(self._folder.root, planned.path)
            if found is None:
                raise BadInput(f"{file}: gone since the batch was planned")
            if found != planned:
                raise BadInput(
                    f"{file}: changed while it was read ({planned.size} bytes before, "
                    f"{found.size} now); move files in when they are complete, "
                    "or set `source.min.age.ms`"
                )

    def blame(self, error: Exception) -> BadInput | None:
        """Name the file and the reason, if an error of Spark's is about a file."""
        text = str(error)
        header = _HEADER.search(text)
        if header:
            why = " ".join(header["why"].split())
            return BadInput(f"{unquote(header['path'])}: {why}")
        blamed = _BLAMED.search(text)
        if not blamed:
            return None
        causes = [_SQLSTATE.sub("", each).strip() for each in _CAUSE.findall(text)]
        why = "; ".join(dict.fromkeys(causes)) or "it cannot be read"
        return BadInput(f"{unquote(blamed['path'])}: {why}")

    def _scan(self, offsets: Mapping[str, Document]) -> Sequence[Found]:
        newest = time.time() * 1000 - self._folder.min_age_ms
        unread: list[Found] = []
        try:
            for found in walk(self._folder.root, self._folder.glob):
                if bucket_of(found.path) not in self._folder.share:
                    continue
                offset = offsets.get(identity({"path": found.path}))
                if offset is not None:
                    self._compare(found, offset)
                elif not self._folder.min_age_ms or found.modified_ms <= newest:
                    unread.append(found)
        except OSError as error:
            raise BadInput(f"{error.filename}: {error.strerror}") from error
        return sorted(unread, key=lambda each: (each.modified_ms, each.path))

    def _compare(self, found: Found, offset: Document) -> None:
        if dict(offset) == _offset(found) or found in self._warned:
            return
        self._warned.add(found)
        self._context.warn(
            f"{self._folder.root / found.path} changed after it was read "
            f"({offset.get('size')} bytes then, {found.size} now): it is not read again; "
            "to read it anew, stop the connector and remove the file's offset"
        )


def _offset(found: Found) -> dict[str, int]:
    return {"size": found.size, "modified_ms": found.modified_ms}


def _advance(found: Found) -> Advance:
    return Advance({"path": found.path}, None, _offset(found))
