"""Events of a group as lines for the log of the node: one line for each, written once.

A reader of the control log says what the records tell; a worker says only what no record has, its
batches and failures. The lines name the configs of connectors by their keys, never by a value.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from ...events.group import Group
from ...events.model import BATCHES_RUN, Cause, ErrorClass, MemberState, Resource, RunState, Why
from ...events.records import (
    ConnectorConfig,
    CurrentAssignment,
    GroupConfiguration,
    GroupDeletion,
    GroupMetadata,
    Loss,
    MemberMetadata,
    OffsetsAltered,
    OwnerBegan,
    OwnerResigned,
    Record,
    TargetAssignment,
    TargetState,
    TaskConfigs,
    TaskStatus,
    Tombstone,
)
from ..explain.diff import TargetChange, Transfer
from ..explain.reasons import Reason

_TOLD_BY_WORKERS: Final = {RunState.FAILED, RunState.RESTARTING}
"""The states of which the worker says more than its status."""
_DOES: Final = {
    RunState.RUNNING: "runs",
    RunState.PAUSED: "is paused",
    RunState.STOPPED: "has stopped",
    RunState.UNASSIGNED: "has ended",
    RunState.RESTARTING: "restarts",
    RunState.FAILED: "has FAILED",
}


class EventLine(NamedTuple):
    """One log line: its level (as in `logging`), message and subject."""

    text: str
    resource: Resource | None = None
    epoch: int | None = None
    worker: str = ""
    level: int = logging.INFO
    time_ms: int = 0
    """When it happened, wall clock."""

    @property
    def fields(self) -> dict[str, object]:
        """Return the attributes for the log record."""
        return fields_about(self.resource, self.epoch, short(self.worker))


class EventLines:
    """Makes lines of the records of a group, in the order of its log.

    `take` is called after the group has evolved by the record, with the change that its target
    made, if it is one.
    """

    def __init__(self, group: Group) -> None:
        """`group` is as it was before the first record that is told."""
        self._group = group
        self._connectors: dict[str, ConnectorConfig] = dict(group.connectors)
        """The configs as they were told last."""
        self._splits: dict[str, TaskConfigs] = dict(group.task_configs)
        self._seats: dict[str, MemberMetadata] = {
            member_id: each.metadata for member_id, each in group.members.items()
        }
        self._runs: dict[Resource, TaskStatus] = dict(group.statuses)
        """What each resource did last."""

    def apply(self, record: Record, change: TargetChange | None = None) -> Iterator[EventLine]:
        """Yield the lines of the next record."""
        match record:
            case ConnectorConfig():
                yield from self._config(record)
            case TaskConfigs():
                yield from self._split(record)
            case TaskStatus():
                yield from self._status(record)
            case MemberMetadata():
                yield from self._seat(record)
            case TargetAssignment():
                yield from _target(record, change)
            case Tombstone():
                yield from self._grave(record)
            case _:
                yield from _of_group(record, self._worker)
                yield from _of_connector(record)

    def _config(self, record: ConnectorConfig) -> Iterator[EventLine]:
        name, old = record.connector, self._connectors.get(record.connector)
        self._connectors[name] = record
        resource, by = Resource(name), _by(record.actor)
        if record.deleting:
            if old is None or not old.deleting:
                yield EventLine(f"connector {name} is being deleted{by}", resource)
        elif old is None and record.version == 1:
            made_by = record.config.get("connector.class", "").rpartition(".")[2]
            text = f"connector {name} was created{by}" + (f": {made_by}" if made_by else "")
            yield EventLine(text, resource)
        elif old is None or old.config != record.config:
            keys = ", ".join(_changed_keys(old.config if old else {}, record.config))
            text = f"the config of connector {name} was changed{by}: {keys}"
            yield EventLine(text, resource)
        else:
            yield EventLine(f"connector {name} is restarted{by}", resource)

    def _split(self, record: TaskConfigs) -> Iterator[EventLine]:
        name, old = record.connector, self._splits.get(record.connector)
        self._splits[name] = record
        count, before = len(record.tasks), len(old.tasks) if old else 0
        anew = [n for n, each in enumerate(record.tasks) if each.generation == record.generation]
        if old is None or count != before:
            of = f", it had {before}" if old else ""
            text = f"connector {name} is split into {count} tasks{of}"
            yield EventLine(text, Resource(name))
        elif anew:
            text = f"of connector {name} {len(anew)} of {count} tasks start with another config"
            is_restart = [each.config for each in old.tasks] == [
                each.config for each in record.tasks
            ]
            if is_restart:
                text = f"of connector {name} {len(anew)} of {count} tasks are restarted"
            yield EventLine(text, Resource(name))

    def _status(self, record: TaskStatus) -> Iterator[EventLine]:
        resource, state = record.resource, record.state
        before, self._runs[resource] = self._runs.get(resource), record
        worker, why = short(record.worker), record.reason.partition("\n")[0]
        if before and (before.token, before.state) == (record.token, state):
            if ErrorClass.of(before.reason) and not ErrorClass.of(why):
                text = f"{resource} goes on at {worker}"
                yield EventLine(text, resource, record.token.grant_epoch, record.worker)
            return
        if record.reason == BATCHES_RUN:
            return
        is_waiting = state is RunState.UNASSIGNED and why.startswith("waiting")
        told = "begins" if is_waiting else _DOES[state]
        is_known = state in _TOLD_BY_WORKERS and not why.startswith("restart asked")
        text = f"{resource} {told} at {worker}"
        text += f": {why}" if why and why != "stopped" else ""
        level = logging.DEBUG if is_known else logging.INFO
        yield EventLine(text, resource, record.token.grant_epoch, record.worker, level)

    def _seat(self, record: MemberMetadata) -> Iterator[EventLine]:
        old = self._seats.get(record.member_id)
        self._seats[record.member_id] = record
        worker, epoch = record.worker_url, record.joined_epoch
        if old is not None and old.incarnation == record.incarnation:
            return
        if record.succession is not None:
            text = f"worker {short(worker)} came back to its seat as member {record.member_id}"
        else:
            text = f"worker {short(worker)} joined as member {record.member_id}"
        yield EventLine(text, None, epoch, worker)

    def _grave(self, record: Tombstone) -> Iterator[EventLine]:
        name = str(record.key[0]) if record.key else ""
        if record.kind is ConnectorConfig and self._connectors.pop(name, None) is not None:
            yield EventLine(f"connector {name} is deleted", Resource(name))
        elif record.kind is TaskConfigs:
            self._splits.pop(name, None)
        elif record.kind is TaskStatus:
            self._runs.pop(Resource(name, int(record.key[1])), None)
        elif record.kind is MemberMetadata and (seat := self._seats.pop(name, None)) is not None:
            worker = seat.worker_url
            text = f"worker {short(worker)} is no member any more"
            yield EventLine(text, None, self._group.group_epoch, worker)

    def _worker(self, member_id: str) -> str:
        seat = self._seats.get(member_id)
        return seat.worker_url if seat else member_id


def _of_group(record: Record, worker: Callable[[str], str]) -> Iterator[EventLine]:
    """Yield the line of a group's record that needs no earlier record."""
    match record:
        case GroupMetadata(epoch, cause, actor=actor):
            yield EventLine(f"epoch {epoch}: {_cause(cause)}{_by(actor)}", None, epoch)
        case CurrentAssignment(member_id, epoch, state=MemberState.AWAY):
            who = worker(member_id)
            text = f"worker {short(who)} left for a while: its place is kept"
            yield EventLine(text, None, epoch, who)
        case Loss(url=url, resources=lost, cause=cause):
            gone = "left" if cause.why is Why.MEMBER_LEFT else "is lost"
            text = f"worker {short(url)} {gone}: {len(lost)} connectors and tasks may wait for it"
            yield EventLine(text, None, None, url)
        case GroupConfiguration(configs):
            told = ", ".join(f"{key}={configs[key]}" for key in sorted(configs)) or "its node's"
            yield EventLine(f"the group's settings are {told}")
        case GroupDeletion(epoch, actor=actor):
            yield EventLine(f"the group was deleted at epoch {epoch}{_by(actor)}", None, epoch)
        case OwnerBegan(epoch, node, silence_ms=silence_ms):
            after = f" after {silence_ms / 1_000:.1f} s of silence" if silence_ms else ""
            yield EventLine(f"node {node} owns the group{after}, as owner {epoch}")
        case OwnerResigned(epoch, node, to):
            taker = f"node {to}" if to else "any other"
            yield EventLine(f"node {node}, owner {epoch}, gives the group up to {taker}")
        case _:
            pass


def _of_connector(record: Record) -> Iterator[EventLine]:
    """Yield the line of a connector's record that needs no earlier record."""
    match record:
        case TargetState(name, is_complete=True):
            text = f"connector {name} has stopped: all that counts is published"
            yield EventLine(text, Resource(name))
        case TargetState(name, state, actor=actor):
            yield EventLine(f"connector {name} is to be {state.value}{_by(actor)}", Resource(name))
        case OffsetsAltered(name, how, count, actor=actor):
            text = f"offsets of connector {name} were {how}{_by(actor)}: {count} partitions"
            yield EventLine(text, Resource(name))
        case _:
            pass


def _target(record: TargetAssignment, change: TargetChange | None) -> Iterator[EventLine]:
    """Yield the line of a target, and one of each resource that it moves."""
    epoch = record.assignment_epoch
    if record.error:
        text = f"no target for epoch {epoch}: attempt {record.failures} failed, {record.error}"
        yield EventLine(text, None, epoch, level=logging.WARNING)
        return
    if change is None:
        return
    by = f" by {record.assignor}" if record.assignor else ""
    counts = {
        "moved": len(change.moved),
        "returned": len(change.returned),
        "new": len(change.placed),
        "without a place": len(change.unplaceable),
        "kept": change.kept_count,
    }
    told = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    level = logging.INFO if told else logging.DEBUG
    yield EventLine(f"target for epoch {epoch}{by}: {told or 'nothing'}", None, epoch, level=level)
    for each in (*change.moved, *change.returned):
        yield _move(each, change.reasons.get(each.resource), epoch)
    for each in change.placed:
        text = f"{each.resource} goes to {short(each.new_owner.worker)}"
        yield EventLine(text, each.resource, epoch, each.new_owner.worker, logging.DEBUG)
    for resource, why in change.unplaceable.items():
        text = f"{resource} has no place: {why}"
        yield EventLine(text, resource, epoch, level=logging.WARNING)


def _move(each: Transfer, reason: Reason | None, epoch: int) -> EventLine:
    giver = short(each.previous_owner.worker) if each.previous_owner else "nobody"
    taker = short(each.new_owner.worker)
    if reason is None:
        text = f"{each.resource} returns to {taker}"
    else:
        text = f"{each.resource} moves from {giver} to {taker}: {reason}"
    return EventLine(text, each.resource, epoch, each.new_owner.worker)


def fields_about(
    resource: Resource | None, epoch: int | None = None, worker: str = ""
) -> dict[str, object]:
    """Return the `extra` of a log call; the epoch is the grant epoch of a resource's work."""
    told: dict[str, object] = {"epoch": epoch, "worker": worker}
    if resource is not None:
        task = resource.task if resource.is_task else None
        told |= {"connector": resource.connector, "task": task}
    return told


def _cause(cause: Cause) -> str:
    """Return the cause of an epoch and its originator; a worker has its name."""
    is_about_work = cause.why.value.partition("-")[0] in {"connector", "tasks"}
    return str(cause if is_about_work else cause._replace(subject=short(cause.subject)))


def _by(actor: str | None) -> str:
    return f" by {actor}" if actor else ""


def _changed_keys(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    return sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))


def short(worker: str) -> str:
    """Return the name of a worker by its url: `w1` of `127.0.0.1:8083/w1`."""
    return worker.rpartition("/")[2]
