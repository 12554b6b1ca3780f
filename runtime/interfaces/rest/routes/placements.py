"""What operators order of single connectors and tasks: what they weigh, and which workers run them.

An order stands until it is taken back, whatever the connector's config says meanwhile. Each
answer tells the order that stands, once it is in the log (202).
"""

from http import HTTPStatus
from typing import Annotated

from fastapi import Path
from msgspec.structs import astuple
from starlette.requests import Request

from .....actors.messages.orders import Place, Rebalance
from .....events.group import Group
from .....events.model import Resource, Scope
from .....events.records import Operator
from ....config.kinds import INT32_MAX
from ...replies.groups import GroupPlacement, GroupSummary, placement, summarize_group
from ..backend.commands import ORDER_ERRORS, carry_out, principal_of
from ..backend.service import Served, Service
from ..http.answers import Routes
from ..http.bodies import PlacementBody

routes = Routes("operators")
ACCEPTED = HTTPStatus.ACCEPTED
Task = Annotated[int, Path(ge=0, le=INT32_MAX)]
OF_CONNECTOR = "/groups/{group}/placements/{connector}"
OF_TASK = "/groups/{group}/placements/{connector}/{task}"


@routes.add("PUT " + OF_CONNECTOR, status=ACCEPTED, errors=ORDER_ERRORS, takes_json=True)
async def place_connector(
    service: Served, request: Request, group: str, connector: str, body: PlacementBody
) -> GroupPlacement:
    """Say what a connector and its tasks weigh, and which workers may run them."""
    pins = None if body.workers is None else tuple(body.workers)
    command = Place(group, Resource(connector), body.weight, pins, principal_of(request))
    return await _place(service, command)


@routes.add("PUT " + OF_TASK, status=ACCEPTED, errors=ORDER_ERRORS, takes_json=True)
async def place_task(
    service: Served, request: Request, group: str, connector: str, task: Task, body: PlacementBody
) -> GroupPlacement:
    """Say what one task weighs, and which workers may run it, whatever its connector's order."""
    pins = None if body.workers is None else tuple(body.workers)
    command = Place(group, Resource(connector, task), body.weight, pins, principal_of(request))
    return await _place(service, command)


@routes.add("DELETE " + OF_CONNECTOR, status=ACCEPTED, errors=ORDER_ERRORS)
async def release_connector(
    service: Served, request: Request, group: str, connector: str
) -> GroupPlacement:
    """Take back what was said of a connector: its config counts again."""
    command = Place(group, Resource(connector), 1, (), principal_of(request))
    return await _place(service, command)


@routes.add("DELETE " + OF_TASK, status=ACCEPTED, errors=ORDER_ERRORS)
async def release_task(
    service: Served, request: Request, group: str, connector: str, task: Task
) -> GroupPlacement:
    """Take back what was said of a task: its connector's order counts again, or the config."""
    return await _place(
        service, Place(group, Resource(connector, task), 1, (), principal_of(request))
    )


@routes.add("POST /groups/{group}/rebalance", status=ACCEPTED, errors=ORDER_ERRORS)
async def rebalance(service: Served, request: Request, group: str) -> GroupSummary:
    """Have a group's target computed anew; nothing happens to one without members."""
    return await carry_out(service, Rebalance(group, principal_of(request)), summarize_group)


async def _place(service: Service, command: Place) -> GroupPlacement:
    """Have an order carried out, and return the one in force: one that asks nothing if none is."""

    def read(group: Group) -> GroupPlacement:
        order = group.resource_orders.get(command.resource)
        found = placement(order or Operator(Scope.RESOURCE, *command.resource))
        return GroupPlacement(group.group_id, *astuple(found))

    return await carry_out(service, command, read)
