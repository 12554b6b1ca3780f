"""Every pair of source and sink as a connector of one node, and the check of its output."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from fairlead_tests.chaos.crew import Crew
from fairlead_tests.matrix.ends import SinkEnd, SourceEnd, Tally

MUTANT = "mutant-"
"""The name prefix of connectors whose sinks do not check their mark (see `points`)."""
HASTY = "mutant-hasty-"
"""The name prefix of the one whose source also ignores its transaction horizon."""
PATIENCE_S = 180.0
SHOWN = 8
"""The maximum number of lost or duplicate ids in a message."""
CONFIG: Mapping[str, str] = {
    "connector.class": "SparkPipeline",
    "poll.interval.ms": "500",
    "task.restart.budget": "-1",
    "task.restart.backoff.max.ms": "1000",
    "errors.retry.delay.max.ms": "2000",
}


class Pair(NamedTuple):
    """A connector from a source to a sink; its name says which."""

    name: str
    source: SourceEnd
    sink: SinkEnd

    @property
    def is_mutant(self) -> bool:
        return self.name.startswith(MUTANT)

    @property
    def flaws(self) -> tuple[str, ...]:
        """The expected error of its rows."""
        if self.name.startswith(HASTY):
            return "doubled", "lost"
        return ("doubled",) if self.is_mutant else ()

    def begin(self, node: Crew, tasks: int) -> None:
        """Create the connector."""
        ends = {**self.source.config(self.name), **self.sink.config(self.name)}
        node.put(self.name, {**CONFIG, **ends, "tasks.max": str(tasks)})

    def is_whole(self) -> bool:
        """Return whether each row of the source has arrived, at least once.

        Of one that loses rows the last one has: it was written when no transaction was open. Rows
        that were changed must be as they are in the source.
        """
        if not self.source.only_adds:
            return not self.wrong()
        if "lost" in self.flaws:
            return max(self.source.rows()) in self.sink.ids(self.name)
        return self.sink.tally(self.name).distinct >= len(self.source.rows())

    def wrong(self) -> str:
        """Return the error of the output; "" if each row is there exactly once."""
        rows = self.source.rows()
        tally, wanted = self.sink.tally(self.name), Tally.of(rows)
        if tally == wanted:
            return ""
        there = self.sink.ids(self.name)
        lost, strange = sorted(rows.keys() - there.keys()), sorted(there.keys() - rows.keys())
        doubled = sorted(each for each, times in there.items() if times > 1)
        told = [
            f"{len(ids)} rows {what} ({', '.join(map(str, ids[:SHOWN]))} …)"
            for what, ids in (("lost", lost), ("doubled", doubled), ("strange", strange))
            if ids
        ]
        return f"{self.name}: {'; '.join(told)}: {tally}, wanted {wanted}"


def pairs_of(sources: Sequence[SourceEnd], sinks: Sequence[SinkEnd]) -> list[Pair]:
    """Return all pairs of sources and sinks that fit, and one mutant for each sink.

    One of these is a mutant of the source, too: what a source loses no sink can double.
    """
    sound = [
        Pair(f"{source.kind}-to-{sink.kind}", source, sink)
        for source in sources
        for sink in sinks
        if source.only_adds or sink.kind == "postgres"
    ]
    cheap = next(each for each in sources if each.kind == "postgres")
    beside = [
        Pair(f"{MUTANT if number else HASTY}{each.kind}", cheap, each)
        for number, each in enumerate(sinks)
    ]
    return [*sound, *beside]


def wait_whole(node: Crew, pairs: Iterable[Pair]) -> None:
    """Wait until all rows have arrived and are published, up to a time limit."""
    left, deadline = [*pairs], time.monotonic() + PATIENCE_S
    while left and time.monotonic() < deadline:
        left = [each for each in left if node.unpublished(each.name) or not each.is_whole()]
        time.sleep(0.5)


def handovers(node: Crew) -> Counter[str]:
    """Count the takeovers of tasks of each connector, from their tokens."""
    node.look()
    tokens = {
        (each.resource, each.token)
        for each in node.statuses
        if each.resource.is_task and each.state.name == "RUNNING"
    }
    tasks = Counter(resource for resource, _ in tokens)
    found = Counter[str]()
    for resource, times in tasks.items():
        found[resource.connector] += times - 1
    return found
