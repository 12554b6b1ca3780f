"""The families of metrics that logs tell of.

The figures are taken from the projections when they are asked for. Nothing is counted on the way,
so no number can drift from the log, and a counter survives every restart. `GroupFigures` brings
what is measured of one group; each function here makes the families of one subject from the
figures of all groups. `exposition` says which of them are written anew at each scrape. A metric's
meaning stands in projections/METRICS.md.

In this order: the groups, their workers. `connectors` has their connectors and tasks.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Exemplar

from ...events.commits import Lag
from ...events.group import Group, Member
from ...events.model import (
    GroupState,
    GroupType,
    MemberState,
    Resource,
    Resources,
    Why,
)
from ...events.placement import last_part
from ..progress import TasksProgress
from ..traces.spans import epoch_context
from ..views import (
    LogFigures,
    Progress,
    assigned_resources,
    awaited_resources,
    parked_resources,
    unplaceable_resources,
)
from ..watch.group import SECONDS, DurationExample, Durations, WatchCounts

MS = 1000
_BOUNDS = (*map(str, SECONDS), "+Inf")


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """The figures of one group; `logs` by name, `progress` by connector.

    `tasks` holds the progress of each task, by connector and number.
    """

    group: Group
    rebalances: Mapping[Why, int]
    logs: Mapping[str, LogFigures]
    progress: Mapping[str, Progress]
    tasks: TasksProgress = field(default_factory=dict[str, Mapping[int, Progress]])
    failures: Mapping[tuple[str, Why], int] = field(default_factory=dict[tuple[str, Why], int])
    """How often a worker was lost, by its url and how, in the whole log."""
    unread: Mapping[str, Lag] = field(default_factory=dict[str, Lag])
    """What connectors have to read that are paused, stopped or have failed, by a look at it."""
    watched: WatchCounts = field(default_factory=WatchCounts)
    caught_up: Mapping[str, int | None] = field(default_factory=dict[str, int | None])
    """Since when connectors may have something to read, in ms of the wall clock."""
    takeovers: int = 0
    """How often a node has claimed the group after the first time."""

    def skipping(self) -> Iterator[tuple[str, int, Progress]]:
        """Yield the progress of the tasks that ever left out bad rows."""
        for connector, tasks in self.tasks.items():
            for number, each in tasks.items():
                if each.skipped:
                    yield connector, number, each


@dataclass(frozen=True, slots=True)
class Beats:
    """The heartbeats received by a group's actor since it started, and those held now."""

    taken: int
    held: int


Groups = Sequence[GroupFigures]


def gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    """Return a family of gauges."""
    return GaugeMetricFamily(f"fairlead_{name}", text, labels=labels)


def counter(name: str, text: str, *labels: str) -> CounterMetricFamily:
    """Return a family of counters."""
    return CounterMetricFamily(f"fairlead_{name}", text, labels=labels)


def epochs(groups: Groups) -> Iterator[Metric]:
    """Yield the families of the epochs of groups."""
    epoch = gauge("group_epoch", "Version of the group's metadata.", "group")
    assignment = gauge("group_assignment_epoch", "Group epoch that the target answers.", "group")
    failures = gauge("group_assignment_failures", "Computations that failed in a row.", "group")
    classic = gauge("group_classic_members", "Members that speak the classic protocol.", "group")
    for each in groups:
        labels = [each.group.group_id]
        epoch.add_metric(labels, each.group.group_epoch)
        assignment.add_metric(labels, each.group.assigned_epoch)
        failures.add_metric(labels, each.group.target.failures)
        spoken = each.group.classic.members if each.group.classic else each.group.translated
        classic.add_metric(labels, len(spoken))
    yield from (epoch, assignment, failures, classic)


def owners(groups: Groups) -> Iterator[Metric]:
    """Yield the families of the owners of groups, where many nodes may own one."""
    epoch = gauge("group_owner_epoch", "Number of the last claim of the group.", "group")
    text = "Claims of the group after the first one, in the whole log."
    takeovers = counter("group_takeovers", text, "group")
    for each in groups:
        if (last := each.group.ownership) is not None:
            epoch.add_metric([each.group.group_id], last.epoch)
            takeovers.add_metric([each.group.group_id], each.takeovers)
    yield from (epoch, takeovers)


def heartbeats(beats: Mapping[str, Beats]) -> Iterator[Metric]:
    """Yield the families of the heartbeats of groups' actors."""
    taken = counter(
        "group_heartbeats", "Heartbeats that the group's actor took since it started.", "group"
    )
    held = gauge("group_heartbeats_held", "Heartbeats held until there is news.", "group")
    for group_id, each in beats.items():
        taken.add_metric([group_id], each.taken)
        held.add_metric([group_id], each.held)
    yield from (taken, held)


def states(groups: Groups) -> Iterator[Metric]:
    """Yield the families of the states, types and members of groups."""
    state = gauge("group_state", "1 for the state that the group is in.", "group", "state")
    kind = gauge("group_type", "1 for the type that the group is of.", "group", "type")
    members = gauge("group_members", "Members of the group by state.", "group", "state")
    for each in groups:
        group_id = each.group.group_id
        for known in GroupState:
            state.add_metric([group_id, known.value.lower()], float(known is each.group.state))
        for group_type in GroupType:
            kind.add_metric([group_id, group_type.value], float(group_type is each.group.type))
        for seat, count in _seats(each.group).items():
            members.add_metric([group_id, seat], count)
    yield from (state, kind, members)


def _seats(group: Group) -> dict[str, int]:
    """Return the number of members in each state; all members of a generation have the same."""
    counts = Counter(member.state for member in group.members.values())
    seats = {seat.name.lower(): counts[seat] for seat in MemberState} | {"unassigned": 0}
    if last := group.classic:
        seats["stable" if last.is_synced else "unassigned"] += len(last.members)
    return seats


def resources(groups: Groups) -> Iterator[Metric]:
    """Yield the families of resources; overlapping states are separate families."""
    texts = {
        "configured": "Connectors and tasks that the group is to run.",
        "assigned": "Configured connectors and tasks that a member holds.",
        "parked": "Connectors and tasks left unassigned on purpose until a deadline.",
        "awaited": "Connectors and tasks kept for members that left for a while.",
        "unplaceable": "Connectors and tasks that no member can take.",
    }
    for name, text in texts.items():
        family = gauge(f"group_{name}_resources", text, "group", "kind")
        for each in groups:
            for kind, count in _by_kind(_select_resources(each.group, name)):
                family.add_metric([each.group.group_id, kind], count)
        yield family
    deadline = gauge(
        "group_next_deadline_timestamp_seconds", "When the first parked work is due.", "group"
    )
    moves = gauge("group_next_moves_timestamp_seconds", "When more of the moves are due.", "group")
    for group in (each.group for each in groups):
        if group.next_deadline_ms is not None:
            deadline.add_metric([group.group_id], group.next_deadline_ms / MS)
        if group.schedule.again_at_ms:
            moves.add_metric([group.group_id], group.schedule.again_at_ms / MS)
    yield from (deadline, moves)


def _select_resources(group: Group, name: str) -> Resources:
    match name:
        case "configured":
            return group.configured
        case "assigned":
            return assigned_resources(group)
        case "parked":
            return parked_resources(group)
        case "awaited":
            return awaited_resources(group)
        case _:
            return unplaceable_resources(group)


def _by_kind(resources: Iterable[Resource]) -> tuple[tuple[str, int], tuple[str, int]]:
    tasks = [each.is_task for each in resources]
    return ("connector", tasks.count(False)), ("task", tasks.count(True))


def rebalances(groups: Groups) -> Iterator[Metric]:
    """Yield the families of the rises of epochs, by cause."""
    total = counter(
        "group_rebalances", "Rises of the group epoch in the whole log.", "group", "cause"
    )
    last = gauge(
        "group_last_rebalance_timestamp_seconds", "When the group epoch rose last.", "group"
    )
    for each in groups:
        group_id = each.group.group_id
        for why, count in sorted(each.rebalances.items(), key=lambda item: item[0].value):
            total.add_metric([group_id, why.value], count)
        if rises := [rise.time_ms for rise in (each.group.classic, each.group.bump) if rise]:
            last.add_metric([group_id], max(rises) / MS)
    yield from (total, last)


def logs(groups: Groups) -> Iterator[Metric]:
    """Yield the families of the logs of groups."""
    end = gauge("log_end_offset", "Offset behind the last entry.", "group", "log")
    size = gauge("log_size_bytes", "What the log takes on the disk.", "group", "log")
    unknown = gauge("log_unknown_records", "Entries skipped: a later version wrote them.", "group")
    for each in groups:
        group_id = each.group.group_id
        for name, log in each.logs.items():
            end.add_metric([group_id, name], log.end)
            size.add_metric([group_id, name], log.bytes)
        unknown.add_metric([group_id], each.group.unknown_records)
    yield from (end, size, unknown)


def workers(groups: Groups) -> Iterator[Metric]:
    """Yield the families of workers: the resources of each, and the losses.

    Workers of one name are counted together: a series is told once.
    """
    labels = ("group", "worker")
    held = gauge("worker_resources", "What a worker holds, by kind.", *labels, "kind")
    lost = counter("worker_losses", "How often a worker was lost, by cause.", *labels, "cause")
    for each in groups:
        group_id, present = each.group.group_id, each.group.workers()
        there = [member for member in present if member.state is not MemberState.AWAY]
        for (worker, kind), count in _held_by(there).items():
            held.add_metric([group_id, worker, kind], count)
        for (worker, why), count in _losses_of(there, each.failures).items():
            lost.add_metric([group_id, worker, why.value], count)
    yield from (held, lost)


def _held_by(members: Iterable[Member]) -> Counter[tuple[str, str]]:
    """Count the connectors and the tasks that workers hold, by name and kind."""
    held: Counter[tuple[str, str]] = Counter()
    for each in members:
        worker, assigned = last_part(each.metadata.worker_url), each.current.assigned
        tasks = sum(resource.is_task for resource in assigned)
        held[worker, "connector"] += len(assigned) - tasks
        held[worker, "task"] += tasks
    return held


def _losses_of(
    members: Iterable[Member], failures: Mapping[tuple[str, Why], int]
) -> Counter[tuple[str, Why]]:
    """Count the losses of workers that are there, by name and cause."""
    losses: Counter[tuple[str, Why]] = Counter()
    for url in sorted({each.metadata.worker_url for each in members}):
        for why in (Why.PROCESS_ENDED, Why.SESSION_EXPIRED):
            losses[last_part(url), why] += failures.get((url, why), 0)
    return losses


def durations(groups: Groups, cluster_id: str = "") -> Iterator[Metric]:
    """Yield the histograms of rebalances and moves since this process started.

    With the cluster's id, their exemplars name the traces of the epochs as well.
    """
    text = "Time from the cause of an epoch until everything ran again."
    rebalances = HistogramMetricFamily("fairlead_group_rebalance_seconds", text, labels=["group"])
    text = "Time for which nobody ran what went from one worker to another."
    moves = HistogramMetricFamily("fairlead_group_move_seconds", text, labels=["group"])
    for each in groups:
        for family, taken in (
            (rebalances, each.watched.rebalances),
            (moves, each.watched.moves),
        ):
            traced = (cluster_id, each.group.group_id) if cluster_id else None
            family.add_metric([each.group.group_id], _buckets(taken, traced), taken.total_ms / 1000)
    yield from (rebalances, moves)


def _buckets(
    taken: Durations, traced: tuple[str, str] | None
) -> list[tuple[str, float] | tuple[str, float, Exemplar]]:
    """Return cumulative counts by bound, with the epoch of the latest duration of each.

    `traced` are the ids of the cluster and the group, if the epochs have traces.
    """
    buckets = list[tuple[str, float] | tuple[str, float, Exemplar]]()
    for n, (bound, count) in enumerate(zip(_BOUNDS, accumulate(taken.counts), strict=True)):
        example = taken.examples.get(n)
        buckets.append((bound, count, _exemplar(example, traced)) if example else (bound, count))
    return buckets


def _exemplar(of: DurationExample, traced: tuple[str, str] | None) -> Exemplar:
    labels = {"epoch": str(of.epoch)}
    if traced is not None:
        labels["trace_id"] = epoch_context(*traced, of.epoch).trace_hex
    return Exemplar(labels, of.took_ms / MS, of.counted_ms / MS)


def bad_rows(groups: Groups) -> Iterator[Metric]:
    """Yield the families of the bad rows."""
    labels = ("group", "connector", "task")
    skipped = counter("task_skipped_rows", "Bad rows that a task left out.", *labels)
    kept = counter("task_dead_letters", "Those of them that are dead letters.", *labels)
    for each in groups:
        for connector, number, progress in each.skipping():
            values = [each.group.group_id, connector, str(number)]
            skipped.add_metric(values, progress.skipped)
            kept.add_metric(values, progress.dead_letters)
    yield from (skipped, kept)
