"""Groups: what their logs say of them, their epochs, their settings, and their end.

A log may be long: epochs are read in a thread of their own, and what was told is kept.
"""

from http import HTTPStatus
from typing import Annotated, Final, Literal

from fastapi import Path, Query
from starlette.concurrency import run_in_threadpool

from .....actors.group.orders.configuration import SETTINGS
from .....actors.messages.errors import Error
from .....actors.messages.orders import ConfigureGroup, DeleteGroup
from .....events.group import Group
from .....projections.explain.cache import LINES_MAX, EpochList, NotToldError
from ...replies.epochs import EpochExplanation, describe_epoch
from ...replies.groups import GroupDescription, GroupSummary, describe_group, summarize_group
from ..backend.errors import not_found
from ..backend.schema import ChangesBody, ConfigBody, Routes
from ..backend.service import (
    ORDER_ERRORS,
    Principal,
    Served,
    Service,
    carry_out,
    refuse,
    require_group,
)

routes = Routes("groups")
LINES: Final = 50
Limit = Annotated[int, Query(ge=1, le=LINES_MAX, description="How many epochs, the last ones.")]
Epoch = Annotated[int | Literal["latest"], Path(description="A group epoch, or `latest`.")]
MISSING = (HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE)
_SETTINGS = "\n\n".join(
    f"`{each.name}`: {each.allowed}. {each.documentation}" for each in SETTINGS.values()
)


@routes.add("GET /groups")
def list_groups(service: Served) -> list[GroupSummary]:
    """List the groups of this node, a line each."""
    summaries: list[GroupSummary] = []
    for group_id in service.logs.group_ids():
        with service.logs.reading(group_id) as logs:
            summaries.append(summarize_group(logs.group))
    return summaries


@routes.add("GET /groups/{group}", errors=MISSING)
def get_group(service: Served, group: str) -> GroupDescription:
    """Tell all that the log says of a group: epochs, members, target, parked work, losses."""
    require_group(service, group)
    with service.logs.reading(group) as logs:
        return describe_group(logs.group)


@routes.add("GET /groups/{group}/history", errors=(HTTPStatus.BAD_REQUEST, *MISSING))
async def get_history(service: Served, group: str, limit: Limit = LINES) -> EpochList:
    """List a group's last epochs: cause, who asked, how much moved, how long it took.

    `first_epoch` is the first that the log tells of, `is_trimmed` whether there were others
    before. What a target changed is counted at the last of the epochs that it answers.
    """

    def read() -> EpochList:
        with service.logs.reading_epochs(group) as epochs:
            return epochs.history(limit)

    await run_in_threadpool(require_group, service, group)
    return await service.explaining.run(read)


@routes.add("GET /groups/{group}/explain/{epoch}", errors=MISSING)
async def explain_epoch(service: Served, group: str, epoch: Epoch) -> EpochExplanation:
    """Explain one epoch: its cause, its target, each phase, and each resource that moved.

    An epoch that the log does not tell of is a 404 that says of which ones it does.
    """

    def read() -> EpochExplanation:
        with service.logs.reading_epochs(group) as epochs:
            try:
                return describe_epoch(epochs.explain(None if epoch == "latest" else epoch))
            except NotToldError as untold:
                raise not_found(str(untold)) from None

    await run_in_threadpool(require_group, service, group)
    return await service.explaining.run(read)


@routes.add(
    "GET /groups/{group}/config",
    errors=MISSING,
    description=f"Tell a group's own settings.\n\n{_SETTINGS}",
)
def get_group_config(service: Served, group: str) -> dict[str, str]:
    """Tell the settings in which a group differs from its node."""
    return _read_configs(service, group)


@routes.add("PUT /groups/{group}/config", takes_json=True, errors=ORDER_ERRORS)
async def put_group_config(
    service: Served, principal: Principal, group: str, config: ConfigBody
) -> dict[str, str]:
    """Give a group these settings of its own and no others."""
    before = await run_in_threadpool(_read_configs, service, group)
    changes = {**dict.fromkeys(before), **config}
    command = ConfigureGroup(group, changes, principal)
    return await carry_out(service, command, _configs)


@routes.add("PATCH /groups/{group}/config", takes_json=True, errors=ORDER_ERRORS)
async def patch_group_config(
    service: Served, principal: Principal, group: str, changes: ChangesBody
) -> dict[str, str]:
    """Change some of a group's own settings; null takes one back to the node's."""
    command = ConfigureGroup(group, changes, principal)
    return await carry_out(service, command, _configs)


@routes.add(
    "DELETE /groups/{group}",
    status=HTTPStatus.NO_CONTENT,
    errors=(HTTPStatus.CONFLICT, *ORDER_ERRORS),
)
async def delete_group(service: Served, principal: Principal, group: str) -> None:
    """Delete a group that has no members (409 if it has), with its connectors.

    The offsets of its connectors stay, as they do when a connector is deleted; so does the
    history.
    """
    await run_in_threadpool(require_group, service, group)
    outcome = await service.commands.carry_out(DeleteGroup(group, principal))
    if not (outcome.repeated and outcome.reply.error is Error.GROUP_ID_NOT_FOUND):
        refuse(outcome.reply)


def _read_configs(service: Service, group_id: str) -> dict[str, str]:
    require_group(service, group_id)
    with service.logs.reading(group_id) as logs:
        return _configs(logs.group)


def _configs(group: Group) -> dict[str, str]:
    return dict(group.configs)
