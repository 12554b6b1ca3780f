"""The routes of the nodes of a cluster, one of which owns the group, and the order to move it."""

from functools import partial
from http import HTTPStatus
from typing import Annotated

from msgspec import Meta
from starlette.concurrency import run_in_threadpool

from ......actors.group.orders.move_owner import ON_ONE_HOST
from ......actors.messages.orders import MoveOwner
from ......events.records import OwnerBegan
from .....cluster.messages import OwnershipView
from .....security.rights import Right
from ....replies.building.nodes import describe_nodes
from ....replies.node import NodeList, OwnerMove
from ...commands.service import ORDER_ERRORS, PrincipalName, Served, Service, carry_out
from ...server.errors import ApiError, not_found
from ...server.routing import Routes
from .workers import find_processes

routes = Routes("groups")
order_routes = Routes("operators")
To = Annotated[str, Meta(description="The name of the node that is to own it. Empty: any other.")]


@routes.add("GET /nodes", Right.VIEW, errors=(HTTPStatus.SERVICE_UNAVAILABLE,))
async def list_nodes(service: Served) -> NodeList:
    """List the nodes that the group knows: which one owns it, and how far the copies here are.

    Known are the nodes that have owned the group, those that its owner has heard of, and the one
    that is asked. A group whose log is on one host has one node.
    """
    return await find_nodes(service, await ask_who_owns(service))


async def ask_who_owns(service: Service) -> OwnershipView:
    """Ask this node's process of the group who owns it; raises `Unanswered`."""
    question = partial(service.commands.ownership, service.group_id)
    return (await service.ownership.read(question))[0]


async def find_nodes(service: Service, here: OwnershipView) -> NodeList:
    """Return the nodes that the group knows; raises `LogError`, `CodecError`."""
    processes, _ = await find_processes(service)
    places = {each.url.rpartition("/")[0] for each in processes.workers} if processes else set()

    def read() -> NodeList:
        with service.logs.reading(service.group_id) as logs:
            return describe_nodes(logs.group, logs.owners().last, here, places)

    return await run_in_threadpool(read)


@order_routes.add(
    "POST /groups/{group}/owner", Right.OPERATE, status=HTTPStatus.ACCEPTED, errors=ORDER_ERRORS
)
async def move_owner(
    service: Served, principal: PrincipalName, group: str, to: To = ""
) -> OwnerMove:
    """Order the node that owns a group to give it up to another one; no work moves.

    It is refused if the log of the group is on one host (400), or if no node of this name is known
    (404). A node that owns the group already keeps it.
    """
    if group != service.group_id:
        raise not_found(f"a node owns the group of its workers, {service.group_id}: name that one")
    here = await ask_who_owns(service)
    if not here.store:
        raise ApiError(HTTPStatus.BAD_REQUEST, ON_ONE_HOST)
    if to:
        names = [each.name for each in (await find_nodes(service, here)).nodes]
        _require_known(to, names)
    order = MoveOwner(group, to, principal, here.owner_epoch)
    found = await carry_out(service, order, lambda group: group.ownership)
    if isinstance(found, OwnerBegan) and found.epoch > here.owner_epoch:
        return OwnerMove(group, here.owner, to, f"node {found.node} has claimed the group since")
    if to and to == here.owner:
        return OwnerMove(group, to, to, f"node {to} owns the group already")
    owner = f"node {here.owner}" if here.owner else "its owner"
    message = f"{owner} gives the group up, to {f'node {to}' if to else 'any other node'}"
    return OwnerMove(group, here.owner, to, message)


def _require_known(name: str, names: list[str]) -> None:
    if name not in names:
        raise ApiError(
            HTTPStatus.NOT_FOUND,
            f"no node {name} is known: there are {', '.join(names)}; without a name any other"
            " node takes over",
        )
