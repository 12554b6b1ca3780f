"""The groups as Prometheus sees them.

The figures are taken from the projections when they are asked for. Nothing is counted on the
way, so no number can drift from the log, and a counter survives every restart.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from ..events.group import Group
from ..events.model import ErrorClass, GroupState, GroupType, MemberState, Resource, Resources, Why
from .views import (
    LogFigures,
    Progress,
    assigned_resources,
    awaited_resources,
    connector_names,
    count_errors,
    parked_resources,
    run_states,
    unplaceable_resources,
)

_MS = 1000


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """What is measured of one group; `logs` by name, `progress` by connector.

    `skipping` holds the progress of the tasks that ever left out bad rows.
    """

    group: Group
    rebalances: Mapping[Why, int]
    logs: Mapping[str, LogFigures]
    progress: Mapping[str, Progress]
    skipping: Mapping[Resource, Progress] = field(default_factory=dict[Resource, Progress])


@dataclass(frozen=True, slots=True)
class Beats:
    """The heartbeats that a group's actor took since it started, and those it holds now."""

    taken: int
    held: int


class GroupCollector(Collector):
    """The groups at the moment of one scrape."""

    def __init__(
        self, version: str, groups: tuple[GroupFigures, ...], beats: Mapping[str, Beats]
    ) -> None:
        self._version = version
        self._groups = groups
        self._beats = beats

    def collect(self) -> Iterator[Metric]:
        """Yield all families; the client calls it."""
        build = gauge("build_info", "The version of fairlead, as a label.", "version")
        build.add_metric([self._version], 1)
        yield build
        of_groups = (_epochs, _states, _resources, _rebalances, _logs)
        of_connectors = (_runs, _progress, _batches, _bad_rows)
        for family in (*of_groups, *of_connectors):
            yield from family(self._groups)
        yield from _heartbeats(self._beats)


_Groups = tuple[GroupFigures, ...]


def _epochs(groups: _Groups) -> Iterator[Metric]:
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


def _heartbeats(beats: Mapping[str, Beats]) -> Iterator[Metric]:
    taken = counter(
        "group_heartbeats", "Heartbeats that the group's actor took since it started.", "group"
    )
    held = gauge("group_heartbeats_held", "Heartbeats held until there is news.", "group")
    for group_id, each in beats.items():
        taken.add_metric([group_id], each.taken)
        held.add_metric([group_id], each.held)
    yield from (taken, held)


def _states(groups: _Groups) -> Iterator[Metric]:
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
    """Return how many members are in each state; those of a generation are all in the same."""
    counts = Counter(member.state for member in group.members.values())
    seats = {seat.name.lower(): counts[seat] for seat in MemberState} | {"unassigned": 0}
    if last := group.classic:
        seats["stable" if last.is_synced else "unassigned"] += len(last.members)
    return seats


def _resources(groups: _Groups) -> Iterator[Metric]:
    """Tell in families of their own what overlaps: a sum over them would mean nothing."""
    told = {
        "configured": "Connectors and tasks that the group is to run.",
        "assigned": "Configured connectors and tasks that a member holds.",
        "parked": "Connectors and tasks left unassigned on purpose until a deadline.",
        "awaited": "Connectors and tasks kept for members that left for a while.",
        "unplaceable": "Connectors and tasks that no member can take.",
    }
    for name, text in told.items():
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
            deadline.add_metric([group.group_id], group.next_deadline_ms / _MS)
        if group.schedule.again_at_ms:
            moves.add_metric([group.group_id], group.schedule.again_at_ms / _MS)
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


def _rebalances(groups: _Groups) -> Iterator[Metric]:
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
            last.add_metric([group_id], max(rises) / _MS)
    yield from (total, last)


def _logs(groups: _Groups) -> Iterator[Metric]:
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


def _runs(groups: _Groups) -> Iterator[Metric]:
    tasks = gauge(
        "connector_tasks", "Tasks of the connector by run state.", "group", "connector", "state"
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
            found = count_errors(each.group, name)
            for error in ErrorClass:
                hindered.add_metric([each.group.group_id, name, error.value], found[error])
    yield from (tasks, nowhere, hindered)


def _progress(groups: _Groups) -> Iterator[Metric]:
    labels = ("group", "connector")
    rows_in = counter("connector_rows_in", "Rows read in batches that count.", *labels)
    rows_out = counter("connector_rows_out", "Rows written in batches that count.", *labels)
    bytes_in = counter("connector_in_bytes", "Bytes read in batches that count.", *labels)
    out = counter("connector_out_bytes", "Bytes written in batches that count.", *labels)
    lag = gauge(
        "connector_lag_bytes",
        "Bytes that were left to read when the tasks planned their last batches.",
        *labels,
    )
    for values, progress in _connectors(groups):
        rows_in.add_metric(values, progress.rows_in)
        rows_out.add_metric(values, progress.rows_out)
        bytes_in.add_metric(values, progress.cost.bytes_in)
        out.add_metric(values, progress.bytes_out)
        if progress.last_commit_ms and progress.lag is not None:
            lag.add_metric(values, progress.lag.bytes)
    yield from (rows_in, rows_out, bytes_in, out, lag)


def _batches(groups: _Groups) -> Iterator[Metric]:
    labels = ("group", "connector")
    batches = counter("connector_batches", "Batches that count.", *labels)
    told = "Time that batches which count took, by phase."
    seconds = counter("connector_batch_seconds", told, *labels, "phase")
    told = "Batches that count and are not in place yet."
    waiting = gauge("connector_unpublished_batches", told, *labels)
    told = "When a batch was committed last."
    last = gauge("connector_last_commit_timestamp_seconds", told, *labels)
    for values, progress in _connectors(groups):
        batches.add_metric(values, progress.batches)
        for phase, took_ms in progress.cost.phases_ms.items():
            seconds.add_metric([*values, phase], took_ms / _MS)
        waiting.add_metric(values, progress.unpublished)
        if progress.last_commit_ms:
            last.add_metric(values, progress.last_commit_ms / _MS)
    yield from (batches, seconds, waiting, last)


def _connectors(groups: _Groups) -> Iterator[tuple[list[str], Progress]]:
    """Yield the labels of each connector, with its progress."""
    for each in groups:
        for connector, progress in each.progress.items():
            yield [each.group.group_id, connector], progress


def _bad_rows(groups: _Groups) -> Iterator[Metric]:
    labels = ("group", "connector", "task")
    skipped = counter("task_skipped_rows", "Bad rows that a task left out.", *labels)
    kept = counter("task_dead_letters", "Those of them that are dead letters.", *labels)
    for each in groups:
        for task, progress in each.skipping.items():
            values = [each.group.group_id, task.connector, str(task.task)]
            skipped.add_metric(values, progress.skipped)
            kept.add_metric(values, progress.dead_letters)
    yield from (skipped, kept)


def gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    """Return a family of gauges."""
    return GaugeMetricFamily(f"fairlead_{name}", text, labels=labels)


def counter(name: str, text: str, *labels: str) -> CounterMetricFamily:
    """Return a family of counters."""
    return CounterMetricFamily(f"fairlead_{name}", text, labels=labels)
