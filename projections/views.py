"""A group and what it runs in plain words, for whoever asks from outside.

Everything here is a pure function of a group, and returns plain data that JSON can hold.
Connectors are told in the shapes of Kafka Connect's REST API, groups in our own. Configs go
in as they may be shown: what is secret in them is not known here.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from ..events.group import Group, Member, token_of
from ..events.model import BATCHES_RUN, Resource, Resources, RunState


@dataclass(frozen=True, slots=True)
class Doing:
    """What a resource does, and at which worker.

    `why` it failed, what it waits for, or why nobody can take it.
    """

    state: RunState
    worker: str
    why: str = ""


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


def run_states(group: Group, name: str) -> dict[RunState, int]:
    """Return how many tasks of a connector are in each state, the empty ones included."""
    counts = dict.fromkeys(RunState, 0)
    for number in task_numbers(group, name):
        counts[doing(group, Resource(name, number)).state] += 1
    return counts


def members(group: Group) -> list[Member]:
    """Return the members of a group, ordered by worker."""
    return sorted(group.members.values(), key=lambda each: (worker_of(each), each.member_id))


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
