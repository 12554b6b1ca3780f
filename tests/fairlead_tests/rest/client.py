"""HTTP requests to the application without a socket, each in its own event loop."""

import asyncio
from collections.abc import Iterable
from typing import Any

import httpx
from starlette.types import ASGIApp

HERE = "http://127.0.0.1:8083"


class Client:
    """Sends requests to an application, and returns its responses."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send one request and return the answer."""
        return asyncio.run(self._request(method, path, options))

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self.request("POST", path, **options)

    def put(self, path: str, **options: Any) -> httpx.Response:
        return self.request("PUT", path, **options)

    def delete(self, path: str) -> httpx.Response:
        return self.request("DELETE", path)

    def get_all(self, paths: Iterable[str]) -> list[httpx.Response]:
        """Read all paths at once."""

        async def gather() -> list[httpx.Response]:
            return await asyncio.gather(*(self._request("GET", path, {}) for path in paths))

        return asyncio.run(gather())

    async def _request(self, method: str, path: str, options: dict[str, Any]) -> httpx.Response:
        transport = httpx.ASGITransport(self._app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=HERE) as client:
            return await client.request(method, path, **options)
