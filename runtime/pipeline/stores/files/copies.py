"""Temporary files that Spark reads instead of input files: copies, links, and merged small files.

Spark needs some milliseconds to open each file: a thousand files of 84 KB take three times as long
as the same rows in a few files. Each text file is scanned before anyway, so small csv files with
one record per line are merged into a few large ones. An error in a merged file does not name the
input file: the batch is then read again, file by file.
"""

import os
import platform
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from secrets import token_hex
from shutil import rmtree
from typing import TYPE_CHECKING, Any, Final

from .....events.log.process import ProcessId, is_alive, process_of
from ...batches.row_files import COPIES
from ...engines.spelling import path_to_read, path_to_write
from ...formats.csv.proof import CsvProof
from ...spi.errors import SourceAway
from ...spi.rows import ArrowTable
from .folders import FolderColumn

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_OWNER: Final = re.compile(
    rf"{re.escape(COPIES)}(?P<pid>\d+)@(?P<started>[^@]+)@(?P<host>.*)@[^@]*"
)
_FEWEST: Final = 8
"""The least number of small files to merge."""
_LEAST_PART: Final = 4 << 20
"""The least bytes in a merged file, if there are enough."""


@dataclass(frozen=True, slots=True)
class FileSurvey:
    """The result of scanning a file before Spark reads it."""

    path: Path
    """The file for Spark: the input file or a copy."""
    line_end: str = "\n"
    is_by_lines: bool = False
    """Whether each line is a record, so that Spark may split the file."""
    quotes_nothing: bool = False
    """Whether it may have `""`, an empty string, which is not a number."""
    is_odd: bool = False
    """Whether it may have texts that Spark's reader takes for other values (`odd_texts`)."""
    plain: "StructType | None" = None
    """The columns for which each record is plain (`csv.grammar`); None: it is not known to be."""
    header: tuple[str, ...] = ()
    """The names in the header; empty: unknown."""
    columns: "StructType | None" = None
    """Its columns; None: only Spark's reader can find them."""
    valueless: frozenset[str] = frozenset()
    """Parquet columns of type null, in lower case; Spark cannot read them."""
    converted: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The Arrow types of parquet columns that Spark reads as others, by names in lower case."""
    folders: tuple[FolderColumn, ...] = ()
    """The columns that its folders name, and that it has not itself."""
    shadowed: tuple[str, ...] = ()
    """The columns that its folders name, and that it has itself."""
    base: Path | None = None
    """The folder above these folders, where `path` is."""
    text: bytes | None = field(default=None, repr=False)
    """The whole text in UTF-8, if it is small and `is_by_lines`; None: Spark reads `path`."""
    proof: CsvProof | None = None
    """How Arrow reads it; None: only Spark may."""
    rows: ArrowTable | None = field(default=None, repr=False)
    """Its rows, which Arrow has read already; None: only Spark may."""


@dataclass(slots=True)
class Copies:
    """The temporary files of one batch, in one folder."""

    originals: dict[str, Path] = field(default_factory=dict[str, Path])
    """The input file of each copy or link, by the path that Spark reads."""
    merged: set[str] = field(default_factory=set[str])
    """The paths of merged files."""
    _folder: str = ""
    """The folder of all copies; empty: there are none yet."""
    _written: dict[Path, int] = field(default_factory=dict[Path, int])
    """The sizes of the files as they were written, which Spark is to find so."""

    def new(self, original: Path, within: str | None, folders: Sequence[FolderColumn] = ()) -> Path:
        """Return a path for a copy of a file; `within` is the parent of the temporary folder.

        It is read by Spark's executors; None: this process alone reads what is there. The copy lies
        in `folders`, which name columns.
        """
        copy = self._named(f"{len(self.originals)}.txt", within, folders)
        self.originals[str(copy)] = original
        return copy

    def link(
        self, original: Path, within: str | None, folders: Sequence[FolderColumn] = ()
    ) -> Path:
        """Make a link to a file; it keeps the suffix, which names the compression."""
        suffix = original.suffix if ":" not in original.suffix else ""
        link = self.new(original, within, folders).with_suffix(suffix)
        link.symlink_to(original)
        self._written[link] = link.lstat().st_size
        self.originals[str(link)] = original
        return link

    def merge(self, files: Sequence[FileSurvey], within: str | None) -> Path:
        """Write the lines of files with the same header to one file; return its path."""
        path = self._named(f"merged-{len(self.merged)}.txt", within, files[0].folders)
        self.merged.add(str(path))
        self.write(path, _lines(files))
        return path

    def write(self, path: Path, chunks: Iterable[bytes]) -> None:
        """Write a file of this folder; raises `OSError` with its name."""
        try:
            with path.open("wb") as stream:
                stream.writelines(chunks)
                self._written[path] = stream.tell()
        except OSError as error:
            error.filename = str(path)  # errors of writing do not name their file
            raise

    def verify(self) -> None:
        """Raise `SourceAway` if a file is not as long as it was written: rows may be missing."""
        for path, size in self._written.items():
            try:
                found = path.lstat().st_size
            except (FileNotFoundError, NotADirectoryError):
                found = -1
            if found != size:
                what = self.originals.get(str(path), "small input files")
                raise SourceAway(
                    f"the copy of {what} that Spark reads, {path}, was cut or removed. Nothing "
                    "of the batch counts, and it is read again. Keep whatever cleans up away from "
                    f"folders {COPIES}*"
                )

    def clear(self) -> None:
        """Remove all copies."""
        if self._folder:
            rmtree(self._folder, ignore_errors=True)
        self.originals.clear()
        self.merged.clear()
        self._written.clear()
        self._folder = ""

    def place(self, copy: Path, within: str | None, folders: Sequence[FolderColumn]) -> Path:
        """Move a copy to where its folders name its columns; return its path."""
        placed = self._named(copy.name, within, folders)
        copy.rename(placed)
        self._written[placed] = self._written.pop(copy)
        self.originals[str(placed)] = self.originals[str(copy)]
        return placed

    @property
    def base(self) -> Path:
        """The folder of all copies."""
        return Path(self._folder)

    def _named(self, name: str, within: str | None, folders: Sequence[FolderColumn]) -> Path:
        if not self._folder:
            folder = within or tempfile.gettempdir()
            _sweep(Path(folder))
            made = Path(folder, f"{_prefix_of(process_of(os.getpid()))}{token_hex(8)}")
            # Executors, which may be of another user, read what is in a folder that they share.
            made.mkdir(mode=0o777 if within else 0o700)
            self._folder = str(made)
        place = Path(self._folder, *(each.part for each in folders))
        if folders:
            place.mkdir(mode=0o777 if within else 0o700, parents=True, exist_ok=True)
        return place / name


def _prefix_of(process: ProcessId) -> str:
    """Return the beginning of the names of a process's temporary folders, unique to it."""
    return f"{COPIES}{process.pid}@{process.started.replace('/', '+')}@{platform.node()}@"


def _sweep(folder: Path) -> None:
    """Remove the temporary folders of dead processes of this machine.

    The parent folder may be shared with other machines or containers, whose processes are unknown
    here.
    """
    for each in folder.glob(f"{COPIES}*"):
        made = _OWNER.fullmatch(each.name)
        if made and made["host"] == platform.node():
            owner = ProcessId(int(made["pid"]), made["started"].replace("+", "/"))
            if not is_alive(owner):
                rmtree(each, ignore_errors=True)


def merge_small_files(
    files: Sequence[FileSurvey],
    cores: Callable[[], int],
    copies: Copies,
    within: str | None,
) -> list[FileSurvey]:
    """Merge small files of the same form, about one merged file per core; returns what to read.

    `cores` is called only if there is something to merge, since Spark is asked for them.
    Raises `OSError` if a merged file cannot be written.
    """
    small = [each for each in files if each.text is not None]
    if len(small) < _FEWEST:
        return [replace(each, text=None) for each in files]
    alike: defaultdict[tuple[object, ...], list[FileSurvey]] = defaultdict(list)
    for each in small:
        values = each.quotes_nothing, each.is_odd, each.plain, each.folders
        alike[each.line_end, values, each.header, each.columns is None].append(each)
    total = sum(len(each.text or b"") for each in small)
    part = max(_LEAST_PART, -(-total // cores()))
    return [
        *(each for each in files if each.text is None),
        *(
            replace(some[0], path=copies.merge(some, within), base=copies.base, text=None)
            for group in alike.values()
            for some in _parts(group, part)
        ),
    ]


def _parts(files: Sequence[FileSurvey], size: int) -> Iterator[Sequence[FileSurvey]]:
    """Yield the files in groups of about `size` bytes."""
    part: list[FileSurvey] = []
    held = 0
    for each in files:
        part.append(each)
        held += len(each.text or b"")
        if held >= size:
            yield part
            part, held = [], 0
    if part:
        yield part


def _lines(files: Sequence[FileSurvey]) -> Iterator[bytes]:
    """Yield the header of the first file, if there is one, and the other lines of all files."""
    end = files[0].line_end.encode()
    for number, each in enumerate(files):
        text = each.text or b""
        if number and each.header:
            text = text.partition(end)[2]
        yield text
        if text and not text.endswith(end):
            yield end


def is_misread(file: Path) -> bool:
    """Return whether Hadoop takes a colon in a file's path for the end of a URI scheme.

    It does so in the name of a file, and in a path with glob characters.
    """
    has_pattern = path_to_read(file) != path_to_write(file)
    return ":" in (str(file) if has_pattern else file.name)
