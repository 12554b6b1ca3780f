"""The groups as Prometheus sees them, and how families are made.

The figures are taken from the projections when they are asked for. Nothing is counted on the
way, so no number can drift from the log, and a counter survives every restart.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from ..events.group import Group
from ..events.model import GroupState, GroupType, MemberState, Resource, Resources
from .figures import Beats, GroupFigures
from .views import (
    assigned_resources,
    awaited_resources,
    parked_resources,
    unplaceable_resources,
)

MS = 1000


Groups = Sequence[GroupFigures]


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
    """Return how many members are in each state; those of a generation are all in the same."""
    counts = Counter(member.state for member in group.members.values())
    seats = {seat.name.lower(): counts[seat] for seat in MemberState} | {"unassigned": 0}
    if last := group.classic:
        seats["stable" if last.is_synced else "unassigned"] += len(last.members)
    return seats


def resources(groups: Groups) -> Iterator[Metric]:
    """Yield families of their own for what overlaps: a sum over them would mean nothing."""
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


def gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    """Return a family of gauges."""
    return GaugeMetricFamily(f"fairlead_{name}", text, labels=labels)


def counter(name: str, text: str, *labels: str) -> CounterMetricFamily:
    """Return a family of counters."""
    return CounterMetricFamily(f"fairlead_{name}", text, labels=labels)
