"""Views of a group: its work, the statuses, and the progress of each task.

The first two are pure functions of the group; the progress (rows, batches, bytes and lag of each
task) is looked up in the offset log, by key.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from ..events.catalogue import entry_key
from ..events.commits import NO_COST, Commit, Committed, Cost, Lag, Offset, TaskProgress
from ..events.entries.codec import decode
from ..events.group import Group, Member, token_of
from ..events.log.reader import LogReader, ReadableLog
from ..events.model import (
    BATCHES_RUN,
    NEVER_RESTARTED,
    AutoRestart,
    ErrorClass,
    Resource,
    Resources,
    RunState,
)
from ..events.records import Record


@dataclass(frozen=True, slots=True)
class ResourceStatus:
    """The run state of a resource, and its worker.

    `why` it failed, what it waits for, or why nobody can take it.
    """

    state: RunState
    worker: str
    why: str = ""
    restarts: AutoRestart = NEVER_RESTARTED


@dataclass(frozen=True, slots=True)
class LogFigures:
    """The end of a log, and its size on disk."""

    end: int
    bytes: int

    @classmethod
    def of(cls, log: LogReader) -> "LogFigures":
        """Return the figures of a log now; raises `LogError`."""
        blocks = sum(each.stat().st_blocks for each in log.path.iterdir() if each.is_file())
        return cls(log.end(), blocks * _BLOCK_BYTES)


_BLOCK_BYTES: Final = 512
TOPIC: Final = "kafka_topic"
"""The member of a source partition that names a topic, as in Connect's offsets of sinks."""
RESUMING: Final = "it is no longer to be paused, and its worker has not followed yet"
STOPPING: Final = "it stops: its tasks end, and publish what they committed"


def connector_names(group: Group) -> list[str]:
    """Return the connectors that are not being deleted, in order."""
    return sorted(name for name, found in group.connectors.items() if not found.deleting)


def resource_status(group: Group, resource: Resource) -> ResourceStatus:
    """Return the status of a resource, by the log.

    A status whose token is not the current one is of the past: the resource is UNASSIGNED.
    """
    status = group.statuses.get(resource)
    holder = group.owner.get(resource)
    if holder is None:
        why = group.target.unplaceable.get(resource) or _wait(group, resource)
        return ResourceStatus(RunState.UNASSIGNED, status.worker if status else "", why)
    if status is not None and status.token == token_of(group, holder, resource):
        if status.state is RunState.STOPPED and not group.is_stopped(resource.connector):
            return ResourceStatus(RunState.RUNNING, status.worker, STOPPING)
        why = "" if status.reason == BATCHES_RUN else status.reason
        is_to_be = group.target_state(resource.connector)
        if status.state is RunState.PAUSED and is_to_be is not RunState.PAUSED:
            why = RESUMING
        return ResourceStatus(status.state, status.worker, why, status.restarts)
    return ResourceStatus(RunState.UNASSIGNED, worker_of(group, holder))


def worker_of(group: Group, member_id: str) -> str:
    """Return the name of a member's worker for people: its url, or else the member id."""
    member = group.member(member_id)
    return member.metadata.worker_url if member else member_id


def _wait(group: Group, resource: Resource) -> str:
    """Return which worker a resource waits for, and until when if known; "" if it does not wait."""
    owner = group.members.get(group.target_owner.get(resource, ""))
    if owner is not None and owner.is_away:
        worker = owner.metadata.worker_url
        return f"{worker} left for a while, and its place is kept for its return"
    due_ms = group.schedule.parked.get(resource)
    if due_ms is None or resource in group.schedule.fired:
        return ""
    due = datetime.fromtimestamp(due_ms // 1_000, UTC)
    return f"its worker is lost, and waited for until {due:%Y-%m-%dT%H:%M:%SZ}"


def run_states(group: Group, name: str) -> dict[RunState, int]:
    """Return how many tasks of a connector are in each state, the empty ones included."""
    counts = dict.fromkeys(RunState, 0)
    for number in group.task_numbers(name):
        counts[resource_status(group, Resource(name, number)).state] += 1
    return counts


def count_errors(group: Group, name: str) -> Counter[ErrorClass]:
    """Count the failed ones of a connector and its tasks, by who has to fix them."""
    resources = (Resource(name), *(Resource(name, each) for each in group.task_numbers(name)))
    found = (ErrorClass.of(resource_status(group, each).why) for each in resources)
    return Counter(each for each in found if each)


def is_at_rest(group: Group, name: str) -> bool:
    """Return whether a connector is paused or stopped, or has a task that failed."""
    if group.target_state(name) is not RunState.RUNNING:
        return True
    tasks = (Resource(name, number) for number in group.task_numbers(name))
    return any(resource_status(group, each).state is RunState.FAILED for each in tasks)


def sorted_members(group: Group) -> list[Member]:
    """Return the members of a group, ordered by worker."""
    return sorted(group.workers(), key=lambda m: (m.metadata.worker_url, m.member_id))


def assigned_resources(group: Group) -> Resources:
    """Return the configured resources that a member holds and need not revoke."""
    held = (each.current.assigned for each in group.workers())
    return frozenset(resource for grants in held for resource in grants) & group.configured


def parked_resources(group: Group) -> Resources:
    """Return the resources that are parked: left out on purpose until a deadline."""
    return frozenset(group.schedule.parked) - group.schedule.fired


def awaited_resources(group: Group) -> Resources:
    """Return the configured resources that no member runs, kept for members that are away."""
    shares = (group.share_of(member_id) for member_id in group.away)
    kept = (resource for share in shares for resource in share)
    return frozenset(kept).intersection(group.configured) - group.owner.keys()


def unplaceable_resources(group: Group) -> Resources:
    """Return the configured resources that no member can take."""
    return frozenset(group.target.unplaceable) & group.configured


NO_LAG: Final = Lag(0, 0, 0)


def is_behind(lag: Lag) -> bool:
    """Return whether something is left to read."""
    return bool(lag.ranges or lag.bytes or lag.records)


@dataclass(frozen=True, slots=True)
class Progress:
    """All that one task, or a connector's tasks together, ever committed.

    `last_commit_ms` is wall clock; `unpublished` counts the batches that are committed but
    not yet known to be in place. `lag` is what was left to read when the last batch was planned,
    None where a task's source cannot tell.
    """

    batches: int = 0
    rows_in: int = 0
    rows_out: int = 0
    bytes_out: int = 0
    last_commit_ms: int = 0
    unpublished: int = 0
    lag: Lag | None = NO_LAG
    skipped: int = 0
    """Bad rows that were left out, of which `dead_letters` are in the dead letter queue."""
    dead_letters: int = 0
    cost: Cost = NO_COST
    """What the batches took."""
    oldest_commit_ms: int = 0
    """The last commit of the task that has committed nothing for longest, of those that had left
    something to read; 0: there is none."""
    uncommitted: int = 0
    """How many tasks of a connector's present split never committed anything."""

    def plus(self, other: "Progress") -> "Progress":
        """Return this progress and another together."""
        return Progress(
            self.batches + other.batches,
            self.rows_in + other.rows_in,
            self.rows_out + other.rows_out,
            self.bytes_out + other.bytes_out,
            max(self.last_commit_ms, other.last_commit_ms),
            self.unpublished + other.unpublished,
            sum_of_lags(self.lag, other.lag),
            self.skipped + other.skipped,
            self.dead_letters + other.dead_letters,
            self.cost.plus(other.cost),
            min(filter(None, (self.oldest_commit_ms, other.oldest_commit_ms)), default=0),
        )


def connector_progress(progress: Mapping[int, Progress], tasks: Collection[int]) -> Progress:
    """Return the progress of a connector's tasks together.

    `tasks` are those of its present split: others did their part, and have nothing left to read.
    """
    total = Progress()
    for task, each in progress.items():
        total = total.plus(each if task in tasks else replace(each, lag=NO_LAG, oldest_commit_ms=0))
    uncommitted = sum(task not in progress or not progress[task].last_commit_ms for task in tasks)
    return replace(total, uncommitted=uncommitted)


def task_progress(log: ReadableLog, connector: str) -> Mapping[int, Progress]:
    """Return the progress of each task that ever committed; raises `LogError`, `CodecError`."""
    waiting = Counter(each.commit_id.task for each in unpublished_batches(log, connector))
    told = {
        record.last.task: _of_task(record, waiting.pop(record.last.task, 0))
        for record in _scan(log, TaskProgress, connector)
        if isinstance(record, TaskProgress)
    }
    return told | {task: Progress(unpublished=count) for task, count in waiting.items()}


def unpublished_batches(log: ReadableLog, connector: str) -> Sequence[Commit]:
    """Return the committed batches not known to be published, by task, oldest first.

    Raises `LogError`, `CodecError`.
    """
    found = _scan(log, Committed, connector)
    return [record.commit for record in found if isinstance(record, Committed)]


def read_topics(log: ReadableLog, connector: str) -> list[str]:
    """Return the topics that a connector has read, as its offsets name them, in order.

    Raises `LogError`, `CodecError`.
    """
    found = _scan(log, Offset, connector)
    named = (each.partition.get(TOPIC) for each in found if isinstance(each, Offset))
    return sorted({each for each in named if isinstance(each, str)})


def logged_offsets(log: ReadableLog, connector: str) -> Sequence[Offset]:
    """Return how far each source partition was read, in the order of the partitions' spelling.

    Raises `LogError`, `CodecError`.
    """
    found = _scan(log, Offset, connector)
    return [record for record in found if isinstance(record, Offset)]


def _of_task(record: TaskProgress, unpublished: int) -> Progress:
    return Progress(
        record.batches,
        record.rows_in,
        record.rows_out,
        record.bytes_out,
        record.time_ms,
        unpublished,
        record.lag,
        record.skipped,
        record.dead_letters,
        record.cost,
        record.time_ms if record.lag and is_behind(record.lag) else 0,
    )


def _scan(log: ReadableLog, kind: type, connector: str) -> list[Record | None]:
    return [decode(entry) for entry in log.scan(*entry_key(kind, (connector,)))]


def sum_of_lags(one: Lag | None, other: Lag | None) -> Lag | None:
    """Return the sum of the lags; None if one of them is unknown."""
    if one is None or other is None:
        return None
    unknown = one.records is None or other.records is None
    records = None if unknown else (one.records or 0) + (other.records or 0)
    return Lag(one.ranges + other.ranges, one.bytes + other.bytes, records)
