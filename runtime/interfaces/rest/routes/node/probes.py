"""The routes of probes: whether this process answers, and whether the node can do its work now.

They are for what restarts a node and sends it work, as Kubernetes does. A node mends itself: a
group that is rebuilt, or a JVM that starts again, is no reason to restart it. So `/health/live`
depends on nothing but this process, and `/health/ready` says what is missing. Both answer anybody,
and so in words that tell nothing of what the node does.
"""

from functools import partial
from http import HTTPStatus

from starlette.concurrency import run_in_threadpool

from ......events.entries.codec import CodecError
from ......events.log.errors import LogError
from .....cluster.node_files import OFF, UP, read_engines, read_slow
from ....replies.node import Liveness, MissingPart, Readiness
from ...commands.service import Served, Service
from ...server.errors import Unanswered
from ...server.permissions import ANYBODY
from ...server.routing import HttpAnswer, Routes
from .health import TAKERS, Missing, find_owner_flaw

routes = Routes("this process")


@routes.add("GET /health/live", ANYBODY)
async def get_liveness() -> Liveness:
    """Return that this process answers; a node that heals itself is alive meanwhile."""
    return Liveness("alive")


@routes.add("GET /health/ready", ANYBODY, also={HTTPStatus.SERVICE_UNAVAILABLE: Readiness})
async def get_readiness(service: Served) -> HttpAnswer[Readiness]:
    """Return whether the node accepts commands and can run work, and what is missing if not."""
    group = await _ask_for_group(service)
    owner = None if group else (await find_owner_flaw(service))[0]
    missing = {group, owner, *await run_in_threadpool(_read_files, service)}
    reasons = [MissingPart(*each.value) for each in Missing if each in missing]
    status = HTTPStatus.SERVICE_UNAVAILABLE if reasons else HTTPStatus.OK
    return HttpAnswer(Readiness("not ready" if reasons else "ready", reasons), status)


async def _ask_for_group(service: Service) -> Missing | None:
    """Return what is wrong with the group, as its supervisor says; None if it is served."""
    question = partial(service.commands.locate, service.group_id)
    try:
        where, _ = await service.whereabouts.read(question)
    except Unanswered:
        return Missing.SUPERVISOR
    return Missing.GROUP if where.address is None else None


def _read_files(service: Service) -> list[Missing]:
    """Return what is missing by the logs, and by what processes write of themselves."""
    engines, workers = read_engines(service.run_folder).values(), service.workers
    needs_engine = service.needs_engine and workers > 0
    checks = {
        Missing.SILENT: any(each.kind in TAKERS for each in read_slow(service.run_folder)),
        Missing.DISK: service.logs.room().is_low,
        Missing.ENGINE: needs_engine and all(each.state not in {UP, OFF} for each in engines),
    }
    missing = [reason for reason, is_so in checks.items() if is_so]
    try:
        with service.logs.reading(service.group_id) as logs:
            members = logs.group.workers()
    except (LogError, CodecError):
        return [*missing, Missing.LOG]
    is_served = not workers or any(not each.is_away for each in members)
    return missing if is_served else [*missing, Missing.WORKER]
