"""The REST interface as one ASGI application: its routes and middleware.

The middleware measures requests, and refuses those that are too large or may come from a web page
of another site. A browser sends the host name of the URL in `Host` and the site of the page in
`Origin`. So `Host` reveals DNS rebinding (a foreign name that resolves to this address), `Origin` a
page of another site. curl, Prometheus and the command line send a correct Host and no Origin.
"""

import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import cache
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ....actors.transport.ports import HostPort
from ....projections.metrics.processes import RequestMetrics
from .commands.service import Service
from .routes.connectors import (
    config_changes,
    config_diff,
    descriptions,
    internal,
    lifecycle,
    offsets,
    plugins,
)
from .routes.groups import groups, plan, worker_orders
from .routes.node import health, loggers, metrics, workers
from .server.bodies import limited
from .server.errors import HANDLERS, JSON, ApiError, error_reply
from .server.listeners import DEFAULT, parse
from .server.openapi import describe
from .server.paths import ConnectPaths
from .server.principals import Identify, identify

SUBJECTS = (
    health.routes,
    metrics.routes,
    descriptions.routes,
    plugins.routes,
    loggers.routes,
    workers.routes,
    groups.routes,
    plan.routes,
    config_changes.routes,
    config_diff.routes,
    lifecycle.routes,
    internal.routes,
    offsets.routes,
    groups.order_routes,
    worker_orders.routes,
)
"""All routes; if two match a request, the first is used."""


INFO = {
    "title": "fairlead",
    "summary": "Kafka Connect's REST API, and extensions for groups and workers.",
}
"""What `/openapi.json` says of the interface, beside its version."""
UNMATCHED = "unmatched"
SETTING = "rest.allowed.hosts"
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
_USUAL_PORTS = {"http": 80, "https": 443}

Place = tuple[str, int | None]
"""A host name in lower case, and a port; None is any port."""


def make_app(
    service: Service,
    listeners: Sequence[HostPort] = (parse(DEFAULT),),
    hosts: Sequence[str] = (),
    identify: Identify = identify,
) -> Starlette:
    """Return the application; it closes its logs when it ends.

    It accepts requests for its listeners, and for further `hosts` (`HOST` or `HOST:PORT`).
    `identify` says who sends a request, and what they may do.
    """

    @asynccontextmanager
    async def life(_: Starlette) -> AsyncGenerator[None]:
        yield
        service.explaining.close()
        service.logs.close()

    routes = [route for subject in SUBJECTS for route in subject]

    @cache
    def document() -> bytes:
        return describe({**INFO, "version": service.version}, routes)

    async def get_document(_: Request) -> Response:
        return Response(document(), media_type=JSON)

    middleware = [
        Middleware(RequestMeter, requests=service.requests),
        Middleware(OriginCheck, listeners=listeners, allowed=hosts),
        Middleware(ConnectPaths),
    ]
    app = Starlette(
        routes=[Route("/openapi.json", get_document), *routes],
        middleware=middleware,
        exception_handlers=HANDLERS,
        lifespan=life,
    )
    app.router.redirect_slashes = False
    app.state.service, app.state.identify = service, identify
    return app


class RequestMeter:
    """ASGI middleware that counts and times requests by the template of their route."""

    def __init__(self, app: ASGIApp, requests: RequestMetrics) -> None:
        self._app = app
        self._requests = requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request and record its status; one without a response counts as a 500."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        code = int(HTTPStatus.INTERNAL_SERVER_ERROR)
        began = time.perf_counter()

        async def note_status(message: Message) -> None:
            nonlocal code
            if message["type"] == "http.response.start":
                code = message["status"]
            await send(message)

        try:
            await self._app(scope, limited(scope, receive), note_status)
        finally:
            route = getattr(scope.get("route"), "path_format", UNMATCHED)
            seconds = time.perf_counter() - began
            self._requests.observe(scope["method"], route, code, seconds)


class OriginCheck:
    """ASGI middleware that refuses requests for another host or from a page of another site."""

    def __init__(self, app: ASGIApp, listeners: Iterable[HostPort], allowed: Iterable[str]) -> None:
        """Allow the listeners' addresses, and further hosts as `HOST` or `HOST:PORT`."""
        self._app = app
        #: The allowed hosts and ports.
        self._places = {place for text in allowed for place in _places(text)}
        for listener in listeners:
            names = (listener.host.lower(), *LOOPBACK_NAMES)
            self._places |= {(name, listener.port) for name in names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, or answer 403."""
        if scope["type"] == "http":
            try:
                self._check(Headers(scope=scope))
            except ApiError as error:
                await error_reply(error.status, error.message)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _check(self, headers: Headers) -> None:
        if not self._is_here("http://" + headers.get("host", "")):
            raise _foreign(f"the request is for host {headers.get('host', '')!r}")
        for origin in headers.getlist("origin"):
            if not self._is_here(origin):
                raise _foreign(f"the request comes from a page of {origin!r}")

    def _is_here(self, url: str) -> bool:
        try:
            parts = urlsplit(url)
            place = (parts.hostname or "", parts.port or _USUAL_PORTS[parts.scheme])
        except (ValueError, KeyError):
            return False
        bare = parts.scheme + "://" + parts.netloc == url and "@" not in url
        return bare and not {place, (place[0], None)}.isdisjoint(self._places)


def _places(text: str) -> Iterable[Place]:
    parts = urlsplit("//" + text)
    if parts.hostname:
        yield parts.hostname, parts.port


def _foreign(what: str) -> ApiError:
    return ApiError(
        HTTPStatus.FORBIDDEN,
        f"{what}, which is not where this interface listens; nothing was done. If it should be"
        f" let in, add its host to the setting {SETTING} and start the node again",
    )
