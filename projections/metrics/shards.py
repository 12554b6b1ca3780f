"""The groups of Kafka's clients as Prometheus sees them: counts by shard, none of them by group.

There may be a hundred thousand of them, with ids that clients make up: a series for each would cost
a scraper more than it tells. `/groups` has them one by one.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from ...events.group import Group
from ...events.model import GroupState, GroupType, Why
from ..follow.rebalances import Rebalances
from ..shards import type_of_clients
from ..views import LogFigures
from .families import counter, gauge

OF_CLIENTS = (GroupType.CLASSIC, GroupType.CONSUMER, GroupType.CONNECT)
STATES = [each for each in GroupState if each is not GroupState.DEAD]
"""Nothing is left of a group of Kafka's clients that is deleted."""


@dataclass(frozen=True, slots=True)
class ShardFigures:
    """The figures of one shard."""

    number: int
    states: Mapping[tuple[GroupType, GroupState], int]
    """How many groups of a type are in a state."""
    members: Mapping[GroupType, int]
    """How many members groups of a type have."""
    rebalances: Mapping[tuple[GroupType, Why], int]
    """How often epochs rose, by what the group was then, and by cause."""
    logs: Mapping[str, LogFigures]
    """By name."""


def figures_of(
    number: int, groups: Iterable[Group], rebalances: Rebalances, logs: Mapping[str, LogFigures]
) -> ShardFigures:
    """Return the measures of a shard with these groups."""
    states: Counter[tuple[GroupType, GroupState]] = Counter()
    members: Counter[GroupType] = Counter()
    for each in groups:
        kind = type_of_clients(each)
        states[kind, each.state] += 1
        members[kind] += len(each.classic.members if each.classic else each.members)
    told = {(GroupType.CLASSIC, why): count for why, count in rebalances.generations.items()}
    told |= {(GroupType.CONSUMER, why): count for why, count in rebalances.epochs.items()}
    return ShardFigures(number, states, members, told, logs)


class ShardCollector(Collector):
    """The shards at the moment of one scrape."""

    def __init__(self, shards: Sequence[ShardFigures]) -> None:
        self._shards = shards

    def collect(self) -> Iterator[Metric]:
        """Yield all families; the client calls it."""
        yield from _groups(self._shards)
        yield from _rebalances(self._shards)
        yield from _logs(self._shards)


def _groups(shards: Sequence[ShardFigures]) -> Iterator[Metric]:
    told = "Groups of Kafka's clients by type and state."
    groups = gauge("kafka_groups", told, "shard", "type", "state")
    told = "Members of the groups of Kafka's clients."
    members = gauge("kafka_group_members", told, "shard", "type")
    for each in shards:
        for kind in OF_CLIENTS:
            members.add_metric([str(each.number), kind.value], each.members.get(kind, 0))
            for state in STATES:
                labels = [str(each.number), kind.value, state.value.lower()]
                groups.add_metric(labels, each.states.get((kind, state), 0))
    yield from (groups, members)


def _rebalances(shards: Sequence[ShardFigures]) -> Iterator[Metric]:
    told = "Rises of the epochs, and generations, of the groups of Kafka's clients."
    total = counter("kafka_group_rebalances", told, "shard", "type", "cause")
    for each in shards:
        ordered = sorted((kind.value, why.value, n) for (kind, why), n in each.rebalances.items())
        for kind, why, count in ordered:
            total.add_metric([str(each.number), kind, why], count)
    yield total


def _logs(shards: Sequence[ShardFigures]) -> Iterator[Metric]:
    told = "Partitions of which an offset was committed or forgotten."
    commits = counter("kafka_committed_offsets", told, "shard")
    end = gauge("kafka_log_end_offset", "Offset behind the last entry.", "shard", "log")
    size = gauge("kafka_log_size_bytes", "What the log takes on the disk.", "shard", "log")
    for each in shards:
        for name, log in each.logs.items():
            end.add_metric([str(each.number), name], log.end)
            size.add_metric([str(each.number), name], log.bytes)
        if (offsets := each.logs.get("offsets")) is not None:
            commits.add_metric([str(each.number)], offsets.end)
    yield from (commits, end, size)
