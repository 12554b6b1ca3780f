"""A reverse proxy that puts a node under a prefix, as those in front of a company's tools do."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

OWN = {"host", "transfer-encoding", "content-length", "connection"}


def proxy(target: str, prefix: str) -> Starlette:
    """Return a proxy that passes on what is below a prefix, and knows nothing else."""
    client = httpx.AsyncClient(base_url=target, timeout=None)

    async def pass_on(request: Request) -> StreamingResponse:
        headers = [pair for pair in request.headers.items() if pair[0] not in OWN]
        url = httpx.URL(path=request.url.path, query=request.url.query.encode())
        asked = client.build_request(
            request.method, url, headers=headers, content=await request.body()
        )
        answer = await client.send(asked, stream=True)
        kept = {name: text for name, text in answer.headers.items() if name not in OWN}
        return StreamingResponse(_read(answer), answer.status_code, kept)

    @asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        async with client:
            yield

    methods = ["GET", "POST", "PUT", "PATCH", "DELETE"]
    route = Route(f"/{prefix}/{{rest:path}}", pass_on, methods=methods)
    return Starlette(routes=[route], lifespan=life)


async def _read(answer: httpx.Response) -> AsyncIterator[bytes]:
    try:
        async for part in answer.aiter_raw():
            yield part
    finally:
        await answer.aclose()
