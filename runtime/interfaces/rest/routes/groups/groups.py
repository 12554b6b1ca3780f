"""The routes of groups: state, epochs, settings, placement orders, deletion.

A log may be long, so epochs are read in a separate thread, and cached. A placement order for a
connector or a task is in force until it is released, and overrides the connector's config.
"""

from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Final, Literal, TypeVar

from msgspec import Meta, Struct
from msgspec.structs import astuple, replace
from starlette.concurrency import run_in_threadpool

from ......actors.group.state.own_settings import CLIENT_SETTINGS
from ......actors.messages.errors import Error
from ......actors.messages.orders import ConfigureGroup, DeleteGroup, Rebalance, SetPlacement
from ......events.group import Group
from ......events.model import Resource, Scope
from ......events.placement import HEAVIEST, MOST_ITEMS
from ......events.records import Operator
from ......projections.explain.cache import LINES_MAX, EpochCache, NotToldError
from ......projections.explain.limits import limit_epoch
from ......projections.explain.lists import EpochList
from .....config.node_keys.kinds import INT32_MAX
from .....security.rights import Access, Right
from ....replies.building.groups import describe_group, placement, summarize_group
from ....replies.epochs import EpochExplanation, describe_epoch
from ....replies.groups import GroupDescription, GroupPlacement, GroupSummary
from ....replies.handovers import ResourceHistory, describe_moves
from ...commands.service import (
    ORDER_ERRORS,
    CallerAccess,
    PrincipalName,
    Served,
    Service,
    carry_out,
    refuse,
    require_group,
)
from ...server.errors import not_found
from ...server.parameters import ChangesBody, ConfigBody, Key
from ...server.permissions import Reach, RouteRights
from ...server.routing import Routes

T = TypeVar("T")

routes = Routes("groups")
order_routes = Routes("operators")
UNTOLD: Final = "the last target could not be computed; why may be about connectors of others"
LINES: Final = 50
Limit = Annotated[
    int, Meta(ge=1, le=LINES_MAX, description="The number of epochs; the latest ones.")
]
Epoch = Annotated[int | Literal["latest"], Meta(description="A group epoch, or `latest`.")]
MISSING = (HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE)
_SETTINGS: Final = "\n\n".join(
    f"`{each.name}`: {each.allowed}. {each.documentation}" for each in CLIENT_SETTINGS.values()
)
ACCEPTED = HTTPStatus.ACCEPTED
Task = Annotated[int, Meta(ge=0, le=INT32_MAX)]
OF_CONNECTOR = "/groups/{group}/placements/{connector}"
OF_TASK = "/groups/{group}/placements/{connector}/{task}"


class PlacementBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The weight of a connector or task, and the workers that may run it; null: unchanged."""

    weight: Annotated[int, Meta(ge=1, le=HEAVIEST)] | None = None
    """The default is 1."""
    workers: Annotated[list[Key], Meta(max_length=MOST_ITEMS)] | None = None
    """Any names of workers. Empty: the config decides."""


NO_ORDER = PlacementBody(weight=1, workers=[])
"""The empty order: the config is in force again."""


@routes.add("GET /groups", RouteRights(Right.VIEW, Reach.VISIBLE))
def list_groups(service: Served, access: CallerAccess) -> list[GroupSummary]:
    """List the groups of this node, then those of Kafka clients.

    A caller who sees only some connectors gets none of Kafka clients. The groups of a shard whose
    logs cannot be read are omitted; the reason is in `logs/rest.log` of the data folder.
    """
    with service.logs.reading_all() as groups:
        summaries = [summarize_own_group(each.group, access) for each in groups.values()]
    return [*summaries, *summarize_client_groups(service, access)]


def summarize_own_group(group: Group, access: Access) -> GroupSummary:
    """Return the summary of a group of workers; what an assignor says may name any connector."""
    summary = summarize_group(group)
    is_untold = access.is_limited and bool(summary.assignor_error)
    return replace(summary, assignor_error=UNTOLD) if is_untold else summary


def summarize_client_groups(service: Service, access: Access) -> list[GroupSummary]:
    """Return the summaries of the groups of Kafka clients, by id; none for a limited caller."""
    if access.is_limited:
        return []
    with service.logs.shards.reading() as shards:
        summaries = [
            summarize_group(group, shard.number) for shard in shards for group in shard.groups()
        ]
    return sorted(summaries, key=lambda each: each.group_id)


@routes.add("GET /groups/{group}", Right.VIEW, errors=MISSING)
def get_group(service: Served, group: str) -> GroupDescription:
    """Return the full state of a group: epochs, members, target, parked work, losses.

    A group of Kafka clients has its committed offsets as well.
    """
    if service.logs.has_own_logs(group):
        with service.logs.reading(group) as logs:
            return describe_group(logs.group)
    with service.logs.shards.holding(group) as shard:
        found = shard.group(group) if shard is not None else None
        if shard is not None and found is not None:
            return describe_group(found, shard.number, shard.committed(group))
    raise not_found(f"there is no group {group}")


@routes.add(
    "GET /groups/{group}/history",
    RouteRights(Right.VIEW, Reach.VISIBLE),
    errors=(HTTPStatus.BAD_REQUEST, *MISSING),
)
async def get_history(
    service: Served, access: CallerAccess, group: str, limit: Limit = LINES
) -> EpochList:
    """List a group's last epochs: cause, principal, number of moves, duration.

    `first_epoch` is the first one in the log, `is_trimmed` whether there were earlier ones. If one
    target answers several epochs, its changes are counted in the last of them. A caller who sees
    only some connectors gets the epochs that are about these, of a group of workers.
    """

    def read(epochs: EpochCache) -> EpochList:
        if access.is_limited:
            return epochs.limited_history(access.sees, limit)
        return epochs.history(limit)

    _require_visible(service, access, group)
    return await _tell(service, group, read)


@routes.add(
    "GET /groups/{group}/explain/{epoch}", RouteRights(Right.VIEW, Reach.VISIBLE), errors=MISSING
)
async def explain_epoch(
    service: Served, access: CallerAccess, group: str, epoch: Epoch
) -> EpochExplanation:
    """Explain one epoch: its cause, its target, each phase, and each resource that moved.

    For an epoch that is not in the log, a 404 names the range of epochs that are.
    """
    wanted = None if epoch == "latest" else epoch

    def read(epochs: EpochCache) -> EpochExplanation:
        told = epochs.explain(wanted)
        own = limit_epoch(told, access.sees) if access.is_limited else told
        if own is None:
            raise NotToldError(f"epoch {told.report.group_epoch} is about no connector of yours")
        return describe_epoch(own)

    _require_visible(service, access, group)
    return await _tell(service, group, read)


@routes.add(
    "GET /groups/{group}/moves/{resource}", Right.VIEW, errors=(HTTPStatus.BAD_REQUEST, *MISSING)
)
async def list_moves(
    service: Served, group: str, resource: str, limit: Limit = LINES
) -> ResourceHistory:
    """List the moves of a connector, a task (`flights-0`) or a partition (`orders-3`), with causes.

    If it did not move in the epochs that are kept in full, a 404 names the range of these.
    """
    return await _tell(
        service,
        group,
        lambda epochs: describe_moves(group, resource, epochs.moves(resource, limit)),
    )


def _require_visible(service: Service, access: Access, group_id: str) -> None:
    """Raise `ApiError` for a group of Kafka's clients, unless the caller sees everything."""
    if access.is_limited and not service.logs.has_own_logs(group_id):
        raise not_found(f"there is no group {group_id}")


async def _tell(service: Service, group_id: str, read: Callable[[EpochCache], T]) -> T:
    """Return `read(epochs)` of a group, run on the explaining thread; raises `ApiError`."""

    def run() -> T:
        with service.logs.reading_any_epochs(group_id) as epochs:
            if epochs is None:
                raise not_found(f"there is no group {group_id}")
            try:
                return read(epochs)
            except NotToldError as untold:
                raise not_found(str(untold)) from None

    return await service.explaining.run(run)


@routes.add(
    "GET /groups/{group}/config",
    RouteRights(Right.VIEW, Reach.NEUTRAL),
    errors=MISSING,
    description=(
        "Return a group's own settings. Those that begin with `consumer.` are for groups of Kafka's"
        f" clients.\n\n{_SETTINGS}"
    ),
)
def get_group_config(service: Served, group: str) -> dict[str, str]:
    """Return the settings of a group that override those of its node."""
    found = _read_group(service, group)
    if found is None:
        raise not_found(f"there is no group {group}")
    return _configs(found)


@routes.add("PUT /groups/{group}/config", Right.ADMINISTER, errors=ORDER_ERRORS)
async def put_group_config(
    service: Served, principal: PrincipalName, group: str, config: ConfigBody
) -> dict[str, str]:
    """Replace all settings of a group."""
    return await _configure(service, ConfigureGroup(group, config, principal, replaces_all=True))


@routes.add("PATCH /groups/{group}/config", Right.ADMINISTER, errors=ORDER_ERRORS)
async def patch_group_config(
    service: Served, principal: PrincipalName, group: str, changes: ChangesBody
) -> dict[str, str]:
    """Change some settings of a group; null resets one to the node's."""
    return await _configure(service, ConfigureGroup(group, changes, principal))


@routes.add(
    "DELETE /groups/{group}",
    Right.ADMINISTER,
    status=HTTPStatus.NO_CONTENT,
    errors=(HTTPStatus.CONFLICT, *ORDER_ERRORS),
)
async def delete_group(service: Served, principal: PrincipalName, group: str) -> None:
    """Delete a group without members (409 if it has any), with its connectors.

    The connectors' offsets are kept, as when a connector is deleted; so is the history.
    """
    await run_in_threadpool(require_group, service, group)
    outcome = await service.commands.carry_out(DeleteGroup(group, principal))
    if not (outcome.repeated and outcome.reply.error is Error.GROUP_ID_NOT_FOUND):
        refuse(outcome.reply)


@order_routes.add("PUT " + OF_CONNECTOR, Right.OPERATE, status=ACCEPTED, errors=ORDER_ERRORS)
async def place_connector(
    service: Served, principal: PrincipalName, group: str, connector: str, body: PlacementBody
) -> GroupPlacement:
    """Order the weight of a connector and its tasks, and the workers that may run them."""
    return await _place(service, principal, group, Resource(connector), body)


@order_routes.add("PUT " + OF_TASK, Right.OPERATE, status=ACCEPTED, errors=ORDER_ERRORS)
async def place_task(
    service: Served,
    principal: PrincipalName,
    group: str,
    connector: str,
    task: Task,
    body: PlacementBody,
) -> GroupPlacement:
    """Order the weight of one task, and the workers that may run it; overrides its connector."""
    return await _place(service, principal, group, Resource(connector, task), body)


@order_routes.add("DELETE " + OF_CONNECTOR, Right.OPERATE, status=ACCEPTED, errors=ORDER_ERRORS)
async def release_connector(
    service: Served, principal: PrincipalName, group: str, connector: str
) -> GroupPlacement:
    """Release the order for a connector: its config is in force again."""
    return await _place(service, principal, group, Resource(connector), NO_ORDER)


@order_routes.add("DELETE " + OF_TASK, Right.OPERATE, status=ACCEPTED, errors=ORDER_ERRORS)
async def release_task(
    service: Served, principal: PrincipalName, group: str, connector: str, task: Task
) -> GroupPlacement:
    """Release the order for a task: its connector's order or config is in force again."""
    return await _place(service, principal, group, Resource(connector, task), NO_ORDER)


@order_routes.add(
    "POST /groups/{group}/rebalance", Right.OPERATE, status=ACCEPTED, errors=ORDER_ERRORS
)
async def rebalance(service: Served, principal: PrincipalName, group: str) -> GroupSummary:
    """Make a group compute a new target; without members nothing happens."""
    return await carry_out(service, Rebalance(group, principal), summarize_group)


async def _configure(service: Service, command: ConfigureGroup) -> dict[str, str]:
    """Change settings of any group that is there, and return those that it has then.

    Raises `ApiError`, `Unanswered`.
    """
    group_id = command.group_id
    if service.logs.has_own_logs(group_id):
        return await carry_out(service, command, _configs)
    await run_in_threadpool(_require_clients, service, group_id)
    refuse((await service.commands.carry_out(command, is_of_clients=True)).reply)
    changed = await run_in_threadpool(_read_clients, service, group_id)
    return _configs(changed) if changed else {}


def _require_clients(service: Service, group_id: str) -> None:
    if _read_clients(service, group_id) is None:
        raise not_found(f"there is no group {group_id}")


def _read_group(service: Service, group_id: str) -> Group | None:
    """Return a group of either kind; None: there is none. Raises `ApiError`."""
    if not service.logs.has_own_logs(group_id):
        return _read_clients(service, group_id)
    with service.logs.reading(group_id) as logs:
        return logs.group


def _read_clients(service: Service, group_id: str) -> Group | None:
    with service.logs.shards.holding(group_id) as shard:
        return shard.group(group_id) if shard is not None else None


def _configs(group: Group) -> dict[str, str]:
    return dict(group.configs)


async def _place(
    service: Service, principal: str, group_id: str, resource: Resource, wanted: PlacementBody
) -> GroupPlacement:
    """Execute a placement order, and return the order in force; an empty one if there is none."""

    def read(group: Group) -> GroupPlacement:
        order = group.resource_orders.get(resource)
        found = placement(order or Operator(Scope.RESOURCE, *resource))
        return GroupPlacement(group.group_id, *astuple(found))

    pins = None if wanted.workers is None else tuple(wanted.workers)
    command = SetPlacement(group_id, resource, wanted.weight, pins, principal)
    return await carry_out(service, command, read)
