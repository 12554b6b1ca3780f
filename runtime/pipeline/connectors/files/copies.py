"""What Spark reads in place of files: copies, other names, and small files put together.

Spark needs some milliseconds for each file that it opens, whatever is in it: a thousand files of 84
KB take it three times as long as the same rows in a few. All text is looked through before anyway,
so where each line of a csv file is a record, the lines of small files become a few large ones. What
is wrong with a row is then told of a file that nobody knows: the batch is read again, file by file,
to tell whose it is.
"""

import os
import platform
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Final

from .....events.log.process import ProcessId, is_alive, process_of

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_PREFIX: Final = "fairlead-copies-"
"""What the names of folders begin with; they go on with the process that made them."""
_OWNER: Final = re.compile(rf"{_PREFIX}(?P<pid>\d+)@(?P<started>[^@]+)@(?P<host>.*)@[^@]*")
_FEWEST: Final = 8
"""So many small files are worth being put together."""
_LEAST_PART: Final = 4 << 20
"""What a core reads takes at least so many bytes, if there are any more."""


@dataclass(frozen=True, slots=True)
class Surveyed:
    """A file that Spark can read: where it lies, what ends its lines, what its header says.

    `quotes_nothing`: it may hold `""`, an empty text, but no number. An empty `header`: not known.
    """

    path: Path
    line_end: str = "\n"
    is_by_lines: bool = False
    """Whether each of its lines is a record: several may read it at once, from anywhere in it."""
    quotes_nothing: bool = False
    has_names: bool = False
    """Whether it may have texts of digits that say more than their number, `01234`."""
    header: tuple[str, ...] = ()
    columns: "StructType | None" = None
    """Those that it has, as far as anybody but the reader can tell; None: nobody can."""
    valueless: frozenset[str] = frozenset()
    nanos: frozenset[str] = frozenset()
    """Those that can hold no value, those of nanoseconds, in lower case: Spark reads neither."""
    text: bytes | None = field(default=None, repr=False)
    """All of it in UTF-8, if it is small and by lines; None: it is read where it lies."""


@dataclass(slots=True)
class Copies:
    """The copies of one batch's files, in a folder of their own, by the paths that Spark knows."""

    originals: dict[str, Path] = field(default_factory=dict[str, Path])
    merged: set[str] = field(default_factory=set[str])
    """The paths of those that hold the lines of several files."""
    _folder: str = ""

    def new(self, original: Path, within: str | None) -> Path:
        """Return where to copy a file to; `within` is where folders of copies are made."""
        copy = self._named(f"{len(self.originals)}.txt", within)
        self.originals[str(copy)] = original
        return copy

    def link(self, original: Path, within: str | None) -> Path:
        """Return another name of a file, which says how it is compressed as well."""
        suffix = original.suffix if ":" not in original.suffix else ""  # that is no packed file's
        link = self.new(original, within).with_suffix(suffix)
        link.symlink_to(original)
        self.originals[str(link)] = original
        return link

    def merge(self, files: Sequence[Surveyed], within: str | None) -> Path:
        """Write the lines of files whose headers are one, below that header; return where."""
        path = self._named(f"merged-{len(self.merged)}.txt", within)
        self.merged.add(str(path))
        with path.open("wb") as stream:
            stream.writelines(_lines(files))
        return path

    def clear(self) -> None:
        """Remove all copies."""
        if self._folder:
            rmtree(self._folder, ignore_errors=True)
        self.originals.clear()
        self.merged.clear()
        self._folder = ""

    def _named(self, name: str, within: str | None) -> Path:
        if not self._folder:
            folder = within or tempfile.gettempdir()
            _sweep(Path(folder))
            self._folder = tempfile.mkdtemp(prefix=_prefix_of(process_of(os.getpid())), dir=folder)
        return Path(self._folder, name)


def _prefix_of(process: ProcessId) -> str:
    """Return how the names of a process's folders begin, those of no other one."""
    return f"{_PREFIX}{process.pid}@{process.started.replace('/', '+')}@{platform.node()}@"


def _sweep(folder: Path) -> None:
    """Remove the copies of processes of this machine that are gone.

    A JVM that is shared outlives its workers, and a folder for what is temporary all of them. Such
    a folder may be shared by machines, or by containers: nobody knows who lives on another one.
    """
    for each in folder.glob(f"{_PREFIX}*"):
        made = _OWNER.fullmatch(each.name)
        if made and made["host"] == platform.node():
            owner = ProcessId(int(made["pid"]), made["started"].replace("+", "/"))
            if not is_alive(owner):
                rmtree(each, ignore_errors=True)


def put_together(
    files: Sequence[Surveyed], cores: int, copies: Copies, within: str | None
) -> list[Surveyed]:
    """Return what is to be read for some files: small ones that are alike become one for each core.

    Raises `OSError` if that cannot be written.
    """
    small = [each for each in files if each.text is not None]
    if len(small) < _FEWEST:
        return [replace(each, text=None) for each in files]
    alike: defaultdict[tuple[object, ...], list[Surveyed]] = defaultdict(list)
    for each in small:
        values = each.quotes_nothing, each.has_names
        alike[each.line_end, values, each.header, each.columns is None].append(each)
    total = sum(len(each.text or b"") for each in small)
    part = max(_LEAST_PART, -(-total // cores))
    return [
        *(each for each in files if each.text is None),
        *(
            replace(some[0], path=copies.merge(some, within), text=None)
            for group in alike.values()
            for some in _parts(group, part)
        ),
    ]


def _parts(files: Sequence[Surveyed], size: int) -> Iterator[Sequence[Surveyed]]:
    """Cut files into parts of about so many bytes."""
    part: list[Surveyed] = []
    held = 0
    for each in files:
        part.append(each)
        held += len(each.text or b"")
        if held >= size:
            yield part
            part, held = [], 0
    if part:
        yield part


def _lines(files: Sequence[Surveyed]) -> Iterator[bytes]:
    """Yield the header of the first of some files, if they have any, and the lines of all."""
    end = files[0].line_end.encode()
    for number, each in enumerate(files):
        text = each.text or b""
        if number and each.header:
            text = text.partition(end)[2]
        yield text
        if text and not text.endswith(end):
            yield end
