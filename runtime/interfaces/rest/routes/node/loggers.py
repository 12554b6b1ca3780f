"""The routes of log levels (KIP-495, KIP-976): those of this process, set for the whole node.

All workers of a node share one REST interface, so the scopes worker and cluster are the same here.
Loggers of Java are those of the plugin hosts of its workers. As in Connect, a restart resets the
levels to those of the configuration, unless they are kept.
"""

import logging
import time
from http import HTTPStatus
from typing import Annotated, Final

from msgspec import Meta
from starlette.concurrency import run_in_threadpool

from ......actors.transport import log_levels
from ......actors.transport.log_levels import LEVELS, LoggerState
from .....cluster.node_files import read_plugins
from .....security.rights import Right
from ....replies.node import LoggerLevel
from ...commands.service import PrincipalName, Served, Service
from ...server.errors import ApiError, Unanswered, not_found
from ...server.parameters import Changes
from ...server.permissions import Reach, RouteRights
from ...server.routing import HttpAnswer, Routes

LOGGER = logging.getLogger(__name__)
routes = Routes("this process")
CLUSTER: Final = "cluster"
ROOMS: Final = (
    "fairlead.actors.group",
    "fairlead.runtime.kafka",
    "fairlead.runtime.node.worker",
    "fairlead.runtime.pipeline.tasks.plugins",
)
"""Loggers of other processes, which are listed with those of this one."""
for room in ROOMS:
    logging.getLogger(room)
OFF: Final = "OFF"
_NOT_TOLD: Final = (
    "the level counts here, and for processes that start from now on; the others were not told:"
    " the supervisor of this node does not answer, try again"
)
LevelBody = Annotated[Changes, Meta(description="The level, as `level`.")]


@routes.add("GET /admin/loggers", RouteRights(Right.VIEW, Reach.NEUTRAL))
def list_loggers(service: Served) -> dict[str, LoggerLevel]:
    """List the loggers of this process and of plugins; as in Connect, without any that is OFF."""
    found = _find_loggers(service)
    return {name: _describe(each) for name, each in found.items() if each.level != OFF}


@routes.add(
    "GET /admin/loggers/{logger}",
    RouteRights(Right.VIEW, Reach.NEUTRAL),
    errors=(HTTPStatus.NOT_FOUND,),
)
def get_logger(service: Served, logger: str) -> LoggerLevel:
    """Return the level of a logger."""
    found = _find_loggers(service).get(_require_logger(logger))
    if found is None:
        raise not_found(f"Logger {logger} not found.")
    return _describe(found)


@routes.add(
    "PUT /admin/loggers/{logger}",
    Right.ADMINISTER,
    status=HTTPStatus.NO_CONTENT,
    also={HTTPStatus.OK: list[str]},
    errors=(HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE),
)
async def set_level(
    service: Served,
    principal: PrincipalName,
    logger: str,
    body: LevelBody,
    scope: Annotated[str, Meta(description="worker or cluster: the same here.")] = "worker",
    *,
    keep: Annotated[bool, Meta(description="Whether it counts after a restart, too.")] = False,
) -> HttpAnswer[list[str]] | None:
    """Set the level of a logger and of all below it, in all processes of the node.

    Tells which loggers of this process have another level now, or are OFF, as in Connect; nothing
    for scope cluster.
    """
    text = body.get("level")
    if text is None:
        missing = "Desired 'level' parameter was not specified in request."
        raise ApiError(HTTPStatus.BAD_REQUEST, missing)
    level = text.strip().upper()
    if level not in LEVELS:
        raise not_found(f"invalid log level '{text}'.")
    own = _require_logger(logger)
    changed = await run_in_threadpool(_set, service, own, level, principal, is_kept=keep)
    try:
        await service.commands.announce_log_levels()
    except Unanswered:
        raise Unanswered(_NOT_TOLD) from None
    return None if scope.lower() == CLUSTER else HttpAnswer(changed, HTTPStatus.OK)


def _set(service: Service, logger: str, level: str, principal: str, *, is_kept: bool) -> list[str]:
    folder = service.log_folder
    logging.getLogger(logger)  # there is one from now on, as there is in Connect
    before = _find_loggers(service)
    try:
        log_levels.write(folder, logger, level, time.time_ns() // 1_000_000, is_kept=is_kept)
    except OSError as error:
        told = f"{folder / log_levels.FILE} cannot be written ({error.strerror}): no level was set"
        raise ApiError(HTTPStatus.SERVICE_UNAVAILABLE, told) from None
    log_levels.apply(folder)
    if service.connect_plugins is not None:
        levels = {name: each.level for name, each in log_levels.read(folder).items()}
        service.connect_plugins.set_levels(levels)
    LOGGER.info("the level of %s is %s now, by %s", ascii(logger), level, principal)
    after = _find_loggers(service)
    # Another request may set levels, or import a module with new loggers, at the same time.
    mine = (name for name in before if log_levels.is_below(name, logger))
    kept = (name for name in mine if name in after)  # a host of plugins may have ended meanwhile
    return [name for name in kept if after[name].level != before[name].level or level == OFF]


def _find_loggers(service: Service) -> dict[str, LoggerState]:
    """Return the loggers of this process, and those of the plugin hosts of workers."""
    wanted = log_levels.read(service.log_folder)
    found = log_levels.loggers(service.log_folder)
    for plugins in read_plugins(service.run_folder).values():
        for name, level in plugins.loggers.items():
            if name not in found:
                found[name] = log_levels.state_elsewhere(wanted, name, level)
    return found


def _require_logger(logger: str) -> str:
    """Return the name of an existing logger; the root logger always exists."""
    return log_levels.ROOT if logger.lower() == log_levels.ROOT else logger


def _describe(found: LoggerState) -> LoggerLevel:
    return LoggerLevel(found.level, found.modified_ms)
