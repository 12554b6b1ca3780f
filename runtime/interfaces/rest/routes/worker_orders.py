"""What operators order of workers: cordon, uncordon, drain, expect.

Each answer tells the order that is in force, once it is in the log (202): what the group makes
of it follows. A worker is named as `/workers` tells it, or by its member, instance or client id.
"""

from http import HTTPStatus
from typing import Annotated

from fastapi import Query
from msgspec.structs import astuple
from starlette.requests import Request

from .....actors.group.orders.whereabouts import find_worker
from .....actors.group.state.in_force import order_for
from .....actors.messages.orders import Cordon, Expect, Uncordon
from .....events.group import Group
from ...replies.groups import GroupWorkerOrder, worker_order
from ..backend.commands import ORDER_ERRORS, carry_out, principal_of
from ..backend.service import Served, Service
from ..http.answers import Routes
from ..http.bodies import Expectation

routes = Routes("operators")
ACCEPTED = HTTPStatus.ACCEPTED
InGroup = Annotated[str | None, Query(description="The worker's group; by default Connect's.")]


@routes.add("PUT /workers/{worker:path}/cordon", status=ACCEPTED, errors=ORDER_ERRORS)
async def cordon(
    service: Served, request: Request, worker: str, group: InGroup = None
) -> GroupWorkerOrder:
    """Give a worker nothing more; what it has it keeps."""
    group_id = group or service.group_id
    return await _order(service, Cordon(group_id, worker, principal=principal_of(request)))


@routes.add("PUT /workers/{worker:path}/drain", status=ACCEPTED, errors=ORDER_ERRORS)
async def drain(
    service: Served, request: Request, worker: str, group: InGroup = None
) -> GroupWorkerOrder:
    """Give a worker nothing more, and have it give up what it has."""
    group_id = group or service.group_id
    return await _order(
        service, Cordon(group_id, worker, drain=True, principal=principal_of(request))
    )


@routes.add("PUT /workers/{worker:path}/uncordon", status=ACCEPTED, errors=ORDER_ERRORS)
async def uncordon(
    service: Served, request: Request, worker: str, group: InGroup = None
) -> GroupWorkerOrder:
    """Let a worker be given work again: ends a cordon, and a drain."""
    group_id = group or service.group_id
    return await _order(service, Uncordon(group_id, worker, principal_of(request)))


@routes.add(
    "PUT /workers/{worker:path}/expect",
    status=ACCEPTED,
    errors=ORDER_ERRORS,
    takes_json=True,
)
async def expect(
    service: Served, request: Request, worker: str, body: Expectation, group: InGroup = None
) -> GroupWorkerOrder:
    """Have a worker's work wait for its return, or, with 0, wait no longer."""
    group_id = group or service.group_id
    command = Expect(group_id, worker, body.within_ms, principal_of(request))
    return await _order(service, command)


async def _order(service: Service, command: Cordon | Uncordon | Expect) -> GroupWorkerOrder:
    """Have an order carried out, and return the one that is in force then.

    A worker that is not known any more goes by what it was called.
    """

    def read(group: Group) -> GroupWorkerOrder:
        name = find_worker(group, command.worker).name or command.worker
        return GroupWorkerOrder(group.group_id, *astuple(worker_order(order_for(group, name))))

    return await carry_out(service, command, read)
