"""The routes that pause, resume, stop, restart and delete a connector, as Connect does.

An order is durable when it is answered; workers then follow it. The restart of one connector or one
task is answered when it runs again, or after `START_SECONDS`, as in Connect. A restart with
`includeTasks` or `onlyFailed` is answered at once with what is RESTARTING.
"""

import asyncio
import logging
import time
from http import HTTPStatus
from typing import Annotated, Final

from msgspec import Meta
from msgspec.structs import replace
from starlette.concurrency import run_in_threadpool

from ......actors.group.orders.lifecycle import chosen_for_restart
from ......actors.messages.errors import Error
from ......actors.messages.orders import DeleteConnector, Restart, SetTargetState
from ......events.commits import Commit
from ......events.group import Group
from ......events.model import Resource, RunState
from ......projections.views import resource_status
from .....pipeline.batches.naming import describe_unpublished
from .....security.rights import Right
from ....replies.connectors import ConnectorStateInfo
from ....replies.node import Message
from ...commands.service import (
    ORDER_ERRORS,
    PrincipalName,
    Served,
    Service,
    carry_out,
    forget_topics,
    refuse,
)
from ...server.errors import not_found
from ...server.parameters import flag
from ...server.routing import HttpAnswer, Routes
from ...validation.configs import has_external_state
from .descriptions import (
    TaskNumber,
    describe_state,
    find_connector,
    reason_kept,
    require_connector,
)

routes = Routes("connectors")
LOOK_SECONDS: Final = 0.05
START_SECONDS: Final = 5.0
"""How long a request waits for the end of a restart."""
PUBLISH_SECONDS: Final = 1.0
"""How long a deletion waits for the publication of committed batches."""
FORGET_SECONDS: Final = 5.0
"""How long a deletion waits for the end of tasks and the removal of external state."""
LOGGER = logging.getLogger(__name__)
Flag = Annotated[bool, flag(default=False)]
Forget = Annotated[
    bool,
    Meta(description="Whether its source removes its external state."),
]
Publish = Annotated[
    bool,
    Meta(description="Whether it waits until its committed batches are published."),
]


@routes.add(
    "PUT /connectors/{connector}/pause",
    Right.OPERATE,
    status=HTTPStatus.ACCEPTED,
    errors=ORDER_ERRORS,
)
async def pause(service: Served, principal: PrincipalName, connector: str) -> None:
    """Pause a connector: its tasks stay assigned, and start no batch."""
    await _set(service, SetTargetState(service.group_id, connector, RunState.PAUSED, principal))


@routes.add(
    "PUT /connectors/{connector}/resume",
    Right.OPERATE,
    status=HTTPStatus.ACCEPTED,
    errors=ORDER_ERRORS,
)
async def resume(service: Served, principal: PrincipalName, connector: str) -> None:
    """Resume a connector that is paused or stopped."""
    await _set(service, SetTargetState(service.group_id, connector, RunState.RUNNING, principal))


@routes.add(
    "PUT /connectors/{connector}/stop",
    Right.OPERATE,
    status=HTTPStatus.NO_CONTENT,
    errors=ORDER_ERRORS,
)
async def stop(service: Served, principal: PrincipalName, connector: str) -> None:
    """Stop a connector and its tasks; its status shows when the last task has ended."""
    await _set(service, SetTargetState(service.group_id, connector, RunState.STOPPED, principal))


@routes.add(
    "POST /connectors/{connector}/restart",
    Right.OPERATE,
    status=HTTPStatus.NO_CONTENT,
    also={HTTPStatus.ACCEPTED: ConnectorStateInfo},
    errors=ORDER_ERRORS,
)
async def restart_connector(
    service: Served,
    principal: PrincipalName,
    connector: str,
    includeTasks: Flag = False,  # noqa: FBT002, N803  # Connect's parameter
    onlyFailed: Flag = False,  # noqa: FBT002, N803  # Connect's parameter
) -> HttpAnswer[ConnectorStateInfo] | None:
    """Restart a connector (204), with its tasks, or only the failed ones of these (202)."""
    restart = Restart(service.group_id, Resource(connector), includeTasks, onlyFailed, principal)
    before = await run_in_threadpool(_foresee, service, restart)
    await carry_out(service, restart, _nothing)
    if includeTasks or onlyFailed:
        return HttpAnswer(before, HTTPStatus.ACCEPTED)
    await _started(service, restart.resource)
    return None


@routes.add(
    "POST /connectors/{connector}/tasks/{task}/restart",
    Right.OPERATE,
    status=HTTPStatus.NO_CONTENT,
    errors=ORDER_ERRORS,
)
async def restart_task(
    service: Served, principal: PrincipalName, connector: str, task: TaskNumber
) -> None:
    """Restart one task."""
    await run_in_threadpool(_require_task, service, connector, task)
    restart = Restart(service.group_id, Resource(connector, task), principal=principal)
    await carry_out(service, restart, _nothing)
    await _started(service, restart.resource)


@routes.add(
    "DELETE /connectors/{connector}",
    Right.ADMINISTER,
    status=HTTPStatus.NO_CONTENT,
    also={HTTPStatus.OK: Message, HTTPStatus.ACCEPTED: Message},
    errors=ORDER_ERRORS,
)
async def delete_connector(
    service: Served,
    principal: PrincipalName,
    connector: str,
    forget: Forget = True,  # noqa: FBT002
    publish: Publish = True,  # noqa: FBT002
) -> HttpAnswer[Message] | None:
    """Delete a connector; its committed batches are published, and its offsets are kept.

    The response is 202, with the reason, if a batch cannot be published yet, or if the source
    cannot remove its external state yet, such as a replication slot. With `forget=false` external
    state is kept. With `publish=false` batches that are not published are given up; the response is
    200 and names them if there are any. Both also count for a connector that is being deleted.
    """
    before = await run_in_threadpool(find_connector, service, connector)
    left = list[Commit]()
    if before is not None and not publish:
        left = await run_in_threadpool(_unpublished, service, connector)
    gives_up = before is not None and ((before.to_forget and not forget) or left)
    if before is None or (before.deleting and not gives_up):
        waits = await run_in_threadpool(reason_kept, service, connector) if before else ""
        why = f": it is being deleted{waits}" if waits else ""
        raise not_found(f"Connector {connector} not found{why}")
    forgets = forget and await run_in_threadpool(has_external_state, service.plugins, before.config)
    if not before.deleting:
        await forget_topics(service, connector, before.config, principal)
    command = DeleteConnector(service.group_id, connector, principal, forgets, publish)
    outcome = await service.commands.carry_out(command)
    if not (outcome.repeated and outcome.reply.error is Error.UNKNOWN_CONNECTOR):
        refuse(outcome.reply)
    lost = _tell_given_up(connector, principal, left) if left else ""
    waits = await _await_deletion(
        service, connector, FORGET_SECONDS if forgets else PUBLISH_SECONDS
    )
    if waits:
        message = f"connector {connector} is being deleted{lost}{waits}"
        return HttpAnswer(Message(message), HTTPStatus.ACCEPTED)
    return HttpAnswer(Message(f"connector {connector} is deleted{lost}")) if lost else None


async def _await_deletion(service: Service, name: str, seconds: float) -> str:
    """Wait for the end of a deletion; return why it has not ended, as the end of a sentence."""
    until = time.monotonic() + seconds
    waits = await run_in_threadpool(reason_kept, service, name)
    while waits and time.monotonic() < until:
        await asyncio.sleep(LOOK_SECONDS)
        waits = await run_in_threadpool(reason_kept, service, name)
    return waits


def _unpublished(service: Service, name: str) -> list[Commit]:
    with service.logs.reading(service.group_id) as logs:
        return list(logs.unpublished(name))


def _tell_given_up(name: str, principal: str, left: list[Commit]) -> str:
    """Log which batches were given up; return them as the end of a sentence."""
    LOGGER.warning(
        "%s gave up what %s had not published: %s", principal, name, describe_unpublished(left)
    )
    told = describe_unpublished(left)
    return f"; given up is {told}, which the offsets count as read, unless it was published now"


async def _set(service: Service, command: SetTargetState) -> None:
    await carry_out(service, command, _nothing)


def _nothing(_: Group) -> None:
    return None


def _foresee(service: Service, restart: Restart) -> ConnectorStateInfo:
    """Return the status of a connector after a restart has begun, including failures."""
    name = restart.resource.connector
    with service.logs.reading(service.group_id) as logs:
        require_connector(logs, name, f"Unknown connector: {name}")
        chosen = chosen_for_restart(logs.group, restart)
        status = describe_state(service, logs, name, extended=False)
    restarting = RunState.RESTARTING.value
    connector, tasks = status.connector, status.tasks
    if Resource(name) in chosen:
        connector = replace(connector, state=restarting)
    return replace(
        status,
        connector=connector,
        tasks=[
            replace(task, state=restarting) if Resource(name, task.id) in chosen else task
            for task in tasks
        ],
    )


def _require_task(service: Service, connector: str, task: int) -> None:
    with service.logs.reading(service.group_id) as logs:
        require_connector(logs, connector, f"Unknown connector: {connector}")
        if task not in logs.group.task_numbers(connector):
            raise not_found(f"Unknown task: {connector}-{task}")


async def _started(service: Service, resource: Resource) -> None:
    """Wait until a resource is no longer RESTARTING, at most `START_SECONDS`."""
    until = time.monotonic() + START_SECONDS

    def state() -> RunState:
        with service.logs.reading(service.group_id) as logs:
            return resource_status(logs.group, resource).state

    while time.monotonic() < until and await run_in_threadpool(state) is RunState.RESTARTING:
        await asyncio.sleep(LOOK_SECONDS)
