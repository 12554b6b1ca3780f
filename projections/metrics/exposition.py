"""Answers a scrape with all metrics, in a format that the scraper takes.

Requests, of which no log tells, are counted here.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import choose_encoder

from .groups import Beats, GroupCollector, GroupFigures
from .workers import collect_workers

disable_created_metrics()  # type: ignore[no-untyped-call]  # as many series again, for nobody

_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


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
            buckets=_BUCKETS,
        )

    def observe(self, method: str, route: str, code: int, seconds: float) -> None:
        """Count a request; `route` is a template, so that no client can make up series."""
        method = method if method in _METHODS else "other"
        self.total.labels(method, route, str(code)).inc()
        self.duration.labels(method, route).observe(seconds)


class Exposition:
    """Writes all metrics of a scrape."""

    def __init__(self, version: str, requests: RequestMetrics, workers: Path | None = None) -> None:
        """`workers` is the folder in which this node's workers keep their figures, if any."""
        self._version = version
        self._workers = workers
        self._requests = requests
        self._process = ProcessCollector(registry=None)

    def write(
        self,
        accept: str,
        groups: Iterable[GroupFigures],
        beats: Mapping[str, Beats] = MappingProxyType({}),
    ) -> tuple[bytes, str]:
        """Return the metrics and their content type, in a format that the scraper accepts.

        `beats` are by group; they are not in any log, and left out where nobody told them.
        """
        encode, content_type = choose_encoder(accept)
        registry = CollectorRegistry(auto_describe=False)
        registry.register(GroupCollector(self._version, tuple(groups), beats))
        registry.register(self._requests.total)
        registry.register(self._requests.duration)
        registry.register(self._process)
        if self._workers is not None:
            collect_workers(registry, self._workers)
        return encode(registry), content_type
