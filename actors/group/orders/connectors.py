"""Connectors and their tasks: how they split, what they report, how they end (DATA_PLANE §1)."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ....events.catalogue import commit_key, key_of
from ....events.commits import Committed
from ....events.group import Group, token_of
from ....events.model import Resource, RunState, TaskConfig, Why
from ....events.records import (
    ConnectorConfig,
    ConnectorsTasksMetadata,
    OffsetsAltered,
    Operator,
    Record,
    TargetState,
    TaskConfigs,
    TaskStatus,
    Tombstone,
)
from ...messages.commands import FinishDeletion
from ...messages.errors import Error
from ...messages.members import ExternalStateRemoved, PutTaskConfigs, ReportStatus, StatusUpdate
from ...messages.orders import DeleteConnector
from ..state.soft_state import Decision, SoftState, accept, bump, refuse
from .offsets import forget_alterations

UNSPLIT = "its tasks stay as they were: stop it"
"""What a worker has to do whose task configs are refused."""


def delete_connector(
    group: Group, soft: SoftState, command: DeleteConnector, now_ms: int
) -> Decision:
    """Remove a connector and its tasks from the configured resources; its config is deleted last.

    One that is being deleted may be told to wait for less.
    """
    name = command.connector
    old = group.connectors.get(name)
    given_up = () if command.publishes else soft.facts.unpublished(name)
    graves = tuple(Tombstone(Committed, commit_key(each)) for each in given_up)
    if old is not None and old.deleting and (graves or (old.to_forget and not command.forgets)):
        to_forget, count = old.to_forget and command.forgets, old.given_up + len(graves)
        decision = accept(group, soft, [replace(old, to_forget=to_forget, given_up=count)])
        return replace(decision, offset_records=graves)
    if old is None or old.deleting:
        message = f"there is no connector {name} to delete, or no longer; nothing was changed"
        return refuse(soft, Error.UNKNOWN_CONNECTOR, message)
    rest = frozenset(resource for resource in group.configured if resource.connector != name)
    to_forget = command.forgets and name in group.task_configs
    ending = replace(
        old,
        deleting=True,
        to_forget=to_forget,
        given_up=len(graves),
        actor=command.principal,
    )
    records: list[Record] = [ending, ConnectorsTasksMetadata(rest)]
    if group.members:
        records.append(bump(group, Why.CONNECTOR_DELETED, name, now_ms, command.principal))
    return replace(accept(group, soft, records), offset_records=graves)


def finish_deletion(group: Group, soft: SoftState, command: FinishDeletion, _: int) -> Decision:
    """Delete a config once no member holds the connector and all its batches are published.

    Nothing may be left of it outside the log; its offsets stay.
    """
    name = command.connector
    old = group.connectors.get(name)
    if old is None or not old.deleting or old.to_forget:
        return Decision(soft)
    if soft.facts.has_unpublished(name) or _is_wanted(group, name):
        return Decision(soft)
    statuses = sorted(each for each in group.statuses if each.connector == name)
    records: list[Record] = [Tombstone(TaskStatus, tuple(each)) for each in statuses]
    if name in group.task_configs:
        records.append(Tombstone(TaskConfigs, (name,)))
    if name in group.target_states:
        records.append(Tombstone(TargetState, (name,)))
    if name in group.offset_changes:
        records.append(Tombstone(OffsetsAltered, (name,)))
    ordered = sorted(each for each in group.resource_orders if each.connector == name)
    records += (Tombstone(Operator, key_of(group.resource_orders[each])) for each in ordered)
    records.append(Tombstone(ConnectorConfig, (name,)))
    return Decision(soft, tuple(records), offset_records=forget_alterations(soft.facts, [name]))


def external_state_removed(
    group: Group, soft: SoftState, command: ExternalStateRemoved, _: int
) -> Decision:
    """Record that a deleted connector's external state is removed. Idempotent."""
    if command.member_id not in group.members:
        message = f"{command.member_id} is no member: what it forgot is not known to be so"
        return refuse(soft, Error.UNKNOWN_MEMBER_ID, message)
    old = group.connectors.get(command.connector)
    if old is None or not old.to_forget or old.time_ms != command.config_ms:
        return accept(group, soft, ())
    return accept(group, soft, [replace(old, to_forget=False)])


def _is_wanted(group: Group, name: str) -> bool:
    """Return whether a member holds a connector or its tasks, or has them in its target."""
    return any(each.connector == name for each in (*group.owner, *group.target_owner))


def put_task_configs(
    group: Group, soft: SoftState, command: PutTaskConfigs, now_ms: int
) -> Decision:
    """Record a connector's task configs; the epoch rises if the number of tasks changes."""
    name = command.connector
    if token_of(group, command.member_id, Resource(name)) != command.token:
        message = f"{command.member_id} does not run connector {name} under {command.token}"
        return refuse(soft, Error.FENCED, f"{message}; {UNSPLIT}")
    if group.connectors[name].deleting:
        return refuse(soft, Error.FENCED, f"connector {name} is being deleted; {UNSPLIT}")
    if (state := group.target_state(name)) is not RunState.RUNNING:
        return refuse(soft, Error.FENCED, f"connector {name} is to be {state.value}; {UNSPLIT}")
    old = group.task_configs.get(name)
    split = _split(old, command)
    if old is not None and split.tasks == old.tasks:
        return accept(group, soft, ())
    others = {each for each in group.configured if each.connector != name or not each.is_task}
    configured = frozenset(others.union(Resource(name, n) for n in range(len(split.tasks))))
    records: list[Record] = [split]
    if configured != group.configured:
        records.append(ConnectorsTasksMetadata(configured))
        if group.members:
            records.append(bump(group, Why.TASKS_CHANGED, name, now_ms))
    return accept(group, soft, records)


def _split(old: TaskConfigs | None, command: PutTaskConfigs) -> TaskConfigs:
    """Return the new task configs; a task whose config did not change keeps its generation."""
    generation = old.generation + 1 if old else 1
    before = dict(enumerate(old.tasks)) if old else {}

    def task(number: int, config: Mapping[str, str]) -> TaskConfig:
        was = before.get(number)
        return was if was and was.config == config else TaskConfig(dict(config), generation)

    tasks = tuple(task(number, config) for number, config in enumerate(command.configs))
    return TaskConfigs(command.connector, generation, tasks)


def report_status(group: Group, soft: SoftState, command: ReportStatus, _: int) -> Decision:
    """Record a worker's statuses of its resources; an older status never replaces a newer one.

    Of two statuses under one token the later one counts, by the worker's clock: messages may arrive
    twice, or in another order.
    """
    member = group.member(command.member_id)
    if member is None:
        message = f"{command.member_id} is no member: its report is not kept; join, and report then"
        return refuse(soft, Error.UNKNOWN_MEMBER_ID, message)
    worker = member.metadata.worker_url
    statuses = [
        TaskStatus(
            each.resource,
            each.state,
            worker,
            each.token,
            each.at_ms,
            each.reason,
            each.restarts,
        )
        for each in _find_newer(group, command.updates)
    ]
    return accept(group, soft, statuses)


def _find_newer(group: Group, updates: tuple[StatusUpdate, ...]) -> Iterator[StatusUpdate]:
    latest = {update.resource: update for update in updates}
    for update in latest.values():
        last = group.statuses.get(update.resource)
        gone = update.resource.connector not in group.connectors
        when = (update.token, update.at_ms)
        if gone or (last is not None and when < (last.token, last.time_ms)):
            continue
        if last is None or (when, update.state, update.reason) != (
            (last.token, last.time_ms),
            last.state,
            last.reason,
        ):
            yield update
