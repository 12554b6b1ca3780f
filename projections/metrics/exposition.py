"""The answer to a scrape, in a format that the scraper takes.

It has what the logs tell of each group (`families`) and of each shard (`shards`), and what
processes count themselves (`processes`).
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from . import families
from . import node as of_node
from .connectors import ConnectorLines
from .coordinators import coordinators
from .families import Beats, GroupFigures, Groups, gauge
from .files import WorkerFiles
from .node import NodeFigures
from .processes import RequestMetrics
from .shards import ShardCollector, ShardFigures

OPEN_METRICS: Final = "application/openmetrics-text"
END: Final = b"# EOF\n"
"""The end of an exposition in the format OpenMetrics."""

Family = Callable[[Groups], Iterable[Metric]]
_OF_CONTROL_LOGS: Final[Sequence[Family]] = (
    families.epochs,
    families.owners,
    families.states,
    families.resources,
    families.rebalances,
    families.workers,
)
_OF_OFFSET_LOGS: Final[Sequence[Family]] = (families.bad_rows,)
_OF_NODE: Final = (
    of_node.engines,
    of_node.heaps,
    of_node.disks,
    of_node.copies,
    of_node.processes,
    of_node.encryption,
    of_node.traces,
    of_node.connect,
)


class FamilyCollector(Collector):
    """Some metric families as a collector of Prometheus's client."""

    def __init__(self, *families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        """Yield them; the client calls it, once."""
        return chain.from_iterable(self._families)


class JoinedCollector(Collector):
    """Several collectors as one: a family of which two of them have samples is there once."""

    def __init__(self, *collectors: Collector) -> None:
        self._collectors = collectors

    def collect(self) -> Iterable[Metric]:
        """Return the families with the samples of all; the client calls it."""
        joined: dict[str, Metric] = {}
        for family in chain.from_iterable(each.collect() for each in self._collectors):
            known = joined.setdefault(family.name, family)
            if known is not family:
                known.samples = [*known.samples, *family.samples]
        return joined.values()


class Exposition:
    """Writes all metrics of a scrape.

    What only records change is most of it, and written anew only after one.
    """

    def __init__(
        self,
        version: str,
        requests: RequestMetrics,
        workers: Path | None = None,
        *,
        has_tasks: bool = False,
        traced_cluster: str = "",
    ) -> None:
        """`workers` is the folder in which this node's workers keep their figures, if any.

        `has_tasks`: whether each task has series of its own. `traced_cluster` is the cluster's id
        if its epochs have traces, which exemplars then name.
        """
        self._connectors = ConnectorLines(has_tasks=has_tasks)
        self._version, self._traced_cluster = version, traced_cluster
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
        beating, hosts = families.heartbeats(beats), coordinators(node.coordinators)
        others = beating, hosts, *(family(node) for family in _OF_NODE)
        live = families.logs(measured), families.durations(measured, self._traced_cluster)
        collectors = [FamilyCollector([build], *live, *others), *self._requests.collectors]
        collectors += [ShardCollector(shards)] if shards else []
        collectors += [self._process, *([self._workers] if self._workers else ())]
        registry.register(JoinedCollector(*collectors))
        of_connectors = self._write_connectors(measured, content_type)
        return of_connectors + of_control + of_offsets + encode(registry), content_type

    def _write_connectors(self, groups: Groups, content_type: str) -> bytes:
        is_open = content_type.startswith(OPEN_METRICS)
        now_ms = time.time_ns() // 1_000_000
        return self._connectors.write(groups, now_ms, is_open=is_open).encode()

    def _remember(
        self, chosen: Sequence[Family], groups: Groups, accept: str, ends: object
    ) -> bytes:
        """Return the cached metrics of logs, if the logs have not grown since."""
        state, written = self._written.get(chosen, (None, b""))
        if state != (accept, ends):
            registry = CollectorRegistry(auto_describe=False)
            registry.register(FamilyCollector(*(family(groups) for family in chosen)))
            written = choose_encoder(accept)[0](registry).removesuffix(END)
            self._written[chosen] = (accept, ends), written
        return written
