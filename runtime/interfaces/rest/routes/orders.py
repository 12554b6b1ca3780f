"""What operators order: of workers (cordon, uncordon, drain, expect), and where work is to run.

Each answer tells the order that is in force, once it is in the log (202): what the group makes
of it follows. A worker is named as `/workers` tells it, or by its member, instance or client id.
An order for a connector or a task stands until it is taken back, whatever the connector's config
says meanwhile.
"""

from http import HTTPStatus
from typing import Annotated

from fastapi import Depends, Path, Query
from msgspec.structs import asdict, astuple
from pydantic import BaseModel, ConfigDict, Field

from .....actors.group.orders.whereabouts import find_worker
from .....actors.group.state.in_force import order_for
from .....actors.messages.orders import Cordon, Expect, Place, Rebalance, Uncordon
from .....events.group import Group
from .....events.model import Resource, Scope
from .....events.placement import HEAVIEST, MOST_ITEMS
from .....events.records import Operator
from ....config.kinds import INT32_MAX
from ...replies.groups import GroupPlacement, GroupSummary, placement, summarize_group
from ...replies.members import GroupWorkerOrder, worker_order
from ..backend.schema import Key, Routes
from ..backend.service import ORDER_ERRORS, Principal, Served, Service, carry_out

routes = Routes("operators")
ACCEPTED = HTTPStatus.ACCEPTED


Task = Annotated[int, Path(ge=0, le=INT32_MAX)]
OF_CONNECTOR = "/groups/{group}/placements/{connector}"
OF_TASK = "/groups/{group}/placements/{connector}/{task}"


async def _group_of_worker(
    service: Served,
    group: Annotated[
        str | None, Query(description="The worker's group; by default Connect's.")
    ] = None,
) -> str:
    return group or service.group_id


GroupOfWorker = Annotated[str, Depends(_group_of_worker)]
"""The group of a worker, as a parameter of a route."""


class Expectation(BaseModel):
    """When a worker is expected back."""

    model_config = ConfigDict(extra="forbid", strict=True)

    within_ms: int = Field(ge=0, le=INT32_MAX, description="From now. 0: wait no longer.")


class PlacementBody(BaseModel):
    """What a connector or a task weighs, and which workers may run it; null leaves it as it is."""

    model_config = ConfigDict(extra="forbid", strict=True)

    weight: int | None = Field(None, ge=1, le=HEAVIEST, description="1 is what all begin with.")
    workers: list[Key] | None = Field(
        None,
        max_length=MOST_ITEMS,
        description="By any of their names. None of them: the config decides.",
    )


@routes.add("PUT /workers/{worker:path}/cordon", status=ACCEPTED, errors=ORDER_ERRORS)
async def cordon(
    service: Served, principal: Principal, worker: str, group: GroupOfWorker
) -> GroupWorkerOrder:
    """Give a worker nothing more; what it has it keeps."""
    return await _order(service, Cordon(group, worker, principal=principal))


@routes.add("PUT /workers/{worker:path}/drain", status=ACCEPTED, errors=ORDER_ERRORS)
async def drain(
    service: Served, principal: Principal, worker: str, group: GroupOfWorker
) -> GroupWorkerOrder:
    """Give a worker nothing more, and have it give up what it has."""
    return await _order(service, Cordon(group, worker, drain=True, principal=principal))


@routes.add("PUT /workers/{worker:path}/uncordon", status=ACCEPTED, errors=ORDER_ERRORS)
async def uncordon(
    service: Served, principal: Principal, worker: str, group: GroupOfWorker
) -> GroupWorkerOrder:
    """Let a worker be given work again: ends a cordon, and a drain."""
    return await _order(service, Uncordon(group, worker, principal))


@routes.add(
    "PUT /workers/{worker:path}/expect",
    status=ACCEPTED,
    errors=ORDER_ERRORS,
    takes_json=True,
)
async def expect(
    service: Served, principal: Principal, worker: str, body: Expectation, group: GroupOfWorker
) -> GroupWorkerOrder:
    """Have a worker's work wait for its return, or, with 0, wait no longer."""
    command = Expect(group, worker, body.within_ms, principal)
    return await _order(service, command)


async def _order(service: Service, command: Cordon | Uncordon | Expect) -> GroupWorkerOrder:
    """Have an order carried out, and return the one that is in force then.

    A worker that is not known any more goes by what it was called.
    """

    def read(group: Group) -> GroupWorkerOrder:
        name = find_worker(group, command.worker).name or command.worker
        return GroupWorkerOrder(group.group_id, **asdict(worker_order(order_for(group, name))))

    return await carry_out(service, command, read)


@routes.add("PUT " + OF_CONNECTOR, status=ACCEPTED, errors=ORDER_ERRORS, takes_json=True)
async def place_connector(
    service: Served, principal: Principal, group: str, connector: str, body: PlacementBody
) -> GroupPlacement:
    """Say what a connector and its tasks weigh, and which workers may run them."""
    pins = None if body.workers is None else tuple(body.workers)
    command = Place(group, Resource(connector), body.weight, pins, principal)
    return await _place(service, command)


@routes.add("PUT " + OF_TASK, status=ACCEPTED, errors=ORDER_ERRORS, takes_json=True)
async def place_task(
    service: Served,
    principal: Principal,
    group: str,
    connector: str,
    task: Task,
    body: PlacementBody,
) -> GroupPlacement:
    """Say what one task weighs, and which workers may run it, whatever its connector's order."""
    pins = None if body.workers is None else tuple(body.workers)
    command = Place(group, Resource(connector, task), body.weight, pins, principal)
    return await _place(service, command)


@routes.add("DELETE " + OF_CONNECTOR, status=ACCEPTED, errors=ORDER_ERRORS)
async def release_connector(
    service: Served, principal: Principal, group: str, connector: str
) -> GroupPlacement:
    """Take back what was said of a connector: its config counts again."""
    command = Place(group, Resource(connector), 1, (), principal)
    return await _place(service, command)


@routes.add("DELETE " + OF_TASK, status=ACCEPTED, errors=ORDER_ERRORS)
async def release_task(
    service: Served, principal: Principal, group: str, connector: str, task: Task
) -> GroupPlacement:
    """Take back what was said of a task: its connector's order counts again, or the config."""
    return await _place(service, Place(group, Resource(connector, task), 1, (), principal))


@routes.add("POST /groups/{group}/rebalance", status=ACCEPTED, errors=ORDER_ERRORS)
async def rebalance(service: Served, principal: Principal, group: str) -> GroupSummary:
    """Have a group's target computed anew; nothing happens to one without members."""
    return await carry_out(service, Rebalance(group, principal), summarize_group)


async def _place(service: Service, command: Place) -> GroupPlacement:
    """Have an order carried out, and return the one in force: one that asks nothing if none is."""

    def read(group: Group) -> GroupPlacement:
        order = group.resource_orders.get(command.resource)
        found = placement(order or Operator(Scope.RESOURCE, *command.resource))
        return GroupPlacement(group.group_id, *astuple(found))

    return await carry_out(service, command, read)
