"""What operators order of workers: cordon, uncordon, drain, expect.

Each answer tells the order that stands, once it is in the log (202): what the group makes of it
follows. A worker is named as `/workers` tells it, or by its member id, instance id or client id.
"""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from ....actors.group.orders.whereabouts import find_worker
from ....actors.group.state.in_force import order_for
from ....actors.messages.commands import CommandReply
from ....actors.messages.orders import Cordon, Expect, Uncordon
from ....projections import views
from ....projections.documents import Document
from ..backend.commands import known, principal, refuse, written
from ..backend.service import Served, Service
from ..http.bodies import Expectation, RequiresJson

router = APIRouter(tags=["operators"])
InGroup = Annotated[str | None, Query(description="The worker's group; by default Connect's.")]


@router.put("/workers/{worker:path}/cordon", status_code=HTTPStatus.ACCEPTED)
async def cordon(
    service: Served, request: Request, worker: str, group: InGroup = None
) -> JSONResponse:
    """Give a worker nothing more; what it has it keeps."""
    group_id = group or service.group_id
    command = Cordon(group_id, worker, principal=principal(request))
    return await _carry_out(service, command)


@router.put("/workers/{worker:path}/drain", status_code=HTTPStatus.ACCEPTED)
async def drain(
    service: Served, request: Request, worker: str, group: InGroup = None
) -> JSONResponse:
    """Give a worker nothing more, and have it give up what it has."""
    group_id = group or service.group_id
    command = Cordon(group_id, worker, drain=True, principal=principal(request))
    return await _carry_out(service, command)


@router.put("/workers/{worker:path}/uncordon", status_code=HTTPStatus.ACCEPTED)
async def uncordon(
    service: Served, request: Request, worker: str, group: InGroup = None
) -> JSONResponse:
    """Let a worker be given work again: ends a cordon, and a drain."""
    group_id = group or service.group_id
    return await _carry_out(service, Uncordon(group_id, worker, principal(request)))


@router.put(
    "/workers/{worker:path}/expect", status_code=HTTPStatus.ACCEPTED, dependencies=[RequiresJson]
)
async def expect(
    service: Served, request: Request, worker: str, body: Expectation, group: InGroup = None
) -> JSONResponse:
    """Have a worker's work wait for its return, or, with 0, wait no longer."""
    group_id = group or service.group_id
    command = Expect(group_id, worker, body.within_ms, principal(request))
    return await _carry_out(service, command)


async def _carry_out(service: Service, command: Cordon | Uncordon | Expect) -> JSONResponse:
    await run_in_threadpool(known, service, command.group_id)
    outcome = await service.commands.carry_out(command)
    refuse(outcome.reply)
    told = await run_in_threadpool(_order, service, command, outcome.reply)
    return JSONResponse(told, HTTPStatus.ACCEPTED)


def _order(service: Service, command: Cordon | Uncordon | Expect, reply: CommandReply) -> Document:
    """Return the order that stands; a worker that is known no more goes by what it was called."""
    with service.logs.reading(command.group_id) as logs:
        written(logs.group, reply)
        name = find_worker(logs.group, command.worker).name or command.worker
        return {"group_id": command.group_id, **views.worker_order(order_for(logs.group, name))}
