"""The families of metrics that logs tell of, and what a node tells of itself.

The figures are taken from the projections when they are asked for. Nothing is counted on the way,
so no number can drift from the log, and a counter survives every restart. `GroupFigures` brings
what is measured of one group; each function here makes the families of one subject from the
figures of all groups. `exposition` says which of them are written anew at each scrape. A metric's
meaning stands in projections/METRICS.md.

In this order: the groups, their workers, their connectors, then the JVMs and the disk of the node.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.metrics_core import Metric

from ...events.commits import Lag
from ...events.group import Group
from ...events.model import (
    ErrorClass,
    GroupState,
    GroupType,
    MemberState,
    Resource,
    Resources,
    RunState,
    Why,
)
from ..views import (
    LogFigures,
    Progress,
    assigned_resources,
    awaited_resources,
    connector_names,
    count_errors,
    parked_resources,
    resource_status,
    run_states,
    unplaceable_resources,
)
from ..watch.group import SECONDS, Durations, WatchCounts

MS = 1000
OF_CONNECTOR = ("group", "connector")
SHARED = "shared"
"""The name of the JVM that workers share, where other JVMs have that of their worker."""
_BOUNDS = (*map(str, SECONDS), "+Inf")


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """The figures of one group; `logs` by name, `progress` by connector.

    `skipping` holds the progress of the tasks that ever left out bad rows.
    """

    group: Group
    rebalances: Mapping[Why, int]
    logs: Mapping[str, LogFigures]
    progress: Mapping[str, Progress]
    skipping: Mapping[Resource, Progress] = field(default_factory=dict[Resource, Progress])
    failures: Mapping[tuple[str, Why], int] = field(default_factory=dict[tuple[str, Why], int])
    """How often a worker was lost, by its url and how, in the whole log."""
    unread: Mapping[str, Lag] = field(default_factory=dict[str, Lag])
    """What connectors have to read that are paused, stopped or have failed, by a look at it."""
    watched: WatchCounts = field(default_factory=WatchCounts)


@dataclass(frozen=True, slots=True)
class Beats:
    """The heartbeats received by a group's actor since it started, and those held now."""

    taken: int
    held: int


class EngineFigures(NamedTuple):
    """A JVM: whether it runs jobs now, and how often it was started again."""

    is_up: bool
    restarts: int


@dataclass(frozen=True, slots=True)
class NodeFigures:
    """The figures of the node itself; `engines` by worker, "" for the one that they share."""

    engines: Mapping[str, EngineFigures] = field(default_factory=dict[str, EngineFigures])
    free_bytes: int | None = None
    """What may still be written to the disk of the logs."""


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
    """Yield the families of workers: the resources of each, and the losses."""
    labels = ("group", "worker")
    held = gauge("worker_resources", "What a worker holds, by kind.", *labels, "kind")
    lost = counter("worker_losses", "How often a worker was lost, by cause.", *labels, "cause")
    for each in groups:
        group = each.group
        for member in group.workers():
            if member.state is MemberState.AWAY:
                continue
            worker = member.metadata.worker_url.rpartition("/")[2]
            tasks = sum(resource.is_task for resource in member.current.assigned)
            connectors = len(member.current.assigned) - tasks
            for kind, count in (("connector", connectors), ("task", tasks)):
                held.add_metric([group.group_id, worker, kind], count)
            for why in (Why.PROCESS_ENDED, Why.SESSION_EXPIRED):
                count = each.failures.get((member.metadata.worker_url, why), 0)
                lost.add_metric([group.group_id, worker, why.value], count)
    yield from (held, lost)


def durations(groups: Groups) -> Iterator[Metric]:
    """Yield the histograms of rebalances and moves since this process started."""
    text = "Time from the cause of an epoch until everything ran again."
    rebalances = HistogramMetricFamily("fairlead_group_rebalance_seconds", text, labels=["group"])
    text = "Time for which nobody ran what went from one worker to another."
    moves = HistogramMetricFamily("fairlead_group_move_seconds", text, labels=["group"])
    for each in groups:
        for family, taken in (
            (rebalances, each.watched.rebalances),
            (moves, each.watched.moves),
        ):
            family.add_metric([each.group.group_id], _buckets(taken), taken.total_ms / 1000)
    yield from (rebalances, moves)


def _buckets(taken: Durations) -> list[tuple[str, float]]:
    """Return cumulative counts by bound."""
    found, total = list[tuple[str, float]](), 0
    for bound, count in zip(_BOUNDS, taken.counts, strict=True):
        total += count
        found.append((bound, total))
    return found


def runs(groups: Groups) -> Iterator[Metric]:
    """Yield the families of the states of connectors and tasks."""
    tasks = gauge(
        "connector_tasks", "Tasks of the connector by run state.", "group", "connector", "state"
    )
    own = gauge(
        "connector_state", "1 for the run state of the connector itself.", *OF_CONNECTOR, "state"
    )
    nowhere = gauge(
        "connector_unplaceable_resources",
        "The connector and those of its tasks that no member can take.",
        "group",
        "connector",
    )
    hindered = gauge(
        "connector_hindered_resources",
        "The connector and those of its tasks that wait or have failed, by who can mend it.",
        "group",
        "connector",
        "error",
    )
    for each in groups:
        left_out = Counter(resource.connector for resource in unplaceable_resources(each.group))
        for name in connector_names(each.group):
            nowhere.add_metric([each.group.group_id, name], left_out[name])
            for state, count in run_states(each.group, name).items():
                tasks.add_metric([each.group.group_id, name, state.value.lower()], count)
            now = resource_status(each.group, Resource(name)).state
            for state in RunState:
                own.add_metric([each.group.group_id, name, state.value.lower()], now is state)
            found = count_errors(each.group, name)
            for error in ErrorClass:
                hindered.add_metric([each.group.group_id, name, error.value], found[error])
    yield from (tasks, own, nowhere, hindered)


def progress(groups: Groups) -> Iterator[Metric]:
    """Yield the families of the rows, bytes and lag."""
    labels = OF_CONNECTOR
    rows_in = counter("connector_rows_in", "Rows read in batches that count.", *labels)
    rows_out = counter("connector_rows_out", "Rows written in batches that count.", *labels)
    bytes_in = counter("connector_in_bytes", "Bytes read in batches that count.", *labels)
    out = counter("connector_out_bytes", "Bytes written in batches that count.", *labels)
    lag = gauge(
        "connector_lag_bytes",
        "Bytes that are left to read, since the tasks planned their last batches.",
        *labels,
    )
    text = "Records that were left to read, where the source knows it."
    records = gauge("connector_lag_records", text, *labels)
    unread = {
        (each.group.group_id, name): found for each in groups for name, found in each.unread.items()
    }
    for values, progress in _connectors(groups):
        rows_in.add_metric(values, progress.rows_in)
        rows_out.add_metric(values, progress.rows_out)
        bytes_in.add_metric(values, progress.cost.bytes_in)
        out.add_metric(values, progress.bytes_out)
        left = progress.lag if progress.last_commit_ms else None
        left = unread.get((values[0], values[1]), left)
        if left is not None:
            lag.add_metric(values, left.bytes)
            if left.records is not None:
                records.add_metric(values, left.records)
    yield from (rows_in, rows_out, bytes_in, out, lag, records)


def batches(groups: Groups) -> Iterator[Metric]:
    """Yield the families of the batches and commits."""
    labels = OF_CONNECTOR
    batches = counter("connector_batches", "Batches that count.", *labels)
    text = "Time that batches which count took, by phase."
    seconds = counter("connector_batch_seconds", text, *labels, "phase")
    text = "Batches that count and are not in place yet."
    waiting = gauge("connector_unpublished_batches", text, *labels)
    text = "When a batch was committed last."
    last = gauge("connector_last_commit_timestamp_seconds", text, *labels)
    text = "The last commit of that task of the connector which has committed nothing for longest."
    never = "Tasks of the connector that never committed a batch."
    uncommitted = gauge("connector_uncommitted_tasks", never, *labels)
    oldest = gauge("connector_oldest_commit_timestamp_seconds", text, *labels)
    for values, progress in _connectors(groups):
        batches.add_metric(values, progress.batches)
        for phase, took_ms in progress.cost.phases_ms.items():
            seconds.add_metric([*values, phase], took_ms / MS)
        waiting.add_metric(values, progress.unpublished)
        if progress.last_commit_ms:
            last.add_metric(values, progress.last_commit_ms / MS)
        uncommitted.add_metric(values, progress.uncommitted)
        if progress.oldest_commit_ms:
            oldest.add_metric(values, progress.oldest_commit_ms / MS)
    yield from (batches, seconds, waiting, last, oldest, uncommitted)


def _connectors(groups: Groups) -> Iterator[tuple[list[str], Progress]]:
    """Yield the labels of each connector, with its progress."""
    for each in groups:
        for connector, progress in each.progress.items():
            yield [each.group.group_id, connector], progress


def restarts(groups: Groups) -> Iterator[Metric]:
    """Yield the family of restarts."""
    text = "Restarts of the connector and its tasks after failures, since this process started."
    family = counter("connector_restarts", text, *OF_CONNECTOR)
    for each in groups:
        for name in connector_names(each.group):
            family.add_metric([each.group.group_id, name], each.watched.restarts[name])
    yield family


def bad_rows(groups: Groups) -> Iterator[Metric]:
    """Yield the families of the bad rows."""
    labels = ("group", "connector", "task")
    skipped = counter("task_skipped_rows", "Bad rows that a task left out.", *labels)
    kept = counter("task_dead_letters", "Those of them that are dead letters.", *labels)
    for each in groups:
        for task, progress in each.skipping.items():
            values = [each.group.group_id, task.connector, str(task.task)]
            skipped.add_metric(values, progress.skipped)
            kept.add_metric(values, progress.dead_letters)
    yield from (skipped, kept)


def engines(node: NodeFigures) -> Iterator[Metric]:
    """Yield the families of JVMs, and of the disk."""
    up = gauge("engine_up", "Whether the JVM of a worker, or of all, runs jobs now.", "worker")
    restarts = counter("engine_restarts", "How often it was started again.", "worker")
    for worker, each in sorted(node.engines.items()):
        up.add_metric([worker or SHARED], float(each.is_up))
        restarts.add_metric([worker or SHARED], each.restarts)
    free = gauge("disk_free_bytes", "What may still be written where the logs are.")
    if node.free_bytes is not None:
        free.add_metric([], node.free_bytes)
    yield from (up, restarts, free)
