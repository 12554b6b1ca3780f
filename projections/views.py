"""A group and what it runs in plain words, for whoever asks from outside.

Everything here is a pure function of a group, and returns plain data that JSON can hold.
Connectors are told in the shapes of Kafka Connect's REST API, groups in our own. Configs go
in as they may be shown: what is secret in them is not known here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from ..events.epochs import epoch_warning
from ..events.group import Group, Member, token_of
from ..events.model import BATCHES_RUN, Cause, Grants, Resource, Resources, RunState
from ..events.placement.abilities import abilities, said_for
from ..events.records import GroupMetadata, Loss, Operator
from .documents import Document, Json
from .progress import Progress


@dataclass(frozen=True, slots=True)
class Doing:
    """What a resource does, and at which worker.

    `why` it failed, what it waits for, or why nobody can take it.
    """

    state: RunState
    worker: str
    why: str = ""

    def to_json(self) -> Document:
        """Return Connect's members: `trace` where it failed; `reason`, ours, else."""
        told: Document = {"state": self.state.value, "worker_id": self.worker}
        if self.why:
            told["trace" if self.state is RunState.FAILED else "reason"] = self.why
        return told


def connector_names(group: Group) -> list[str]:
    """Return the connectors that are not being deleted, in order."""
    return sorted(name for name, found in group.connectors.items() if not found.deleting)


def task_numbers(group: Group, name: str) -> range:
    """Return the tasks that a connector split its work into."""
    split = group.task_configs.get(name)
    return range(len(split.tasks) if split else 0)


def doing(group: Group, resource: Resource) -> Doing:
    """Return what a resource does, as far as the group may believe what it was told.

    A status whose token is not the current one is of the past: the resource is UNASSIGNED.
    """
    status = group.statuses.get(resource)
    holder = group.owner.get(resource)
    if holder is None:
        why = group.target.unplaceable.get(resource) or _wait(group, resource)
        return Doing(RunState.UNASSIGNED, status.worker if status else "", why)
    if status is not None and status.token == token_of(group, holder, resource):
        why = "" if status.reason == BATCHES_RUN else status.reason
        return Doing(status.state, status.worker, why)
    return Doing(RunState.UNASSIGNED, worker_of(group.members[holder]))


def _wait(group: Group, resource: Resource) -> str:
    """Return for whom a resource waits, and until when if that is known; nothing if it does not."""
    heir = group.members.get(group.target_owner.get(resource, ""))
    if heir is not None and heir.is_away:
        return f"{worker_of(heir)} left for a while, and its place is kept for its return"
    due_ms = group.schedule.parked.get(resource)
    if due_ms is None or resource in group.schedule.fired:
        return ""
    due = datetime.fromtimestamp(due_ms // 1_000, UTC)
    return f"its worker is lost, and waited for until {due:%Y-%m-%dT%H:%M:%SZ}"


def worker_of(member: Member) -> str:
    """Return the url by which the worker behind a member is known."""
    return member.metadata.url or member.member_id


def connector_info(group: Group, name: str, kind: str, config: Mapping[str, str]) -> Document:
    """Return Connect's `ConnectorInfo`; `kind` is source, sink or unknown."""
    tasks: list[Json] = [
        {"connector": name, "task": number} for number in task_numbers(group, name)
    ]
    return {"name": name, "config": dict(config), "tasks": tasks, "type": kind}


def connector_status(group: Group, name: str, kind: str, held_up: str = "") -> Document:
    """Return Connect's `ConnectorStateInfo`, the tasks in order.

    `held_up` is why no task of the group can commit; nothing if each can.
    """
    return {
        "name": name,
        "connector": doing(group, Resource(name)).to_json(),
        "tasks": [
            task_status(group, name, number, held_up) for number in task_numbers(group, name)
        ],
        "type": kind,
    }


def task_status(group: Group, name: str, number: int, held_up: str = "") -> Document:
    """Return Connect's `TaskState` of one task; see `connector_status`."""
    found = doing(group, Resource(name, number))
    if found.state is RunState.RUNNING and not found.why:
        found = replace(found, why=held_up)
    return {"id": number, **found.to_json()}


def connector_progress(group: Group, name: str, found: Mapping[int, Progress]) -> Document:
    """Return how far each task has come: rows, bytes and batches that count, and what is left.

    Times are wall clock, in milliseconds, null before the first commit. `lag` is what the source
    held beyond the last batch when that was planned, null where that is not known.
    """
    tasks: list[Json] = [
        {"id": number, **_progress(found.get(number, Progress(lag=None)))}
        for number in task_numbers(group, name)
    ]
    return {"name": name, "tasks": tasks}


def _progress(progress: Progress) -> Document:
    lag = progress.lag
    return {
        "rows_in": progress.rows_in,
        "rows_out": progress.rows_out,
        "bytes_out": progress.bytes_out,
        "batches": progress.batches,
        "unpublished": progress.unpublished,
        "last_commit_ms": progress.last_commit_ms or None,
        "lag": {"ranges": lag.ranges, "bytes": lag.bytes} if lag else None,
    }


def run_states(group: Group, name: str) -> dict[RunState, int]:
    """Return how many tasks of a connector are in each state, the empty ones included."""
    counts = dict.fromkeys(RunState, 0)
    for number in task_numbers(group, name):
        counts[doing(group, Resource(name, number)).state] += 1
    return counts


def group_summary(group: Group) -> Document:
    """Return one line of the list of groups."""
    return {
        "group_id": group.group_id,
        "state": group.state.value,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "members": len(group.members),
        "connectors": len(connector_names(group)),
        "configured": len(group.configured),
        "assigned": len(assigned(group)),
        "assignor_error": group.target.error,
        **_warning(group),
    }


def _warning(group: Group) -> Document:
    """Return what people should know of the group; a group of which there is nothing has no key."""
    warning = epoch_warning(group.group_epoch)
    return {"warning": warning} if warning else {}


def group_view(group: Group) -> Document:
    """Return all that the log says of a group; times are wall clock, in milliseconds."""
    return {
        "group_id": group.group_id,
        "state": group.state.value,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "last_rebalance": _bump(group.bump) if group.bump else None,
        "members": [member_view(group, each) for each in members(group)],
        "target": _target(group),
        "configured": _resources(group.configured),
        "unassigned": _resources(group.configured - group.owner.keys()),
        "awaited": _resources(awaited(group)),
        "parked": [
            {**_resource(each), "deadline_ms": due, "fired": each in group.schedule.fired}
            for each, due in sorted(group.schedule.parked.items())
        ],
        "next_moves_at_ms": group.schedule.again_at_ms or None,
        "losses": [_loss(group.losses[member_id]) for member_id in sorted(group.losses)],
        "config": dict(sorted(group.configs.items())),
        "worker_orders": [worker_order(each) for _, each in sorted(group.worker_orders.items())],
        "placements": [placement(each) for _, each in sorted(group.resource_orders.items())],
        "log_end": group.end,
        "unknown_records": group.unknown_records,
        **_warning(group),
    }


def members(group: Group) -> list[Member]:
    """Return the members of a group, ordered by worker."""
    return sorted(group.members.values(), key=lambda each: (worker_of(each), each.member_id))


def member_view(group: Group, member: Member) -> Document:
    """Return where one member stands, and what it holds."""
    metadata, current = member.metadata, member.current
    able = abilities(said_for(group.target.assignor, metadata.assignors).metadata)
    return {
        "member_id": member.member_id,
        "worker_id": worker_of(member),
        "instance_id": metadata.instance_id,
        "rack": metadata.rack,
        "tags": sorted(able.tags),
        "capacity": able.capacity,
        "state": member.state.name,
        "member_epoch": current.member_epoch,
        "assigned": _grants(current.assigned),
        "pending_revocation": _grants(current.pending),
        "target": _resources(group.share_of(member.member_id)),
        "assignors": [each.name for each in metadata.assignors],
        "rebalance_timeout_ms": metadata.rebalance_timeout_ms,
    }


def assigned(group: Group) -> Resources:
    """Return the configured resources that some member holds and is not asked to give up."""
    held = (each.current.assigned for each in group.members.values())
    return frozenset(resource for grants in held for resource in grants) & group.configured


def parked(group: Group) -> Resources:
    """Return what is left out on purpose until a deadline that has not come yet."""
    return frozenset(group.schedule.parked) - group.schedule.fired


def awaited(group: Group) -> Resources:
    """Return the configured resources that nobody runs, kept for members that are away."""
    shares = (group.share_of(member_id) for member_id in group.away)
    kept = (resource for share in shares for resource in share)
    return frozenset(kept).intersection(group.configured) - group.owner.keys()


def unplaceable(group: Group) -> Resources:
    """Return the configured resources that no member can take."""
    return frozenset(group.target.unplaceable) & group.configured


def _target(group: Group) -> Document:
    target = group.target
    return {
        "assignment_epoch": target.assignment_epoch,
        "assignor": target.assignor,
        "computed_by": target.computed_by,
        "time_ms": target.time_ms,
        "members": {each: _resources(group.target_of[each]) for each in sorted(group.target_of)},
        "unplaceable": [
            {**_resource(each), "reason": reason}
            for each, reason in sorted(target.unplaceable.items())
        ],
        "error": target.error,
        "failures": target.failures,
        "retry_at_ms": target.retry_at_ms,
    }


def worker_order(order: Operator) -> Document:
    """Return what operators want of one worker; no time where nobody is expected."""
    return {
        "worker": order.name,
        "cordoned": order.cordoned,
        "draining": order.draining,
        "expected_back_ms": order.expected_back_ms or None,
        "removing": order.removing or None,
    }


def placement(order: Operator) -> Document:
    """Return what operators want of one connector, or of one task."""
    resource = _resource(Resource(order.name, order.task))
    return {**resource, "weight": order.weight, "pins": list(order.pins)}


def _bump(bump: GroupMetadata) -> Document:
    return {**_cause(bump.cause), "time_ms": bump.time_ms, "actor": bump.actor}


def _loss(loss: Loss) -> Document:
    return {
        "member_id": loss.member_id,
        "instance_id": loss.instance_id,
        "worker_id": loss.url,
        "resources": _resources(loss.resources),
        **_cause(loss.cause),
        "time_ms": loss.time_ms,
        "deadline_ms": loss.deadline_ms,
    }


def _cause(cause: Cause) -> Document:
    return {"cause": cause.why.value, "subject": cause.subject}


def _grants(grants: Grants) -> list[Json]:
    return [{**_resource(each), "grant_epoch": grants[each]} for each in sorted(grants)]


def _resources(resources: Iterable[Resource]) -> list[Json]:
    return [_resource(each) for each in sorted(resources)]


def _resource(resource: Resource) -> Document:
    """Return a resource beyond doubt: a connector's name may look like a task's."""
    return {
        "id": str(resource),
        "connector": resource.connector,
        "task": resource.task if resource.is_task else None,
    }
