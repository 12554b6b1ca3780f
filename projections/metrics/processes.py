"""The figures that processes count themselves, since no log has them.

A REST process counts its requests in memory. A worker measures how long the phases of its batches
take, and the listener counts its clients: each in a memory-mapped file of its own, and a scrape
sums all of them up. No record is written for it, and no message sent. This is the multiprocess mode
of prometheus_client, with the process's name instead of its pid: a worker that is started again
goes on with its file, so that a kill -9 loses no count, and files do not pile up. The node begins
with an empty folder, which Prometheus takes for a restart of the counters.

Prometheus's client merges such files entry by entry, which takes 50 ms for 200 workers. But all of
them have the same entries: so `WorkerFiles` adds them up as rows of numbers first, and the client
gets one file with the sums.
"""

import logging
import os
from array import array
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, cast
from urllib.parse import quote

from prometheus_client import Counter, Gauge, Histogram, disable_created_metrics, values
from prometheus_client.metrics_core import Metric
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

disable_created_metrics()  # type: ignore[no-untyped-call]  # as many series again, for nobody

LOGGER = logging.getLogger(__name__)
PHASES: Final = ("plan", "wait", "run", "commit", "publish")
"""Of a batch, in order: `wait` is for a place on the engine, `run` reads, transforms and stages."""

_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""In seconds; requests have two finer ones, batches two coarser ones."""
LISTENER: Final = "kafka-listener"
"""What the file of the listener's figures is called after."""
_FOLDER_KEY: Final = "PROMETHEUS_MULTIPROC_DIR"
_FILE_BYTES: Final = 1 << 16
"""What all figures of a worker fit into: the file never grows."""
WORKERS: Final = "histogram_"
"""How the names of workers' files begin."""
FEW: Final = 4
"""So many files are merged by the client itself."""
_WORD: Final = 8
"""All entries are aligned to words; a value is one, and so is the time after it."""


class RequestMetrics:
    """Counts the requests that this process answers."""

    def __init__(self) -> None:
        self.total = Counter(
            "fairlead_rest_requests",
            "Requests answered by this REST process.",
            ["method", "route", "code"],
            registry=None,
        )
        self.duration = Histogram(
            "fairlead_rest_request_duration_seconds",
            "Time from a request's head to the end of its answer.",
            ["method", "route"],
            registry=None,
            buckets=(0.001, 0.0025, *_BUCKETS),
        )

    def observe(self, method: str, route: str, code: int, seconds: float) -> None:
        """Count a request; `route` is a template, which bounds the number of series."""
        method = method if method in _METHODS else "other"
        self.total.labels(method, route, str(code)).inc()
        self.duration.labels(method, route).observe(seconds)


class WorkerMetrics:
    """The metrics of one worker; only its own process may write them."""

    def __init__(self, folder: Path, worker: str) -> None:
        """Count in a folder; on a full disk nothing is counted."""
        self._phases: dict[str, Histogram] = {}
        """By name."""
        try:
            _allocate(folder / f"histogram_{quote(worker, safe='')}.db")
        except OSError as error:
            LOGGER.warning("nothing is measured here: %s", error)
            return
        with _values_in(folder, worker):
            seconds = Histogram(
                "fairlead_task_batch_seconds",
                "Time that the phases of batches took at the workers of this node.",
                ["phase"],
                registry=None,
                buckets=(*_BUCKETS, 30.0, 60.0),
            )
            self._phases = {phase: seconds.labels(phase) for phase in PHASES}

    def observe_batch(self, seconds: Mapping[str, float]) -> None:
        """Count a batch by how long each of its phases took."""
        for phase, histogram in self._phases.items():
            if phase in seconds:
                histogram.observe(seconds[phase])


class ListenerMetrics:
    """The metrics of the listener for Kafka's clients, stored like those of workers."""

    def __init__(self, folder: Path) -> None:
        """Count in a folder; on a full disk nothing is counted."""
        self._folder = folder
        self._requests: Counter | None = None
        self._refused: Counter | None = None
        self._connections: Gauge | None = None
        try:
            for kind in ("counter", "gauge_livesum"):
                _allocate(folder / f"{kind}_{LISTENER}.db")
        except OSError as error:
            LOGGER.warning("nothing is counted here: %s", error)
            return
        with _values_in(folder, LISTENER):
            self._requests = Counter(
                "fairlead_kafka_requests",
                "Requests of Kafka's clients to the listener of this node.",
                ["api"],
                registry=None,
            )
            self._refused = Counter(
                "fairlead_kafka_refused",
                "Connections of Kafka's clients that the listener has closed.",
                ["reason"],
                registry=None,
            )
            self._connections = Gauge(
                "fairlead_kafka_connections",
                "Connections of Kafka's clients to the listener of this node.",
                registry=None,
                multiprocess_mode="livesum",
            )
            self._connections.set(0)
        self._by_label: dict[tuple[Counter, str], Counter] = {}
        """The counter of each api and of each reason."""

    def count_request(self, api: str) -> None:
        """Count a request by its API name."""
        self._count(self._requests, api)

    def count_refusal(self, reason: str) -> None:
        """Count a closed connection by its reason."""
        self._count(self._refused, reason)

    def _count(self, counter: Counter | None, label: str) -> None:
        """Add 1; the counter of a new label is kept in the folder too."""
        if counter is None:
            return
        labelled = self._by_label.get((counter, label))
        if labelled is None:
            with _values_in(self._folder, LISTENER):
                labelled = self._by_label[counter, label] = counter.labels(label)
        labelled.inc()

    def count_connection(self, change: int) -> None:
        """Count an opened connection (1), or a closed one (-1)."""
        if self._connections is not None:
            self._connections.inc(change)


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


@contextmanager
def _values_in(folder: Path, worker: str) -> Generator[None]:
    """Keep the metrics that are made meanwhile in a folder.

    Neither the choice nor the variable outlives it: what else runs in this process, or is started
    by it, is not to count there.
    """
    before, name = values.ValueClass, quote(worker, safe="")
    os.environ[_FOLDER_KEY] = str(folder)
    kept_by = cast("Any", values.MultiProcessValue)  # pyright: ignore[reportUnknownMemberType]
    values.ValueClass = kept_by(lambda: name)
    try:
        yield
    finally:
        values.ValueClass = before
        del os.environ[_FOLDER_KEY]


class WorkerFiles(Collector):
    """The metrics of the processes that count in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._entries = b""
        """The file with which others are compared, without its values."""
        self._places: list[int] = []
        """In which words of it the values are."""
        self._alike: set[Path] = set()
        """The files with the same entries."""

    def collect(self) -> Iterable[Metric]:
        """Return the sums over all files; none if there is no folder."""
        files = sorted(self._folder.glob("*.db"))
        workers = [each for each in files if each.name.startswith(WORKERS)]
        others = [each for each in files if not each.name.startswith(WORKERS)]
        if len(workers) <= FEW:
            return _merge(files)
        summed, different = self._sum(workers)
        if not summed:
            return _merge(files)
        with suppress(OSError), TemporaryDirectory() as made:
            path = Path(made, "histogram_sum.db")
            path.write_bytes(summed)
            return _merge([path, *different, *others])
        return _merge(files)  # slower, but it needs no room

    def _sum(self, files: Sequence[Path]) -> tuple[bytes, list[Path]]:
        """Return a file with the sums of those that have the same entries, and the others.

        It is empty if no file has entries yet.
        """
        if not self._places:
            self._choose(files)
        rows, different = list[Sequence[float]](), list[Path]()
        pick: Callable[[array[float]], Sequence[float]] = itemgetter(*self._places or (0, 0))
        for file in files:
            words = array("d", _used(file))
            if self._is_alike(file, words):
                rows.append(pick(words))
            else:
                different.append(file)
        sums = array("d", self._entries)
        for at, value in zip(self._places, map(sum, zip(*rows, strict=True)), strict=False):
            sums[at] = value
        return sums.tobytes(), different

    def _choose(self, files: Sequence[Path]) -> None:
        """Choose the first file that has entries; with it all others are compared."""
        for file in files:
            places = _places(file)
            if len(places) > 1:
                self._places = places
                self._entries = self._without_values(array("d", _used(file)))
                return

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
        content = os.read(descriptor, 1 << 16)
    finally:
        os.close(descriptor)
    return content[: int.from_bytes(content[:4], "little")]


def _merge(files: Iterable[Path]) -> Iterable[Metric]:
    merge = cast("Any", MultiProcessCollector).merge
    return [*cast("Iterable[Metric]", merge([str(each) for each in files]))]
