"""What a scrape costs: a page of 10,000 samples of connectors, beside Prometheus's own client.

The second kind is the same page after commits of each tenth connector.
"""

import time
from collections.abc import Callable
from dataclasses import replace

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families as parse
from prometheus_client.registry import Collector

from fairlead.events.commits import Cost, Lag
from fairlead.projections.metrics.connectors import ConnectorLines
from fairlead.projections.metrics.families import GroupFigures
from fairlead.projections.views import Progress
from fairlead_tests.benchmarks.figures import median, tell
from fairlead_tests.decider import Decider

CONNECTORS, ROUNDS = 460, 30
"""Of one task each, which makes about 22 samples a connector."""
OPEN = "application/openmetrics-text"


class Page(Collector):
    """The families of a page, as objects of Prometheus's client."""

    def __init__(self, text: str) -> None:
        self._families = [*parse(text)]

    def collect(self) -> list[Metric]:
        """Return the families, each made anew of its samples."""
        return [self._make(each) for each in self._families if each.samples]

    def _make(self, family: Metric) -> Metric:
        labels = [*family.samples[0].labels]
        kind = CounterMetricFamily if family.type == "counter" else GaugeMetricFamily
        made = kind(family.name, family.documentation, labels=labels)
        for each in family.samples:
            made.add_metric([*each.labels.values()], each.value)
        return made


def busy() -> GroupFigures:
    """Return a group of connectors that have all committed."""
    decider, names = Decider(), [f"connector-{number:04}" for number in range(CONNECTORS)]
    decider.configure(" ".join(f"{name} {name}-0" for name in names))
    decider.join("W1")
    decider.settle()
    cost, lag = Cost(1_000_000, 5, 6, 700, 8, 9), Lag(3, 30_000, 40)
    done = Progress(
        7, 9_000, 8_000, 70_000, 1_700_000_000_123, 1, lag, cost=cost, oldest_commit_ms=5
    )
    return GroupFigures(
        decider.group,
        {},
        {},
        dict.fromkeys(names, done),
        {name: {0: done} for name in names},
        caught_up=dict.fromkeys(names, 1_600_000_000_000),
    )


def committed(of: GroupFigures, rows: int) -> GroupFigures:
    """Return the figures after a batch of each tenth connector."""
    changed = {
        name: replace(each, rows_in=each.rows_in + rows)
        for number, (name, each) in enumerate(of.progress.items())
        if number % 10 == 0
    }
    return replace(of, progress={**of.progress, **changed})


def cost_ms(write: Callable[[int], object]) -> float:
    """Return the CPU time of a page, the median of some."""
    taken: list[float] = []
    for number in range(ROUNDS):
        begun = time.process_time_ns()
        write(number)
        taken.append((time.process_time_ns() - begun) / 1e6)
    return median(sorted(taken))


def tell_format(name: str, *, is_open: bool) -> None:
    """Print the figures of one format."""
    figures, lines = busy(), ConnectorLines()
    text = lines.write([figures], 0, is_open=False)
    samples = sum(not line.startswith("#") for line in text.splitlines())
    later = [committed(figures, rows) for rows in range(1, ROUNDS + 1)]
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Page(text))
    encode, _ = choose_encoder(OPEN if is_open else "")
    client_ms = cost_ms(lambda _: encode(registry))
    for what, write in {
        "unchanged": lambda n: lines.write([figures], n, is_open=is_open),
        "commits": lambda n: lines.write([later[n]], n, is_open=is_open),
        "first": lambda n: ConnectorLines().write([figures], n, is_open=is_open),
    }.items():
        peer, conditions = "prometheus_client", f"{samples} samples, CPU time"
        tell(
            f"scrape.{name}.{what}",
            cost_ms(write),
            "ms",
            peer=peer,
            peer_value=client_ms,
            conditions=conditions,
        )


def main() -> None:
    """Print the figures of both formats."""
    tell_format("text", is_open=False)
    tell_format("open", is_open=True)


if __name__ == "__main__":
    main()
