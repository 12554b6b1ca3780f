"""The REST interface as one ASGI application."""

from collections.abc import AsyncGenerator
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
    root,
)
from .errors import ErrorBody, handle_errors
from .meter import Meter
from .service import Service


def make_app(service: Service) -> FastAPI:
    """Return the application; its logs are let go of when it ends."""

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncGenerator[None]:
        yield
        service.stories.close()
        service.logs.close()

    app = FastAPI(
        title="fairlead",
        summary="Kafka Connect's REST API, and what it can not say.",
        version=service.version,
        lifespan=life,
        docs_url=None,
        redoc_url=None,
        responses={"default": {"model": ErrorBody, "description": "Any error."}},
    )
    app.state.service = service
    handle_errors(app)
    reads = (root, connectors, plugins, assignors, groups, history, plan)
    for module in (*reads, commands, group_commands, operators, placements):
        app.include_router(module.router)
    app.add_middleware(Meter, requests=service.requests)
    return app
