"""Files in which processes keep figures, and the sums of them for a scrape.

This is the multiprocess mode of prometheus_client, with the process's name instead of its pid: a
worker that is started again goes on with its files, so that a kill -9 loses no count, and files do
not pile up. The node begins with an empty folder, which Prometheus takes for a restart of the
counters.

Prometheus's client merges such files entry by entry, which takes 50 ms for 200 workers. But those
of one kind have the same entries: so `WorkerFiles` adds them up as rows of numbers first, and the
client gets one file with the sums.
"""

import os
from array import array
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, cast
from urllib.parse import quote

from prometheus_client import disable_created_metrics, values
from prometheus_client.metrics_core import Metric
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

disable_created_metrics()  # type: ignore[no-untyped-call]  # as many series again, for nobody

LISTENER: Final = "kafka-listener"
"""What the files of the listener's figures are called after."""
_FOLDER_KEY: Final = "PROMETHEUS_MULTIPROC_DIR"
_FILE_BYTES: Final = 1 << 16
"""What all figures of a worker fit into: the file never grows."""
_FIRST_BYTES: Final = 1 << 12
"""So much of a file is read at first: most kinds have no more in it."""
SUM: Final = "livesum"
MAX: Final = "livemax"
"""What a gauge is of those of all processes, for prometheus_client."""
KINDS: Final[Mapping[str, Callable[[Iterable[float]], float]]] = {
    "histogram_": sum,
    "counter_": sum,
    f"gauge_{SUM}_": sum,
    f"gauge_{MAX}_": max,
}
"""How the names of files begin, and what their values are together."""
FEW: Final = 4
"""So many files are merged by the client itself."""
_WORD: Final = 8
"""All entries are aligned to words; a value is one, and so is the time after it."""


class FigureFiles:
    """The files of one process; only that process writes them."""

    def __init__(self, folder: Path, name: str, kinds: Iterable[str] = KINDS) -> None:
        """Make the files, or go on with them; raises `OSError` on a full disk."""
        self._folder, quoted = folder, quote(name, safe="")
        for kind in kinds:
            _allocate(folder / f"{kind}{quoted}.db")
        kept_by = cast("Any", values.MultiProcessValue)  # pyright: ignore[reportUnknownMemberType]
        self._values = kept_by(lambda: quoted)
        """The class of values that are stored in these files."""

    @contextmanager
    def holding(self) -> Generator[None]:
        """Keep the metrics that are made meanwhile in these files.

        Neither the choice nor the variable outlives it: what else runs in this process, or is
        started by it, is not to count there.
        """
        before = values.ValueClass
        os.environ[_FOLDER_KEY] = str(self._folder)
        values.ValueClass = self._values
        try:
            yield
        finally:
            values.ValueClass = before
            del os.environ[_FOLDER_KEY]

    def close(self) -> None:
        """Close the files; nothing can be counted in them any more."""
        self._values.close_all_files()


def _allocate(path: Path) -> None:
    """Create a worker's file if there is none; raises `OSError` on a full disk.

    A mapped file with holes would end the process when the disk is full.
    """
    if path.exists():
        return
    path.parent.mkdir(mode=0o700, exist_ok=True)
    made = path.with_suffix(".new")
    with made.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, _FILE_BYTES)
    made.rename(path)


class WorkerFiles(Collector):
    """The metrics of the processes that count in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kinds = {kind: _AlikeFiles(join) for kind, join in KINDS.items()}

    def collect(self) -> Iterable[Metric]:
        """Return the sums over all files; none if there is no folder."""
        files = {*self._folder.glob("*.db")}
        by_kind = {kind: sorted(filter(_is_of(kind), files)) for kind in self._kinds}
        others = sorted(files.difference(*by_kind.values()))
        if all(len(each) <= FEW for each in by_kind.values()):
            return _merge(sorted(files))
        with suppress(OSError), TemporaryDirectory() as made:
            summed = [self._sum_up(kind, each, Path(made)) for kind, each in by_kind.items()]
            return _merge([*chain.from_iterable(summed), *others])
        return _merge(sorted(files))  # slower, but it needs no room

    def _sum_up(self, kind: str, files: Sequence[Path], made: Path) -> Sequence[Path]:
        """Return one file for those of a kind that are alike, and the others."""
        summed, different = self._kinds[kind].sum(files)
        if not summed:
            return files
        path = made / f"{kind}sum.db"
        path.write_bytes(summed)
        return path, *different


def _is_of(kind: str) -> Callable[[Path], bool]:
    """Return what tells whether a file of a kind is a worker's."""
    return lambda file: file.name.startswith(kind) and file.stem != f"{kind}{LISTENER}"


class _AlikeFiles:
    """Sums up files with the same entries, or takes the largest values of them."""

    def __init__(self, join: Callable[[Iterable[float]], float]) -> None:
        self._join = join
        """Makes one value of those of all files in the same place."""
        self._entries = b""
        """The file with which others are compared, without its values."""
        self._places: list[int] = []
        """In which words of it the values are."""
        self._alike: set[Path] = set()
        """The files with the same entries."""

    def sum(self, files: Sequence[Path]) -> tuple[bytes, list[Path]]:
        """Return a file with the sums of those that have the same entries, and the others.

        It is empty if no file has entries yet.
        """
        if not self._places:
            self._choose(files)
        rows, different = list[Sequence[float]](), list[Path]()
        pick: Callable[[array[float]], Sequence[float]] = itemgetter(*self._places or (0, 0))
        if len(self._places) == 1:
            pick = self._pick_one
        for file in files:
            words = array("d", _used(file))
            if self._is_alike(file, words):
                rows.append(pick(words))
            else:
                different.append(file)
        sums = array("d", self._entries)
        joined = map(self._join, zip(*rows, strict=True))
        for at, value in zip(self._places, joined, strict=False):
            sums[at] = value
        return sums.tobytes(), different

    def _choose(self, files: Sequence[Path]) -> None:
        """Choose the first file that has entries; with it all others are compared."""
        for file in files:
            places = _places(file)
            if places:
                self._places = places
                self._entries = self._without_values(array("d", _used(file)))
                return

    def _pick_one(self, words: "array[float]") -> Sequence[float]:
        return (words[self._places[0]],)

    def _is_alike(self, file: Path, words: "array[float]") -> bool:
        """Return whether a file has these entries; they are only ever added to."""
        size = len(words) * _WORD
        if size != len(self._entries) or not size:
            return False
        if file not in self._alike and self._without_values(words) == self._entries:
            self._alike.add(file)
        return file in self._alike

    def _without_values(self, words: "array[float]") -> bytes:
        entries = words[:]
        for at in self._places:
            entries[at] = entries[at + 1] = 0.0
        return entries.tobytes()


def _places(file: Path) -> list[int]:
    """Return in which words of a file its values are."""
    read = cast("Any", MmapedDict).read_all_values_from_file
    return [at // _WORD for *_, at in read(str(file))]


def _used(file: Path) -> bytes:
    """Return the used part of a file, whose length is in its first four bytes."""
    descriptor = os.open(file, os.O_RDONLY)
    try:
        content = os.read(descriptor, _FIRST_BYTES)
        size = int.from_bytes(content[:4], "little")
        content += os.read(descriptor, max(0, size - len(content)))
    finally:
        os.close(descriptor)
    return content[:size]


def _merge(files: Iterable[Path]) -> Iterable[Metric]:
    merge = cast("Any", MultiProcessCollector).merge
    return [*cast("Iterable[Metric]", merge([str(each) for each in files]))]
