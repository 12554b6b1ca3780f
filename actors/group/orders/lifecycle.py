"""The target state of a connector (pause, resume, stop), and restarts (DATA_PLANE §1).

* RUNNING is the state of every connector, unless it is created in another.
* PAUSED: its work stays with its workers, and begins no batch.
* STOPPED: its tasks are revoked; only the connector itself stays with its worker. Its task configs
  are kept, so that its tasks are there at once when it is resumed. It counts as stopped once the
  last task has ended, and all committed batches are published.

A restart is a new generation of a resource, and with it a new fencing token: the worker that holds
the resource stops it, and starts it again.
"""

from collections.abc import Iterator
from dataclasses import replace

from ....events.group import Group, generation_of, token_of
from ....events.model import Resource, Resources, RunState, Token, Why
from ....events.records import (
    ConnectorConfig,
    ConnectorsTasksMetadata,
    Record,
    TargetState,
    TaskConfigs,
    TaskStatus,
)
from ...messages.commands import FinishStop
from ...messages.errors import Error
from ...messages.orders import Restart, SetTargetState
from ..state.soft_state import Decision, SoftState, accept, bump, refuse


def set_target_state(
    group: Group, soft: SoftState, command: SetTargetState, now_ms: int
) -> Decision:
    """Set a connector's target state; the epoch rises if it gets or loses tasks by that."""
    name, state = command.connector, command.state
    if not _is_there(group, name):
        return refuse(soft, Error.UNKNOWN_CONNECTOR, f"Unknown connector {name}")
    if group.target_state(name) is state:
        return accept(group, soft, ())
    records: list[Record] = [TargetState(name, state, now_ms, command.principal)]
    split = group.task_configs.get(name)
    tasks = {Resource(name, number) for number in range(len(split.tasks) if split else 0)}
    configured = group.configured
    if state is RunState.STOPPED:
        configured -= tasks
    elif state is RunState.RUNNING:
        configured |= tasks
    if configured != group.configured:
        records.append(ConnectorsTasksMetadata(configured))
        if group.members:
            is_stop = state is RunState.STOPPED
            why = Why.CONNECTOR_STOPPED if is_stop else Why.CONNECTOR_RESUMED
            records.append(bump(group, why, name, now_ms, command.principal))
    return accept(group, soft, records)


def is_stopping(wanted: TargetState) -> bool:
    """Return whether a connector is to stop, and is not recorded as stopped yet."""
    return wanted.state is RunState.STOPPED and not wanted.is_complete


def finish_stop(group: Group, soft: SoftState, command: FinishStop, _: int) -> Decision:
    """Record a connector as stopped once no member has a task of it, and all is published."""
    name = command.connector
    wanted = group.target_states.get(name)
    if wanted is None or not is_stopping(wanted) or soft.facts.has_unpublished(name):
        return Decision(soft)
    held = (*group.owner, *group.target_owner)
    if any(each.connector == name and each.is_task for each in held):
        return Decision(soft)
    return Decision(soft, (replace(wanted, is_complete=True),))


def restart(group: Group, soft: SoftState, command: Restart, now_ms: int) -> Decision:
    """Raise the generation of the resources to restart, and set their status to RESTARTING."""
    name, task = command.resource
    if not _is_there(group, name):
        return refuse(soft, Error.UNKNOWN_CONNECTOR, f"Unknown connector: {name}")
    if command.resource.is_task and task not in group.task_numbers(name):
        return refuse(soft, Error.UNKNOWN_CONNECTOR, f"Unknown task: {name}-{task}")
    chosen = chosen_for_restart(group, command)
    renewed: list[ConnectorConfig | TaskConfigs] = []
    if Resource(name) in chosen:
        config = group.connectors[name]
        version = config.version + 1
        renewed.append(replace(config, version=version, actor=command.principal))
    if tasks := {each.task for each in chosen if each.is_task}:
        renewed.append(_renewed(group.task_configs[name], tasks))
    by = f"asked for by {command.principal}" if command.principal else "asked for"
    statuses = _restarting(group, sorted(chosen), f"restart {by}", now_ms)
    return accept(group, soft, (*renewed, *statuses))


def chosen_for_restart(group: Group, command: Restart) -> Resources:
    """Return the resources that a restart of a connector, or of a task, includes."""
    name = command.resource.connector
    numbers = group.task_numbers(name) if command.include_tasks else ()
    asked = {command.resource, *(Resource(name, number) for number in numbers)}
    if not command.only_failed:
        return frozenset(asked)
    return frozenset(each for each in asked if _has_failed(group, each))


def _is_there(group: Group, name: str) -> bool:
    config = group.connectors.get(name)
    return config is not None and not config.deleting


def _has_failed(group: Group, resource: Resource) -> bool:
    status, owner = group.statuses.get(resource), group.owner.get(resource)
    if status is None or owner is None or status.state is not RunState.FAILED:
        return False
    return status.token == token_of(group, owner, resource)


def _renewed(split: TaskConfigs, numbers: set[int]) -> TaskConfigs:
    """Return the task configs with a new generation of some tasks."""
    generation = split.generation + 1
    tasks = (
        replace(task, generation=generation) if number in numbers else task
        for number, task in enumerate(split.tasks)
    )
    return replace(split, generation=generation, tasks=tuple(tasks))


def _restarting(
    group: Group, chosen: list[Resource], reason: str, now_ms: int
) -> Iterator[TaskStatus]:
    """Yield the status of each restarting resource that a member holds, with its new token.

    Its time is that of the worker's last status, so that whatever the worker reports of the restart
    is newer, even by a clock that is behind.
    """
    for resource in chosen:
        owner = group.owner.get(resource)
        token = token_of(group, owner, resource) if owner else None
        member = group.member(owner) if owner else None
        if member is None or token is None:
            continue
        raised = _next_generation(group, resource) - (generation_of(group, resource) or 0)
        status = group.statuses.get(resource)
        yield TaskStatus(
            resource,
            RunState.RESTARTING,
            member.metadata.worker_url,
            Token(token.grant_epoch, token.generation + raised),
            status.time_ms if status else now_ms,
            reason,
        )


def _next_generation(group: Group, resource: Resource) -> int:
    if not resource.is_task:
        return group.connectors[resource.connector].version + 1
    return group.task_configs[resource.connector].generation + 1
