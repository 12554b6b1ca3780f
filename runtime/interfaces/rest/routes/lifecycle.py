"""The routes that pause, resume, stop and restart a connector, in Connect's format and codes.

An order is durable when it is answered; workers then follow it. The restart of one connector or one
task is answered when it runs again, or after `START_SECONDS`, as in Connect. A restart with
`includeTasks` or `onlyFailed` is answered at once with what is RESTARTING.
"""

import asyncio
import time
from http import HTTPStatus
from typing import Annotated, Final

from msgspec.structs import replace
from starlette.concurrency import run_in_threadpool

from .....actors.group.orders.lifecycle import chosen_for_restart
from .....actors.messages.orders import Restart, SetTargetState
from .....events.group import Group
from .....events.model import Resource, RunState
from .....projections.views import doing
from ...replies.connectors import ConnectorStateInfo
from ..backend.errors import not_found
from ..backend.schema import HttpAnswer, Routes, flag
from ..backend.service import ORDER_ERRORS, Principal, Served, Service, carry_out
from .connectors import TaskNumber, describe_state, require_connector

routes = Routes("connectors")
LOOK_SECONDS: Final = 0.05
START_SECONDS: Final = 5.0
"""How long a request waits for the end of a restart."""
Flag = Annotated[bool, flag(default=False)]


@routes.add("PUT /connectors/{connector}/pause", status=HTTPStatus.ACCEPTED, errors=ORDER_ERRORS)
async def pause(service: Served, principal: Principal, connector: str) -> None:
    """Pause a connector: its tasks stay assigned, and start no batch."""
    await _set(service, SetTargetState(service.group_id, connector, RunState.PAUSED, principal))


@routes.add("PUT /connectors/{connector}/resume", status=HTTPStatus.ACCEPTED, errors=ORDER_ERRORS)
async def resume(service: Served, principal: Principal, connector: str) -> None:
    """Resume a connector that is paused or stopped."""
    await _set(service, SetTargetState(service.group_id, connector, RunState.RUNNING, principal))


@routes.add("PUT /connectors/{connector}/stop", status=HTTPStatus.NO_CONTENT, errors=ORDER_ERRORS)
async def stop(service: Served, principal: Principal, connector: str) -> None:
    """Stop a connector and its tasks; its status shows when the last task has ended."""
    await _set(service, SetTargetState(service.group_id, connector, RunState.STOPPED, principal))


@routes.add(
    "POST /connectors/{connector}/restart",
    status=HTTPStatus.NO_CONTENT,
    also={HTTPStatus.ACCEPTED: ConnectorStateInfo},
    errors=ORDER_ERRORS,
)
async def restart_connector(
    service: Served,
    principal: Principal,
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
    status=HTTPStatus.NO_CONTENT,
    errors=ORDER_ERRORS,
)
async def restart_task(
    service: Served, principal: Principal, connector: str, task: TaskNumber
) -> None:
    """Restart one task."""
    await run_in_threadpool(_require_task, service, connector, task)
    restart = Restart(service.group_id, Resource(connector, task), principal=principal)
    await carry_out(service, restart, _nothing)
    await _started(service, restart.resource)


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
        found = describe_state(service, logs, name, extended=False)
    restarting = RunState.RESTARTING.value
    connector, tasks = found.connector, found.tasks
    if Resource(name) in chosen:
        connector = replace(connector, state=restarting)
    return replace(
        found,
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
            return doing(logs.group, resource).state

    while time.monotonic() < until and await run_in_threadpool(state) is RunState.RESTARTING:
        await asyncio.sleep(LOOK_SECONDS)
