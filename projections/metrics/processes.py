"""The figures that processes count themselves, since no log has them.

A REST process counts its requests in memory. A worker measures how long the phases of its batches
take, and counts what went through Arrow and what through Spark; the listener counts its clients:
each in memory-mapped files of its own, and a scrape sums all of them up (`files`). No record is
written for it, and no message sent. Who begins to count closes the files at the end.
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.registry import Collector

from ...events.model import ErrorClass
from .files import LISTENER, MAX, SUM, FigureFiles

LOGGER = logging.getLogger(__name__)
PHASES: Final = ("plan", "wait", "run", "commit", "publish")
"""Of a batch, in order: `wait` is for a place on the engine, `run` reads, transforms and stages."""

_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""In seconds; requests have two finer ones, batches two coarser ones."""
_ROWS: Final = (1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
LANES: Final = ("arrow", "spark")
"""What rows go through: Arrow alone, or Spark."""
REST, KAFKA = "rest", "kafka"
"""The listeners, in the label of metrics."""
FAILURES: Final = "auth_failures", "Requests and clients that did not prove who they are."
DENIALS: Final = "auth_denials", "Requests without the right to all that they ask for."
HANDSHAKES: Final = "tls_failed_handshakes", "TLS handshakes that failed."
CERTIFICATE_END: Final = (
    "certificate_not_after_timestamp_seconds",
    "When the certificate of a listener expires.",
)
"""Names and meanings of what all listeners have."""


def _counter(name: str, text: str, *labels: str) -> Counter:
    return Counter(f"fairlead_{name}", text, labels, registry=None)


def _gauge(
    name: str, text: str, *labels: str, of_all: Literal["livesum", "livemax"] = SUM
) -> Gauge:
    return Gauge(f"fairlead_{name}", text, labels, registry=None, multiprocess_mode=of_all)


class RequestMetrics:
    """Counts the requests that this process answers, and those that it refuses."""

    def __init__(self) -> None:
        text = "Requests answered by this REST process."
        self.total = _counter("rest_requests", text, "method", "route", "code")
        self.duration = Histogram(
            "fairlead_rest_request_duration_seconds",
            "Time from a request's head to the end of its answer.",
            ["method", "route"],
            registry=None,
            buckets=(0.001, 0.0025, *_BUCKETS),
        )
        self.failures = _counter(*FAILURES, "listener", "mechanism")
        self.denials = _counter(*DENIALS, "listener", "request")

    @property
    def collectors(self) -> tuple[Collector, ...]:
        """The families, for a registry."""
        return self.total, self.duration, self.failures, self.denials

    def observe(self, method: str, route: str, code: int, seconds: float) -> None:
        """Count a request; `route` is a template, which bounds the number of series."""
        method = method if method in _METHODS else "other"
        self.total.labels(method, route, str(code)).inc()
        self.duration.labels(method, route).observe(seconds)

    def count_failure(self, mechanism: str) -> None:
        """Count a request whose sender is not known, by how they tried to prove who they are."""
        self.failures.labels(REST, mechanism).inc()

    def count_denial(self, request: str) -> None:
        """Count a request without the right to it, by its method and the template of its route."""
        self.denials.labels(REST, request).inc()


class WorkerMetrics:
    """The metrics of one worker; only its own process may write them."""

    def __init__(self, folder: Path, worker: str) -> None:
        """Count in a folder; on a full disk nothing is counted."""
        self._files: FigureFiles | None = None
        """None: they could not be made on a full disk."""
        self._phases: dict[str, Histogram] = {}
        """By name."""
        self._rows: Histogram | None = None
        """How many rows batches read."""
        self._lanes: dict[str, tuple[Counter, Counter]] = {}
        """The ranges and the rows of each lane."""
        self._errors: dict[ErrorClass, Counter] = {}
        self._fenced: Counter | None = None
        self._slots: tuple[Gauge, Gauge] | None = None
        """How many batches run on the engine, and how many wait for a place on it."""
        self._open_batch: Gauge | None = None
        try:
            self._files = FigureFiles(folder, worker)
        except OSError as error:
            LOGGER.warning("nothing is measured here: %s", error)
            return
        with self._files.holding():
            self._make_of_batches()
            self._make_of_errors()
            self._slots = (
                _gauge("engine_running_batches", "Batches that run on the engine."),
                _gauge("engine_waiting_batches", "Batches that wait for a place on the engine."),
            )
            text = "How long ago the batch was planned that has been at work for longest."
            self._open_batch = _gauge("task_open_batch_seconds", text, of_all=MAX)
        self.tell_slots(0, 0)  # it may have been killed during batches
        self.tell_open_batch(0.0)

    def _make_of_batches(self) -> None:
        seconds = Histogram(
            "fairlead_task_batch_seconds",
            "Time that the phases of batches took at the workers of this node.",
            ["phase"],
            registry=None,
            buckets=(*_BUCKETS, 30.0, 60.0),
        )
        self._phases = {phase: seconds.labels(phase) for phase in PHASES}
        text = "Rows that each batch has read at the workers of this node."
        self._rows = Histogram("fairlead_task_batch_rows", text, registry=None, buckets=_ROWS)
        text = "Ranges of sources (files, say) that went through Arrow alone, or through Spark."
        ranges = _counter("task_ranges", text, "lane")
        text = "Rows of sources that went through Arrow alone, or through Spark."
        rows = _counter("task_rows", text, "lane")
        self._lanes = {lane: (ranges.labels(lane), rows.labels(lane)) for lane in LANES}

    def _make_of_errors(self) -> None:
        text = "Errors of connectors and tasks, retried ones among them, by who can mend them."
        errors = _counter("task_errors", text, "error")
        self._errors = {each: errors.labels(each.value) for each in ErrorClass}
        self._fenced = _counter(
            "task_fenced", "Tasks that ended because another worker may own them by now."
        )

    def observe_batch(self, seconds: Mapping[str, float], rows: int = 0) -> None:
        """Count a batch by how long each of its phases took, and by the rows that it has read."""
        for phase, histogram in self._phases.items():
            if phase in seconds:
                histogram.observe(seconds[phase])
        if self._rows is not None:
            self._rows.observe(rows)

    def count_lane(self, lane: str, ranges: int, rows: int) -> None:
        """Count what went through one of `LANES`."""
        for counter, amount in zip(self._lanes.get(lane, ()), (ranges, rows), strict=False):
            counter.inc(max(0, amount))

    def count_error(self, error: ErrorClass) -> None:
        """Count an error that a connector or a task has reported."""
        if (counter := self._errors.get(error)) is not None:
            counter.inc()

    def count_fenced(self) -> None:
        """Count a task whose token was no longer current."""
        if self._fenced is not None:
            self._fenced.inc()

    def tell_slots(self, running: int, waiting: int) -> None:
        """Set how many batches run on the engine now, and how many wait for a place on it."""
        for gauge, count in zip(self._slots or (), (running, waiting), strict=False):
            gauge.set(count)

    def tell_open_batch(self, seconds: float) -> None:
        """Set for how long the oldest open batch has been open; 0: none is."""
        if self._open_batch is not None:
            self._open_batch.set(seconds)

    def close(self) -> None:
        """Count nothing more, and close the files."""
        self._open_batch = None
        self._phases, self._lanes, self._errors = {}, {}, {}
        self._rows, self._fenced, self._slots = None, None, None
        if self._files is not None:
            self._files.close()
            self._files = None


class ListenerMetrics:
    """The metrics of the listener for Kafka's clients, stored like those of workers."""

    def __init__(self, folder: Path) -> None:
        """Count in a folder; on a full disk nothing is counted."""
        self._files: FigureFiles | None = None
        self._counters: dict[str, Counter] = {}
        """By the name of the family."""
        self._by_label: dict[tuple[str, str], Counter] = {}
        """By the name of the family, and the value of its label."""
        self._connections: Gauge | None = None
        self._certificate_end: Gauge | None = None
        """None: none was told, or there is no encryption."""
        try:
            self._files = FigureFiles(folder, LISTENER, ("counter_", f"gauge_{SUM}_"))
        except OSError as error:
            LOGGER.warning("nothing is counted here: %s", error)
            return
        with self._files.holding():
            self._make()

    def _make(self) -> None:
        text = "Requests of Kafka's clients to the listener of this node."
        requests = _counter("kafka_requests", text, "api")
        text = "Connections of Kafka's clients that the listener has closed."
        refused = _counter("kafka_refused", text, "reason")
        self._counters = {
            "requests": requests,
            "refused": refused,
            FAILURES[0]: _counter(*FAILURES, "listener", "mechanism"),
            DENIALS[0]: _counter(*DENIALS, "listener", "request"),
            HANDSHAKES[0]: _counter(*HANDSHAKES, "listener"),
        }
        text = "Connections of Kafka's clients to the listener of this node."
        self._connections = _gauge("kafka_connections", text)
        self._connections.set(0)

    def count_request(self, api: str) -> None:
        """Count a request by its API name."""
        self._count("requests", api)

    def count_refusal(self, reason: str) -> None:
        """Count a closed connection by its reason."""
        self._count("refused", reason)

    def count_failed_authentication(self, mechanism: str) -> None:
        """Count a client that did not prove who it is, by its mechanism."""
        self._count(FAILURES[0], KAFKA, mechanism)

    def count_denial(self, api: str) -> None:
        """Count a request whose client did not have the rights for all of it."""
        self._count(DENIALS[0], KAFKA, api)

    def count_failed_handshake(self) -> None:
        """Count a TLS handshake that failed."""
        self._count(HANDSHAKES[0], KAFKA)

    def _count(self, family: str, *labels: str) -> None:
        """Add 1; the counter of a new label is kept in the folder too."""
        if self._files is None:
            return
        labelled = self._by_label.get((family, labels[-1]))
        if labelled is None:
            with self._files.holding():
                labelled = self._counters[family].labels(*labels)
            self._by_label[family, labels[-1]] = labelled
        labelled.inc()

    def count_connection(self, change: int) -> None:
        """Count an opened connection (1), or a closed one (-1)."""
        if self._connections is not None:
            self._connections.inc(change)

    def tell_certificate_end(self, seconds: float) -> None:
        """Set when the certificate expires, in seconds since 1970."""
        if self._files is None:
            return
        if self._certificate_end is None:
            with self._files.holding():
                self._certificate_end = _gauge(*CERTIFICATE_END, "listener").labels(KAFKA)
        self._certificate_end.set(seconds)

    def close(self) -> None:
        """Count nothing more, and close the files."""
        self._connections, self._certificate_end = None, None
        if self._files is not None:
            self._files.close()
            self._files = None
