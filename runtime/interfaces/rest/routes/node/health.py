"""The routes that say how the node is: version, health, and the overview with the verdict.

Whether anything is wrong is judged of one snapshot: what the supervisor tells of its processes,
then the logs of all groups as of one moment. `/health` names it in its message, `/status` has it as
`verdict`.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Final

from msgspec.structs import replace
from starlette.concurrency import run_in_threadpool

from ......events.entries.codec import CodecError
from ......events.group import epoch_warning
from ......events.log.errors import LogError
from ......events.records import ConnectorConfig
from ......projections import views
from .....cluster.messages import NodeView, OwnershipView, Whereabouts
from .....cluster.node_files import OFF, UP, SlowProcess, read_engines, read_slow
from .....security.rights import Access, Right
from ....replies.building.connectors import MadeBy, connector_status
from ....replies.node import Health, NodeList, ServerInfo
from ....replies.overview import NodeStatus, count_troubles, judge, with_troubles
from ...commands.service import CallerAccess, Served, Service
from ...reading.logs import FollowedGroup
from ...server.errors import PASSING, Unanswered, describe_log_error
from ...server.permissions import Reach, RouteRights
from ...server.routing import HttpAnswer, Routes
from ..connectors.descriptions import (
    deletion_waits,
    explain_hold,
    publication_warnings,
)
from ..connectors.lists import EXPANSIONS, expand_connectors
from ..groups.groups import summarize_client_groups, summarize_own_group
from .nodes import ask_who_owns, find_nodes
from .workers import describe_workers, find_processes, limit_workers

routes = Routes("this process")
TAKERS = frozenset({"supervisor", "group"})
"""The kinds of processes that are needed to accept commands."""
READY = "Worker has completed startup and is ready to handle requests."
"""Connect's message for a healthy worker."""
COMMIT = "unknown"
"""Connect's root document has the commit of its build; a wheel does not know its own."""
CONNECT_VERSION = "4.3.0"
"""The version of Kafka Connect whose answers were recorded; clients refuse calls by it."""

SILENT_MS: Final = 10_000
"""After so long a silence of the owner no takeover is to be hoped for."""
LATE_MS: Final = 5_000
"""A copy that has not had all for so long does not follow the store."""


class Missing(Enum):
    """A reason why a node is not ready, and its sentence."""

    SUPERVISOR = "supervisor", "the supervisor of the node does not answer"
    SILENT = "silent", "a process of the node does not answer"
    GROUP = "group", "the group is not served yet, or being restarted"
    OWNER = "owner", "no node owns the group, or it has been silent for long"
    COPIES = "copies", "the copies of the group's logs here lag behind the store"
    LOG = "log", "the log of the group cannot be read"
    DISK = "disk", "the disk of the logs is full but for its reserve"
    ENGINE = "engine", "no JVM is up that runs the work"
    WORKER = "worker", "no worker has joined the group"


def describe_server(service: Service) -> ServerInfo:
    """Return the version of Connect's API that is spoken, fairlead's, and the cluster's id."""
    return ServerInfo(CONNECT_VERSION, COMMIT, service.cluster_id, service.version)


@routes.add(
    "GET /health",
    RouteRights(Right.VIEW, Reach.VISIBLE),
    also={HTTPStatus.SERVICE_UNAVAILABLE: Health},
)
async def get_health(service: Served, access: CallerAccess) -> HttpAnswer[Health]:
    """Return whether commands are accepted now, which processes do not answer, what is wrong."""
    locate = partial(service.commands.locate, service.group_id)
    refusal = await refuse_commands(service, locate, access)
    if refusal is not None:
        return refusal
    node, _ = await find_processes(service)
    return await run_in_threadpool(_read_health, service, node, access)


@routes.add(
    "GET /status", RouteRights(Right.VIEW, Reach.VISIBLE), errors=(HTTPStatus.SERVICE_UNAVAILABLE,)
)
async def get_node_status(service: Served, access: CallerAccess) -> NodeStatus:
    """Return all that an overview shows: version, health, groups, workers, connectors, verdict."""

    async def locate() -> Whereabouts:
        question = partial(service.commands.locate, service.group_id)
        return (await service.whereabouts.read(question))[0]

    refusal = await refuse_commands(service, locate, access)
    node, age_ms = await find_processes(service)
    folder = service.read_folder()

    def describe() -> NodeStatus:
        with service.logs.reading_all(service.group_id) as groups:
            own = groups[service.group_id]
            troubles = _find_troubles(service, own, node, access)
            health = refusal.body if refusal else _describe_health(service, own, troubles, access)
            of_groups = [each.group for each in groups.values()]
            workers = describe_workers(service, of_groups, node, age_ms)
            return NodeStatus(
                describe_server(service),
                health,
                judge(health, troubles),
                [summarize_own_group(each, access) for each in of_groups],
                limit_workers(workers, access),
                expand_connectors(service, own, EXPANSIONS, access),
                folder and (folder.limited_to(access.sees) if access.is_limited else folder),
            )

    status = await run_in_threadpool(describe)
    status.groups.extend(await run_in_threadpool(summarize_client_groups, service, access))
    return replace(status, nodes=await _find_nodes(service))


async def _find_nodes(service: Service) -> NodeList | None:
    """Return the nodes that may own the group; None: it is on one host, or does not answer."""
    try:
        here = await ask_who_owns(service)
        return await find_nodes(service, here) if here.store else None
    except Unanswered:
        return None


async def refuse_commands(
    service: Service, locate: Callable[[], Awaitable[Whereabouts]], access: Access
) -> HttpAnswer[Health] | None:
    """Return why commands are not accepted, or which processes are slow; None if all is well."""
    slow = read_slow(service.run_folder)
    if any(each.kind in TAKERS for each in slow):
        return _slow(slow, HTTPStatus.SERVICE_UNAVAILABLE)
    try:
        where = await locate()
    except Unanswered as error:
        if slow:
            return _slow(slow, HTTPStatus.SERVICE_UNAVAILABLE)
        return _unwell(str(error))
    is_told = where.detail and not access.is_limited  # it may name a connector
    why = f": {where.detail}" if is_told else ""
    unserved = f"group {service.group_id} is not served yet, or being restarted{why}"
    if reason := _no_room(service) or (unserved if where.address is None else ""):
        return _unwell(reason)
    missing, view = await find_owner_flaw(service)
    if missing is not None:
        why = f": {view.flaw}" if view.flaw and not access.is_limited else ""
        return _unwell(f"{missing.value[1]}{why}")
    return _slow(slow, HTTPStatus.OK) if slow else None


async def find_owner_flaw(service: Service) -> tuple[Missing | None, OwnershipView]:
    """Return the flaw of this node's view of a group with other owners, and that view."""
    try:
        view = await ask_who_owns(service)
    except Unanswered:
        return None, OwnershipView()  # if that lasts, its process is `SILENT`
    return _judge_view(view), view


def _judge_view(view: OwnershipView) -> Missing | None:
    if not view.store:
        return None
    if view.copies is None:
        return None if view.owner else Missing.OWNER
    if not view.owner or view.silent_ms > SILENT_MS:
        return Missing.OWNER
    is_late = view.copies.in_step_ms is None or view.copies.in_step_ms > LATE_MS
    return Missing.COPIES if is_late else None


def _no_room(service: Service) -> str:
    """Return the error if the disk has too little space for commands; "" if it has enough."""
    room = service.logs.room()
    return f"group {service.group_id} takes no commands: {room.why}" if room.is_low else ""


def _read_health(service: Service, node: NodeView | None, access: Access) -> HttpAnswer[Health]:
    """Return that commands are accepted, with notes for users; or why nothing can be read."""
    try:
        with suppress(*PASSING), service.logs.reading(service.group_id) as logs:
            troubles = _find_troubles(service, logs, node, access)
            return HttpAnswer(_describe_health(service, logs, troubles, access))
    except (LogError, CodecError) as error:
        return _unwell(describe_log_error(error))
    return HttpAnswer(_describe_health(service, None, {}, access))


def _describe_health(
    service: Service, logs: FollowedGroup | None, troubles: Mapping[str, int], access: Access
) -> Health:
    warnings = [*_warnings(logs, access), *_engine_warnings(service.run_folder, access)]
    if service.audit is not None and service.audit.problem:
        warnings.append(service.audit.problem)
    message = " ".join(filter(None, (READY, "; ".join(warnings))))
    return with_troubles(Health(status="healthy", message=message), troubles)


def _find_troubles(
    service: Service, logs: FollowedGroup, node: NodeView | None, access: Access
) -> Mapping[str, int]:
    """Count what is wrong with visible connectors and with the processes of the workers."""
    hold, engine = explain_hold(service), read_engines(service.run_folder).get("")
    states = (
        connector_status(logs.group, name, MadeBy("unknown"), hold)
        for name in filter(access.sees, views.connector_names(logs.group))
    )
    processes = [each.state for each in node.workers] if node else []
    return count_troubles(states, processes, engine.state if engine else "")


def _warnings(logs: FollowedGroup | None, access: Access) -> Iterator[str]:
    """Yield notes about a healthy group, for users."""
    if logs is not None:
        if warning := epoch_warning(logs.group.group_epoch):
            yield warning
        for name, each in logs.group.connectors.items():
            yield from _notes(logs, name, each) if access.sees(name) else ()


def _notes(logs: FollowedGroup, name: str, config: ConnectorConfig) -> Iterator[str]:
    """Yield what is to be known of the batches of one connector."""
    if not config.deleting:
        yield from (f"connector {name}: {each}" for each in publication_warnings(logs, name))
    elif why := deletion_waits(logs, name):
        yield f"connector {name} is being deleted: {why}"


def _slow(slow: Sequence[SlowProcess], status: HTTPStatus) -> HttpAnswer[Health]:
    return _unwell("; ".join(map(str, slow)), "slow", status)


def _unwell(
    message: str, word: str = "unhealthy", status: HTTPStatus = HTTPStatus.SERVICE_UNAVAILABLE
) -> HttpAnswer[Health]:
    code = None if status is HTTPStatus.OK else int(status)
    return HttpAnswer(Health(status=word, error_code=code, message=message), status)


def _engine_warnings(run_folder: Path, access: Access) -> Iterator[str]:
    """Yield what is to be known of the JVMs that were lost and are not back yet."""
    for worker, engine in sorted(read_engines(run_folder).items()):
        if engine.state not in {UP, OFF} and (engine.restarts or engine.pid is None):
            whose = f"worker {worker}" if worker else "the workers"
            why = "" if access.is_limited else f": {engine.detail}"  # it may name a connector
            yield f"the JVM of {whose} is not up, its tasks wait for it{why}"
