"""The answer to a scrape, in a format that the scraper takes.

It has what the logs tell of each group (`families`) and of each shard (`shards`), and what
processes count themselves (`processes`).
"""

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
from .families import Beats, GroupFigures, Groups, NodeFigures, gauge
from .processes import RequestMetrics, WorkerFiles
from .shards import ShardCollector, ShardFigures

END: Final = b"# EOF\n"
"""The end of an exposition in the format OpenMetrics."""

Family = Callable[[Groups], Iterable[Metric]]
_OF_CONTROL_LOGS: Final[Sequence[Family]] = (
    families.epochs,
    families.states,
    families.resources,
    families.rebalances,
    families.runs,
    families.workers,
)
_OF_OFFSET_LOGS: Final[Sequence[Family]] = (
    families.progress,
    families.batches,
    families.bad_rows,
)
_LIVE: Final = (families.logs, families.restarts, families.durations)


class FamilyCollector(Collector):
    """Some metric families as a collector of Prometheus's client."""

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
        others = families.heartbeats(beats), families.engines(node)
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
