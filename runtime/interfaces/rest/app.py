"""The REST interface as one ASGI application."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from fastapi import FastAPI

from .backend.service import Service
from .http.answers import ERROR, describe_answers
from .http.errors import handle_errors
from .http.listeners import DEFAULT, RestListener, parse
from .http.middleware import RequestMeter
from .http.origins import OriginCheck
from .routes import (
    connector_commands,
    connectors,
    groups,
    placements,
    plan,
    plugins,
    removal,
    root,
    worker_orders,
    workers,
)

SUBJECTS = (
    root.routes,
    connectors.routes,
    plugins.routes,
    workers.routes,
    groups.routes,
    plan.routes,
    connector_commands.routes,
    worker_orders.routes,
    removal.routes,
    placements.routes,
)
"""All routes; where two could match, the earlier one does."""


def make_app(
    service: Service,
    listeners: Sequence[RestListener] = (parse(DEFAULT),),
    hosts: Sequence[str] = (),
) -> FastAPI:
    """Return the application; its logs are let go of when it ends.

    It answers at its listeners, and for further `hosts` (`HOST` or `HOST:PORT`) that lead there.
    """

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncGenerator[None]:
        yield
        service.explaining.close()
        service.logs.close()

    app = FastAPI(
        title="fairlead",
        summary="Kafka Connect's REST API, and what it cannot say.",
        version=service.version,
        lifespan=life,
        docs_url=None,
        redoc_url=None,
        responses={"default": {"description": "Any error.", **ERROR}},
    )
    app.state.service = service
    handle_errors(app)
    types: list[object] = []
    for each in SUBJECTS:
        app.include_router(each.router)
        types += each.types
    describe_answers(app, types)
    app.add_middleware(OriginCheck, listeners=listeners, allowed=hosts)
    app.add_middleware(RequestMeter, requests=service.requests)
    return app
