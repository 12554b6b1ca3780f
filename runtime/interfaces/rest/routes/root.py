"""Who is here, is it well, and what is measured."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from .....events.entries.codec import CodecError
from .....events.group import epoch_warning
from .....events.log.errors import LogError
from .....projections.group_metrics import Beats
from ....cluster.slow import SlowProcess, read_slow
from ...replies.node import Health, ServerInfo
from ..backend.errors import Unanswered
from ..backend.schema import HttpAnswer, Routes
from ..backend.service import Served, Service
from .connectors import deletion_waits

routes = Routes("this process")
TAKERS = frozenset({"supervisor", "group"})
"""The kinds of processes without which no command is taken."""
COMMIT = "unknown"
"""The root document of Connect names the commit it was built from; wheels do not know theirs."""


@routes.add("GET /")
def get_root(service: Served) -> ServerInfo:
    """Tell the version, and which cluster this is."""
    return ServerInfo(service.version, COMMIT, service.cluster_id)


@routes.add("GET /health", also={HTTPStatus.SERVICE_UNAVAILABLE: Health})
async def get_health(service: Served) -> HttpAnswer[Health]:
    """Tell whether commands would be taken now, and which processes are slow to answer."""
    slow = read_slow(service.run_folder)
    if any(each.kind in TAKERS for each in slow):
        return _slow(slow, HTTPStatus.SERVICE_UNAVAILABLE)
    try:
        where = await service.commands.locate(service.group_id)
    except Unanswered as error:
        if slow:
            return _slow(slow, HTTPStatus.SERVICE_UNAVAILABLE)
        return _unwell(str(error))
    unserved = f"group {service.group_id} is not served yet, or being restarted"
    if found := _no_room(service) or (unserved if where.address is None else ""):
        return _unwell(found)
    if slow:
        return _slow(slow, HTTPStatus.OK)
    message = f"group {service.group_id} takes commands"
    for warning in await run_in_threadpool(_warnings, service):
        message = f"{message}; {warning}"
    return HttpAnswer(Health(status="healthy", message=message))


@routes.add("GET /metrics")
async def get_metrics(service: Served, request: Request) -> Response:
    """Tell what is measured, for Prometheus; without an answer, all but the traffic."""
    beats: dict[str, Beats] = {}
    with suppress(Unanswered):
        traffic = await service.commands.traffic(service.group_id)
        beats[service.group_id] = Beats(traffic.heartbeats, traffic.held)
    return await run_in_threadpool(_measured, service, request.headers.get("accept", ""), beats)


def _measured(service: Service, accept: str, beats: Mapping[str, Beats]) -> Response:
    with service.logs.measuring() as groups:
        text, content_type = service.exposition.write(accept, groups, beats)
    return Response(text, media_type=content_type)


def _no_room(service: Service) -> str:
    """Return why no command is taken for want of space; nothing if there is enough."""
    room = service.logs.room()
    return f"group {service.group_id} takes no commands: {room.why}" if room.is_low else ""


def _warnings(service: Service) -> list[str]:
    """Return what is to be known of the group though it is well."""
    with suppress(LogError, CodecError), service.logs.reading(service.group_id) as logs:
        deleted = [name for name, each in logs.group.connectors.items() if each.deleting]
        waits = ((name, deletion_waits(logs, name)) for name in deleted)
        told = [f"connector {name} is being deleted: {why}" for name, why in waits if why]
        return [each for each in (epoch_warning(logs.group.group_epoch), *told) if each]
    return []


def _slow(slow: Sequence[SlowProcess], status: HTTPStatus) -> HttpAnswer[Health]:
    return _unwell("; ".join(map(str, slow)), "slow", status)


def _unwell(
    message: str, word: str = "unhealthy", status: HTTPStatus = HTTPStatus.SERVICE_UNAVAILABLE
) -> HttpAnswer[Health]:
    code = None if status is HTTPStatus.OK else int(status)
    return HttpAnswer(Health(status=word, error_code=code, message=message), status)
