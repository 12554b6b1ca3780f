"""The route of the metrics for Prometheus. No scrape waits for an actor."""

import math
import os
import time
from collections.abc import Mapping
from pathlib import Path

import psutil
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from ......actors.shards.figures import BOUNDS, Figure, FiguresRead
from ......projections.metrics.connect import ConnectBean
from ......projections.metrics.coordinators import CoordinatorFigures
from ......projections.metrics.families import Beats
from ......projections.metrics.node import (
    CopyFigures,
    DiskFigures,
    EngineFigures,
    HeapFigures,
    NodeFigures,
)
from ......projections.metrics.processes import REST
from .....cluster.figures import GROUP, SHARD, read_all_figures
from .....cluster.messages import OwnershipView
from .....cluster.node_files import OFF, UP, SlowProcess, read_engines, read_plugins, read_slow
from .....cluster.run_folder import RunFolder
from .....security.rights import Right
from ...commands.service import Served, Service
from ...server.connections import Encryption
from ...server.routing import Routes

routes = Routes("this process")


@routes.add("GET /metrics", Right.VIEW)
async def get_metrics(service: Served, request: Request) -> Response:
    """Return the metrics for Prometheus.

    No scrape waits for an actor: what one tells, as heartbeats and how far copies of logs are, is
    that of the last scrape. It is missing from the first one, and while the group does not answer.
    """
    last = service.traffic.last
    service.traffic.ask(lambda: service.commands.traffic(service.group_id))
    service.ownership.ask(lambda: service.commands.ownership(service.group_id))
    accept = request.headers.get("accept", "")
    beats = {service.group_id: Beats(last.heartbeats, last.held)} if last else {}
    return await run_in_threadpool(_measure, service, accept, beats)


def _measure(service: Service, accept: str, beats: Mapping[str, Beats]) -> Response:
    shards = service.logs.shards.figures()
    node = _measure_node(service)
    with service.logs.measuring() as groups:
        text, content_type = service.exposition.write(accept, groups, beats, shards, node)
    return Response(text, media_type=content_type)


def _measure_node(service: Service) -> NodeFigures:
    now, folder = time.monotonic(), RunFolder(service.run_folder.parent).metrics
    folders = {"data": service.run_folder, "logs": service.log_folder}
    return NodeFigures(
        {
            worker: EngineFigures(
                each.state == UP,
                each.restarts,
                _resident_bytes(each.pid),
                each.heap and HeapFigures(*each.heap),
            )
            for worker, each in read_engines(service.run_folder).items()
            if each.state != OFF
        },
        {name: found for name, path in folders.items() if (found := _disk_of(path)) is not None},
        {_name(each): now - each.since for each in read_slow(service.run_folder)},
        [*map(_coordinator, read_all_figures(folder).items())],
        *_measure_encryption(service.encryption),
        service.count_spans(),
        [
            ConnectBean(worker, *bean)
            for worker, each in read_plugins(service.run_folder).items()
            for bean in each.beans
        ],
        _measure_copies(service.ownership.last),
    )


def _measure_copies(view: OwnershipView | None) -> CopyFigures | None:
    """Return how this node stands to its group; None: that is on one host, or not known."""
    if view is None or not view.store:
        return None
    if view.copies is None:
        is_owner = view.owner != ""
        return CopyFigures(is_owner, in_step_seconds=0 if is_owner else view.silent_ms / 1_000)
    seconds = math.inf if view.copies.in_step_ms is None else view.copies.in_step_ms / 1_000
    return CopyFigures(
        is_owner=False, behind_entries=view.copies.behind_entries, in_step_seconds=seconds
    )


def _measure_encryption(encryption: Encryption) -> tuple[Mapping[str, float], Mapping[str, int]]:
    """Return the end of the certificate, as the file is now, and the failed handshakes."""
    if (tls := encryption.tls) is None:
        return {}, {}
    tls.context()
    return {REST: tls.not_after}, {REST: encryption.failed_handshakes}


def _name(process: SlowProcess) -> str:
    return f"{process.kind} {process.name}".strip()


def _resident_bytes(pid: int | None) -> int | None:
    """Return the resident memory of a process; None if it is not there."""
    try:
        return None if pid is None else psutil.Process(pid).memory_info().rss
    except psutil.Error:
        return None


def _disk_of(folder: Path) -> DiskFigures | None:
    """Return the figures of a folder's disk; None if the folder is not there."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return None
    unit = disk.f_frsize
    return DiskFigures(disk.f_blocks * unit, disk.f_bavail * unit, disk.f_files, disk.f_favail)


def _coordinator(of: tuple[tuple[str, str], FiguresRead]) -> CoordinatorFigures:
    (kind, name), read = of
    figures = read.figures
    return CoordinatorFigures(
        name if kind == GROUP else "",
        name if kind == SHARD else "",
        figures[Figure.STARTED_AT],
        figures[Figure.LOAD_SECONDS],
        figures[Figure.BUSY_SECONDS],
        figures[Figure.HELD_UP_SECONDS],
        figures[Figure.REQUESTS],
        figures[Figure.EXPIRED_OFFSETS],
        figures[Figure.DELETED_OFFSETS],
        {error.value: count for error, count in read.refusals.items()},
        {phase.value: durations for phase, durations in read.durations.items()},
        BOUNDS,
    )
