"""What processes count themselves, as no log tells it, and the answer to a scrape.

A REST process counts its requests; a worker measures how long the phases of its batches take. A
scrape is answered with these and with what the logs tell of each group (`group_metrics.py`), in
a format that the scraper takes.
"""

import logging
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, cast
from urllib.parse import quote

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    values,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from . import connector_metrics, group_metrics, node_metrics
from .figures import Beats, GroupFigures, NodeFigures
from .group_metrics import gauge
from .shard_metrics import ShardCollector, ShardFigures
from .worker_files import WorkerFiles

disable_created_metrics()  # type: ignore[no-untyped-call]  # as many series again, for nobody

LOGGER = logging.getLogger(__name__)
PHASES: Final = ("plan", "wait", "run", "commit", "publish")
"""Of a batch, in order: `wait` is for a place on the engine, `run` reads, transforms and stages."""

_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""In seconds; requests have two finer ones, batches two coarser ones."""
LISTENER: Final = "kafka-listener"
"""What the file of the listener's figures is called after."""
END: Final = b"# EOF\n"
"""The end of an exposition in the format OpenMetrics."""
_FOLDER_KEY: Final = "PROMETHEUS_MULTIPROC_DIR"
_FILE_BYTES: Final = 1 << 16
"""What all figures of a worker fit into: the file never grows."""


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
        """Count a request; `route` is a template, so that no client can make up series."""
        method = method if method in _METHODS else "other"
        self.total.labels(method, route, str(code)).inc()
        self.duration.labels(method, route).observe(seconds)


Groups = Sequence[GroupFigures]
Family = Callable[[Groups], Iterable[Metric]]
_OF_CONTROL_LOGS: Final[Sequence[Family]] = (
    group_metrics.epochs,
    group_metrics.states,
    group_metrics.resources,
    group_metrics.rebalances,
    connector_metrics.runs,
    node_metrics.workers,
)
_OF_OFFSET_LOGS: Final[Sequence[Family]] = (
    connector_metrics.progress,
    connector_metrics.batches,
    connector_metrics.bad_rows,
)
_LIVE: Final = (group_metrics.logs, connector_metrics.restarts, node_metrics.durations)


class FamilyCollector(Collector):
    """Some families of metrics, as Prometheus's client takes them."""

    def __init__(self, *families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        """Yield them; the client calls it, once."""
        return chain.from_iterable(self._families)


class Exposition:
    """Writes all metrics of a scrape.

    What only records change is most of it, and written anew only after one.
    """

    def __init__(self, version: str, requests: RequestMetrics, workers: Path | None = None) -> None:
        """`workers` is the folder in which this node's workers keep their figures, if any."""
        self._version = version
        self._workers = WorkerFiles(workers) if workers else None
        self._requests = requests
        self._process = ProcessCollector(registry=None)
        self._written: dict[Sequence[Family], tuple[object, bytes]] = {}
        """What was written last of some families, after the format and the logs' ends."""

    def write(
        self,
        accept: str,
        groups: Iterable[GroupFigures],
        beats: Mapping[str, Beats] = MappingProxyType({}),
        shards: Sequence[ShardFigures] = (),
        node: NodeFigures = NodeFigures(),  # noqa: B008  # frozen
    ) -> tuple[bytes, str]:
        """Return the metrics and their content type, in a format that the scraper accepts.

        `beats` are by group; they are not in any log, and left out where nobody told them.
        `shards` are those of Kafka's clients' groups.
        """
        encode, content_type = choose_encoder(accept)
        measured = tuple(groups)
        ends = [(each.group.group_id, id(each.group), each.group.end) for each in measured]
        offsets = [each.logs["offsets"].end if "offsets" in each.logs else 0 for each in measured]
        unread = [sorted(each.unread.items()) for each in measured]
        of_control = self._remember(_OF_CONTROL_LOGS, measured, accept, ends)
        of_offsets = self._remember(_OF_OFFSET_LOGS, measured, accept, (ends, offsets, unread))
        registry = CollectorRegistry(auto_describe=False)
        build = gauge("build_info", "The version of fairlead, as a label.", "version")
        build.add_metric([self._version], 1)
        others = group_metrics.heartbeats(beats), node_metrics.engines(node)
        live = (family(measured) for family in _LIVE)
        registry.register(FamilyCollector([build], *live, *others))
        if shards:
            registry.register(ShardCollector(shards))
        registry.register(self._requests.total)
        registry.register(self._requests.duration)
        registry.register(self._process)
        if self._workers is not None:
            registry.register(self._workers)
        return of_control + of_offsets + encode(registry), content_type

    def _remember(
        self, families: Sequence[Family], groups: Groups, accept: str, ends: object
    ) -> bytes:
        """Return what logs tell, as it was written when they ended where they do now."""
        known, written = self._written.get(families, (None, b""))
        if known != (accept, ends):
            registry = CollectorRegistry(auto_describe=False)
            registry.register(FamilyCollector(*(family(groups) for family in families)))
            written = choose_encoder(accept)[0](registry).removesuffix(END)
            self._written[families] = (accept, ends), written
        return written


class WorkerMetrics:
    """The figures of one worker; only the process that runs the worker may have them.

    Each worker counts in a memory-mapped file of its own, and a scrape sums all of them up: no
    record is written for it, and no message sent. This is the multiprocess mode of
    prometheus_client, with the worker's name instead of its pid: a worker that is started again
    goes on with its file, so that a kill -9 loses no count, and files do not pile up. The node
    begins with an empty folder, which Prometheus takes for a restart of the counters.
    """

    def __init__(self, folder: Path, worker: str) -> None:
        """Count in a folder; where that has no room nothing is counted."""
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
    """The figures of the listener for Kafka's clients, kept as those of workers are."""

    def __init__(self, folder: Path) -> None:
        """Count in a folder; where that has no room nothing is counted."""
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
        self._by_api: dict[str, Any] = {}

    def count_request(self, api: str) -> None:
        """Count a request; the names are few."""
        if self._requests is not None:
            counter = self._by_api.get(api)
            if counter is None:
                counter = self._by_api[api] = self._requests.labels(api)
            counter.inc()

    def count_refusal(self, reason: str) -> None:
        """Count a connection that was closed for a reason, of which there are few."""
        if self._refused is not None:
            self._refused.labels(reason).inc()

    def count_connection(self, change: int) -> None:
        """Count a connection more, or less."""
        if self._connections is not None:
            self._connections.inc(change)


def _allocate(path: Path) -> None:
    """Make a worker's file if there is none; raises `OSError` where it has no room.

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
    """Let metrics that are made meanwhile be kept in a folder.

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
