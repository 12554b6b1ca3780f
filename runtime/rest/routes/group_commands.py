"""A group's own settings, and its end."""

from collections.abc import Mapping
from http import HTTPStatus

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from ....actors.group.orders.configuration import SETTINGS
from ....actors.messages.commands import CommandReply
from ....actors.messages.errors import Error
from ....actors.messages.orders import ConfigureGroup, DeleteGroup
from ..backend.commands import known, principal, refuse, written
from ..backend.service import Served, Service
from ..http.bodies import ChangesBody, ConfigBody, RequiresJson

router = APIRouter(tags=["groups"])
_SETTINGS = "\n\n".join(
    f"`{each.name}`: {each.allowed}. {each.documentation}" for each in SETTINGS.values()
)


@router.get("/groups/{group}/config", description=f"Tell a group's own settings.\n\n{_SETTINGS}")
def get_group_config(service: Served, group: str) -> JSONResponse:
    """Tell the settings in which a group differs from its node."""
    known(service, group)
    with service.logs.reading(group) as logs:
        return JSONResponse(dict(logs.group.configs))


@router.put("/groups/{group}/config", dependencies=[RequiresJson])
async def put_group_config(
    service: Served, request: Request, group: str, config: ConfigBody
) -> JSONResponse:
    """Give a group these settings of its own and no others."""
    before = await run_in_threadpool(_configs, service, group)
    changes = {**dict.fromkeys(before), **config}
    return await _configure(service, request, group, changes)


@router.patch("/groups/{group}/config", dependencies=[RequiresJson])
async def patch_group_config(
    service: Served, request: Request, group: str, changes: ChangesBody
) -> JSONResponse:
    """Change some of a group's own settings; null takes one back to the node's."""
    await run_in_threadpool(known, service, group)
    return await _configure(service, request, group, changes)


@router.delete("/groups/{group}", status_code=HTTPStatus.NO_CONTENT)
async def delete_group(service: Served, request: Request, group: str) -> Response:
    """Delete a group that has no members (409 if it has), with its connectors.

    The offsets of its connectors stay, as they do when a connector is deleted; so does the
    history.
    """
    await run_in_threadpool(known, service, group)
    outcome = await service.commands.carry_out(DeleteGroup(group, principal(request)))
    if not (outcome.repeated and outcome.reply.error is Error.GROUP_ID_NOT_FOUND):
        refuse(outcome.reply)
    return Response(status_code=HTTPStatus.NO_CONTENT)


async def _configure(
    service: Service, request: Request, group: str, changes: Mapping[str, str | None]
) -> JSONResponse:
    command = ConfigureGroup(group, changes, principal(request))
    outcome = await service.commands.carry_out(command)
    refuse(outcome.reply)
    return JSONResponse(await run_in_threadpool(_configs, service, group, outcome.reply))


def _configs(
    service: Service, group_id: str, reply: CommandReply | None = None
) -> Mapping[str, str]:
    known(service, group_id)
    with service.logs.reading(group_id) as logs:
        if reply is not None:
            written(logs.group, reply)
        return dict(logs.group.configs)
