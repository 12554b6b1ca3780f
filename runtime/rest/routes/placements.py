"""What operators order of single connectors and tasks: what they weigh, and which workers run them.

An order stands until it is taken back, whatever the connector's config says meanwhile. Each
answer tells the order that stands, once it is in the log (202).
"""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from ....actors.messages.commands import CommandReply
from ....actors.messages.orders import Place, Rebalance
from ....events.model import Resource, Scope
from ....events.records import Operator
from ....projections import views
from ....projections.documents import Document
from ...config.kinds import INT32_MAX
from ..backend.commands import known, principal, refuse, written
from ..backend.service import Served, Service
from ..http.bodies import PlacementBody, RequiresJson

router = APIRouter(tags=["operators"])
Task = Annotated[int, Path(ge=0, le=INT32_MAX)]
OF_CONNECTOR = "/groups/{group}/placements/{connector}"
OF_TASK = "/groups/{group}/placements/{connector}/{task}"


@router.put(OF_CONNECTOR, status_code=HTTPStatus.ACCEPTED, dependencies=[RequiresJson])
async def place_connector(
    service: Served, request: Request, group: str, connector: str, body: PlacementBody
) -> JSONResponse:
    """Say what a connector and its tasks weigh, and which workers may run them."""
    pins = None if body.workers is None else tuple(body.workers)
    command = Place(group, Resource(connector), body.weight, pins, principal(request))
    return await _carry_out(service, command)


@router.put(OF_TASK, status_code=HTTPStatus.ACCEPTED, dependencies=[RequiresJson])
async def place_task(
    service: Served, request: Request, group: str, connector: str, task: Task, body: PlacementBody
) -> JSONResponse:
    """Say what one task weighs, and which workers may run it, whatever its connector's order."""
    pins = None if body.workers is None else tuple(body.workers)
    command = Place(group, Resource(connector, task), body.weight, pins, principal(request))
    return await _carry_out(service, command)


@router.delete(OF_CONNECTOR, status_code=HTTPStatus.ACCEPTED)
async def release_connector(
    service: Served, request: Request, group: str, connector: str
) -> JSONResponse:
    """Take back what was said of a connector: its config counts again."""
    command = Place(group, Resource(connector), 1, (), principal(request))
    return await _carry_out(service, command)


@router.delete(OF_TASK, status_code=HTTPStatus.ACCEPTED)
async def release_task(
    service: Served, request: Request, group: str, connector: str, task: Task
) -> JSONResponse:
    """Take back what was said of a task: its connector's order counts again, or the config."""
    command = Place(group, Resource(connector, task), 1, (), principal(request))
    return await _carry_out(service, command)


@router.post("/groups/{group}/rebalance", status_code=HTTPStatus.ACCEPTED)
async def rebalance(service: Served, request: Request, group: str) -> JSONResponse:
    """Have a group's target computed anew; nothing happens to one without members."""
    await run_in_threadpool(known, service, group)
    outcome = await service.commands.carry_out(Rebalance(group, principal(request)))
    refuse(outcome.reply)
    told = await run_in_threadpool(_summary, service, group, outcome.reply)
    return JSONResponse(told, HTTPStatus.ACCEPTED)


async def _carry_out(service: Service, command: Place) -> JSONResponse:
    await run_in_threadpool(known, service, command.group_id)
    outcome = await service.commands.carry_out(command)
    refuse(outcome.reply)
    told = await run_in_threadpool(_order, service, command, outcome.reply)
    return JSONResponse(told, HTTPStatus.ACCEPTED)


def _order(service: Service, command: Place, reply: CommandReply) -> Document:
    """Return the order that stands; one that says nothing if none does."""
    with service.logs.reading(command.group_id) as logs:
        written(logs.group, reply)
        order = logs.group.resource_orders.get(command.resource)
        told = views.placement(order or Operator(Scope.RESOURCE, *command.resource))
        return {"group_id": command.group_id, **told}


def _summary(service: Service, group_id: str, reply: CommandReply) -> Document:
    with service.logs.reading(group_id) as logs:
        written(logs.group, reply)
        return views.group_summary(logs.group)
