"""The REST interface as one ASGI application: its routes and middleware.

The middleware measures requests, refuses those that are too large or may come from a web page of
another site (`middleware/origins.py`), and adds what every answer gets (`middleware/answers.py`).
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from http import HTTPStatus
from typing import Final

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ....actors.transport.ports import HostPort
from ....projections.metrics.processes import RequestMetrics
from ...security.settings import OPEN, AccessSettings
from .commands.service import Service
from .middleware.answers import AnswerHeaders, AnswerSettings, ListenerRoutes
from .middleware.origins import OriginCheck
from .middleware.path_prefix import PathPrefix
from .middleware.request_ids import RequestIds
from .routes.connectors import (
    config_changes,
    config_diff,
    dead_letters,
    descriptions,
    internal,
    letter_retry,
    lifecycle,
    lists,
    offsets,
    plugins,
    revisions,
    sample,
)
from .routes.groups import client_groups, compaction, events, groups, plan, worker_orders
from .routes.node import (
    callers,
    health,
    log_files,
    loggers,
    metrics,
    nodes,
    probes,
    settings,
    workers,
)
from .routes.page import events as page_events
from .routes.page import files, history, state
from .server.admission import AdmissionCheck
from .server.bodies import limited
from .server.errors import HANDLERS, JSON, error_reply
from .server.listeners import DEFAULT, parse
from .server.openapi import describe
from .server.paths import ConnectPaths
from .server.permissions import is_denied
from .server.principals import Identify, identify
from .server.routing import EVENT_STREAM
from .watch.audit_trail import AuditTrail

ENDING: Final = (
    "this process ends, and has no answer yet: whether the command was carried out is not known;"
    " look at what it was about, and repeat the command, which does no harm"
)
SUBJECTS = (
    health.routes,
    probes.routes,
    metrics.routes,
    callers.routes,
    lists.routes,
    descriptions.routes,
    plugins.routes,
    loggers.routes,
    log_files.routes,
    settings.routes,
    workers.routes,
    nodes.routes,
    groups.routes,
    client_groups.routes,
    events.routes,
    compaction.routes,
    plan.routes,
    config_changes.routes,
    config_diff.routes,
    sample.routes,
    revisions.routes,
    lifecycle.routes,
    internal.routes,
    offsets.routes,
    dead_letters.routes,
    letter_retry.routes,
    groups.order_routes,
    worker_orders.routes,
    nodes.order_routes,
    files.routes,
    state.routes,
    history.routes,
    page_events.routes,
)
"""All routes; if two match a request, the first is used."""


INFO = {
    "title": "fairlead",
    "summary": "Kafka Connect's REST API, and extensions for groups and workers.",
}
"""What `/openapi.json` says of the interface, beside its version."""
UNMATCHED = "unmatched"


def make_app(
    service: Service,
    listeners: Sequence[HostPort] = (parse(DEFAULT).address,),
    hosts: Sequence[str] = (),
    identify: Identify = identify,
    access: AccessSettings = OPEN,
    answers: AnswerSettings = AnswerSettings(),  # noqa: B008  # frozen
) -> Starlette:
    """Return the application; it closes its logs when it ends.

    It accepts requests for its listeners, and for further `hosts` (`HOST` or `HOST:PORT`).
    `identify` says who sends a request, and what they may do; `access` limits what they send.
    `answers` is what each answer gets.
    """

    @asynccontextmanager
    async def life(_: Starlette) -> AsyncGenerator[None]:
        yield
        service.explaining.close()
        if service.samples is not None:
            service.samples.close()
        if service.connect_plugins is not None:
            service.connect_plugins.close()
        if service.audit is not None:
            service.audit.close()
        service.logs.close()

    routes = [route for subject in SUBJECTS for route in subject]

    anybody = (each.path for each in routes if each.rights.needs is None)
    public = frozenset((*anybody, *files.public_paths()))

    @cache
    def document() -> bytes:
        return describe({**INFO, "version": service.version}, routes)

    async def get_document(_: Request) -> Response:
        return Response(document(), media_type=JSON)

    middleware = [
        *([Middleware(PathPrefix, answers.prefix)] if answers.prefix else []),
        Middleware(RequestIds),
        Middleware(AuditTrail, audit=service.audit),
        Middleware(RequestMeter, requests=service.requests, most_bytes=access.request_max_bytes),
        Middleware(AnswerHeaders, answers.rules),
        Middleware(OriginCheck, listeners, hosts, answers.pages(), public),
        *answers.middleware(),
        Middleware(ConnectPaths),
        Middleware(ListenerRoutes),
        Middleware(
            AdmissionCheck,
            identify=identify,
            settings=access,
            public=public,
            requests=service.requests,
            refusals=files.refuse_stranger,
        ),
    ]
    app = Starlette(
        routes=[Route("/openapi.json", get_document), *routes],
        middleware=middleware,
        exception_handlers=HANDLERS,
        lifespan=life,
    )
    app.router.redirect_slashes = False
    app.state.service = service
    app.state.identify = identify
    return app


class RequestMeter:
    """ASGI middleware that counts and times requests by the template of their route.

    A request that is cancelled, as all are that are left when the process ends, is answered here.
    """

    def __init__(self, app: ASGIApp, requests: RequestMetrics, most_bytes: int = 0) -> None:
        self._app = app
        self._most_bytes = most_bytes
        """The largest body of any request; 0: only those of the routes."""
        self._requests = requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request and record its status; one without a response counts as a 500."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope.setdefault("state", {})
        code, has_begun = int(HTTPStatus.INTERNAL_SERVER_ERROR), False
        began = time.perf_counter()

        stream_seconds: float | None = None

        async def note_status(message: Message) -> None:
            nonlocal code, has_begun, stream_seconds
            if message["type"] == "http.response.start":
                code, has_begun = message["status"], True
                if _is_stream(message):
                    stream_seconds = time.perf_counter() - began
            await send(message)

        try:
            await self._app(scope, limited(scope, receive, self._most_bytes), note_status)
        except asyncio.CancelledError:
            if has_begun:
                raise
            await error_reply(HTTPStatus.SERVICE_UNAVAILABLE, ENDING)(scope, receive, note_status)
        finally:
            route = getattr(scope.get("route"), "path_format", UNMATCHED)
            seconds = time.perf_counter() - began if stream_seconds is None else stream_seconds
            self._requests.observe(scope["method"], route, code, seconds)
            if is_denied(scope):
                self._requests.count_denial(f"{scope['method']} {route}")


def _is_stream(message: Message) -> bool:
    """Return whether an answer goes on until its reader ends it: its time is that of its head."""
    kind = Headers(raw=message["headers"]).get("content-type", "")
    return kind.startswith(EVENT_STREAM)
