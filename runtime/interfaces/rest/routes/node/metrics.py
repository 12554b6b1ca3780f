"""The route of the metrics for Prometheus. No scrape waits for an actor."""

from collections.abc import Mapping

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from ......projections.metrics.families import Beats, EngineFigures, NodeFigures
from .....cluster.node_files import UP, read_engines
from ...commands.service import Served, Service
from ...server.principals import Right
from ...server.routing import Routes

routes = Routes("this process")


@routes.add("GET /metrics", Right.VIEW)
async def get_metrics(service: Served, request: Request) -> Response:
    """Return the metrics for Prometheus.

    No scrape waits for an actor: the heartbeats that one counts are those of the last scrape. They
    are missing from the first one, and while the group does not answer.
    """
    last = service.traffic.last
    service.traffic.ask(lambda: service.commands.traffic(service.group_id))
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
    engines = {
        worker: EngineFigures(each.state == UP, each.restarts)
        for worker, each in read_engines(service.run_folder).items()
    }
    return NodeFigures(engines, service.logs.room().free_bytes)
