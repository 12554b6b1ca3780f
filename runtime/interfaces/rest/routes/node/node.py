"""The routes of the node: version, health, metrics, workers, assignors."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import cast

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from ......events.connectors import ConnectorConfig
from ......events.entries.codec import CodecError
from ......events.group import Group, Member, epoch_warning
from ......events.log.errors import LogError
from ......events.placement import worker_name
from ......projections import views
from ......projections.metrics.families import Beats, EngineFigures, NodeFigures
from .....cluster.messages import ProcessView
from .....cluster.node_files import UP, EngineFile, SlowProcess, read_engines, read_slow
from .....node.assignors.discovery import known_assignors
from ....replies.building.node import describe_member, worker_order
from ....replies.connectors import ExpandedConnector
from ....replies.node import (
    AssignorDescription,
    AssignorList,
    Health,
    ProcessDescription,
    ServerInfo,
    WorkerDescription,
    WorkerList,
)
from ....replies.overview import NodeStatus
from ...commands.service import Served, Service
from ...reading.logs import FollowedGroup
from ...server.errors import PASSING, Unanswered, describe_log_error
from ...server.principals import Right
from ...server.routing import HttpAnswer, Routes
from ..connectors.descriptions import deletion_waits, list_connectors, publication_warnings
from ..groups.groups import list_groups

routes = Routes("this process")
worker_routes = Routes("groups")
TAKERS = frozenset({"supervisor", "group"})
"""The kinds of processes that are needed to accept commands."""
READY = "Worker has completed startup and is ready to handle requests."
"""Connect's message for a healthy worker."""
COMMIT = "unknown"
"""Connect's root document has the commit of its build; a wheel does not know its own."""
CONNECT_VERSION = "4.3.0"
"""The version of Kafka Connect whose answers were recorded; clients refuse calls by it."""


@routes.add("GET /", Right.VIEW)
def get_root(service: Served) -> ServerInfo:
    """Return the version of Connect's API that is spoken, fairlead's, and the cluster's id."""
    return ServerInfo(CONNECT_VERSION, COMMIT, service.cluster_id, service.version)


@routes.add("GET /health", Right.VIEW, also={HTTPStatus.SERVICE_UNAVAILABLE: Health})
async def get_health(service: Served) -> HttpAnswer[Health]:
    """Return whether commands are accepted now, and which processes do not answer."""
    slow = read_slow(service.run_folder)
    if any(each.kind in TAKERS for each in slow):
        return _slow(slow, HTTPStatus.SERVICE_UNAVAILABLE)
    try:
        where = await service.commands.locate(service.group_id)
    except Unanswered as error:
        if slow:
            return _slow(slow, HTTPStatus.SERVICE_UNAVAILABLE)
        return _unwell(str(error))
    why = f": {where.detail}" if where.detail else ""
    unserved = f"group {service.group_id} is not served yet, or being restarted{why}"
    if found := _no_room(service) or (unserved if where.address is None else ""):
        return _unwell(found)
    if slow:
        return _slow(slow, HTTPStatus.OK)
    return await run_in_threadpool(_well, service)


@routes.add("GET /status", Right.VIEW, errors=(HTTPStatus.SERVICE_UNAVAILABLE,))
async def get_node_status(service: Served) -> NodeStatus:
    """Return all that an overview shows: version, health, groups, workers, connectors."""
    health = await get_health(service)
    workers = await list_workers(service)
    expanded = partial(list_connectors, service, ["status", "info", "progress"], extended=True)
    connectors = await run_in_threadpool(expanded)
    groups = await run_in_threadpool(list_groups, service)
    told = cast("dict[str, ExpandedConnector]", connectors)  # as it is sent
    return NodeStatus(get_root(service), health.body, groups, workers, told)


@routes.add("GET /metrics", Right.VIEW)
async def get_metrics(service: Served, request: Request) -> Response:
    """Return the metrics for Prometheus.

    No scrape waits for an actor: the heartbeats that one counts are those of the last scrape. They
    are missing from the first one, and while the group does not answer.
    """
    service.traffic.ask_again(service.commands, service.group_id)
    accept = request.headers.get("accept", "")
    return await run_in_threadpool(_measured, service, accept, service.traffic.beats)


@worker_routes.add("GET /workers", Right.VIEW)
async def list_workers(service: Served) -> WorkerList:
    """List the members of all groups, and the worker processes of this node.

    A worker that has joined has both. A member whose process has ended and was replaced has the
    state `ended`. If the supervisor does not answer, `processes_known` is false, and only members
    are listed.
    """
    try:
        node = await service.commands.describe_node()
        processes, is_known = {each.url: each for each in node.workers}, True
    except Unanswered:
        processes, is_known = {}, False
    workers = await run_in_threadpool(_describe_workers, service, processes)
    return WorkerList(is_known, workers, _describe_engine(read_engines(service.run_folder).get("")))


@worker_routes.add("GET /assignors", Right.VIEW)
async def list_assignors(service: Served) -> AssignorList:
    """List the assignors that `group.local.assignors` can name, and the assignor process.

    Installed ones are listed by their entry points; only the process shows whether they can be
    loaded. If the supervisor does not answer, `processes_known` is false.
    """
    assignors = [AssignorDescription(each.name, each.origin) for each in known_assignors()]
    try:
        node = await service.commands.describe_node()
    except Unanswered:
        return AssignorList(assignors, processes_known=False, processes=[])
    processes = [_describe_process(each) for each in node.assignors]
    return AssignorList(assignors, processes_known=True, processes=processes)


def _measured(service: Service, accept: str, beats: Mapping[str, Beats]) -> Response:
    shards = service.logs.shards.figures()
    with service.logs.measuring() as groups:
        text, content_type = service.exposition.write(accept, groups, beats, shards, _node(service))
    return Response(text, media_type=content_type)


def _node(service: Service) -> NodeFigures:
    """Return what is measured of the node itself."""
    engines = {
        worker: EngineFigures(told.state == UP, told.restarts)
        for worker, told in read_engines(service.run_folder).items()
    }
    return NodeFigures(engines, service.logs.room().free_bytes)


def _no_room(service: Service) -> str:
    """Return the error if the disk has too little space for commands; "" if it has enough."""
    room = service.logs.room()
    return f"group {service.group_id} takes no commands: {room.why}" if room.is_low else ""


def _well(service: Service) -> HttpAnswer[Health]:
    """Return that commands are accepted, with notes for users; or why nothing can be read."""
    try:
        warnings = [*_warnings(service), *_engine_warnings(service.run_folder)]
    except (LogError, CodecError) as error:
        return _unwell(describe_log_error(error))
    message = " ".join(filter(None, (READY, "; ".join(warnings))))
    return HttpAnswer(Health(status="healthy", message=message))


def _warnings(service: Service) -> list[str]:
    """Return a note about a healthy group, for users."""
    with suppress(*PASSING), service.logs.reading(service.group_id) as logs:
        found = logs.group.connectors.items()
        told = (note for name, each in found for note in _notes(logs, name, each))
        return [each for each in (epoch_warning(logs.group.group_epoch), *told) if each]
    return []


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


def _describe_engine(told: EngineFile | None) -> ProcessDescription | None:
    """Return the JVM that the workers share, None if each has its own."""
    if told is None:
        return None
    return ProcessDescription(told.pid, told.state, told.restarts, told.detail)


def _engine_warnings(run_folder: Path) -> Iterator[str]:
    """Yield what is to be known of the JVMs that were lost and are not back yet."""
    for worker, told in sorted(read_engines(run_folder).items()):
        if told.state != UP and (told.restarts or told.pid is None):
            whose = f"worker {worker}" if worker else "the workers"
            yield f"the JVM of {whose} is not up, its tasks wait for it: {told.detail}"


def _describe_workers(
    service: Service, processes: Mapping[str, ProcessView]
) -> list[WorkerDescription]:
    """Return the members of all groups, then the processes that have not joined, by URL."""
    workers: list[WorkerDescription] = []
    joined: set[str] = set()
    for group_id in service.logs.group_ids():
        with service.logs.reading(group_id) as logs:
            for member in views.sorted_members(logs.group):
                url = member.metadata.worker_url
                joined.add(url)
                workers.append(_describe_member(url, processes.get(url), logs.group, member))
    for url in sorted(processes.keys() - joined):
        process = _describe_process(processes[url])
        workers.append(WorkerDescription(_last_part(url), url, None, None, None, process))
    return workers


def _describe_member(
    url: str, process: ProcessView | None, group: Group, member: Member
) -> WorkerDescription:
    order = group.worker_orders.get(worker_name(member.metadata))
    return WorkerDescription(
        _last_part(url),
        url,
        group.group_id,
        describe_member(group, member),
        worker_order(order) if order else None,
        _describe_process_of(member, process) if process else None,
    )


def _describe_process_of(member: Member, process: ProcessView) -> ProcessDescription:
    if member.is_away or process.member_id in {"", member.member_id}:
        return _describe_process(process)  # for a member that is away: its next process
    why = "another process is this worker now"
    return _describe_process(replace(process, pid=None, state="ended", detail=why))


def _describe_process(process: ProcessView) -> ProcessDescription:
    return ProcessDescription(process.pid, process.state, process.restarts, process.detail)


def _last_part(url: str) -> str:
    return url.rpartition("/")[2]
