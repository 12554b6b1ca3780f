"""The REST interface as one ASGI application."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from fastapi import FastAPI

from . import (
    assignors,
    commands,
    connectors,
    group_commands,
    groups,
    history,
    operators,
    placements,
    plan,
    plugins,
    removal,
    root,
)
from .errors import ErrorBody, handle_errors
from .listeners import DEFAULT, Listener, parse
from .meter import Meter
from .service import Service
from .visitors import Visitors


def make_app(
    service: Service, listeners: Sequence[Listener] = (parse(DEFAULT),), hosts: Sequence[str] = ()
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
        responses={"default": {"model": ErrorBody, "description": "Any error."}},
    )
    app.state.service = service
    handle_errors(app)
    reads = (root, connectors, plugins, assignors, groups, history, plan)
    for module in (*reads, commands, group_commands, operators, removal, placements):
        app.include_router(module.router)
    app.add_middleware(Visitors, listeners=listeners, allowed=hosts)
    app.add_middleware(Meter, requests=service.requests)
    return app
