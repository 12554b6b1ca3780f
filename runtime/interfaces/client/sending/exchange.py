"""How requests reach a node: one exchange blocks its thread, the other lets its loop go on.

What takes several requests is written once, as coroutines over a `NodeExchange`. Those of a
blocking one never wait for a loop: such a coroutine ends within its first step, without any.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar

import httpx

from .access import NodeAccess
from .requests import FIRST_ERROR, NodeRequest, refusal

T = TypeVar("T")
NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
RETRY_SECONDS: Final = 0.5
"""The pause before a node that was away is asked again."""


class NodeExchange(ABC):
    """Sends requests to a node, one after the other."""

    @abstractmethod
    async def send(self, request: NodeRequest[T]) -> T:
        """Return the answer of a request; raises `ClientError`."""

    @abstractmethod
    def receive(
        self,
        request: NodeRequest[Any],
        headers: Mapping[str, str] = NO_HEADERS,
        quiet_seconds: float | None = None,
    ) -> AsyncGenerator[bytes]:
        """Yield an answer as it comes; raises `ClientError`, also after too long without a byte.

        `quiet_seconds` is how long that is; None: as long as any answer may take.
        """

    @abstractmethod
    async def pause(self, seconds: float) -> None:
        """Wait for a time."""


class BlockingExchange(NodeExchange):
    """An exchange whose coroutines never wait for a loop."""

    def __init__(self, access: NodeAccess) -> None:
        self._access = access
        transport = httpx.HTTPTransport(**access.connection())
        self._http = httpx.Client(transport=transport, **access.options())

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    async def send(self, request: NodeRequest[T]) -> T:
        """Return the answer of a request; raises `ClientError`."""
        with self._access.reaching(request):
            answer = self._http.request(
                request.method, request.target, content=request.content, headers=request.headers
            )
        return request.read(answer.status_code, answer.content)

    async def receive(
        self,
        request: NodeRequest[Any],
        headers: Mapping[str, str] = NO_HEADERS,
        quiet_seconds: float | None = None,
    ) -> AsyncGenerator[bytes]:
        """Yield an answer as it comes."""
        seconds = quiet_seconds or self._access.timeout
        with (
            self._access.reaching(request),
            self._http.stream(
                request.method, request.target, headers=headers, timeout=seconds
            ) as answer,
        ):
            if answer.status_code >= FIRST_ERROR:
                raise refusal(answer.status_code, answer.read())
            for received in answer.iter_bytes():
                yield received

    async def pause(self, seconds: float) -> None:
        """Wait for a time."""
        time.sleep(seconds)  # there is no loop


class AwaitingExchange(NodeExchange):
    """An exchange for programs with an event loop."""

    def __init__(self, access: NodeAccess) -> None:
        self._access = access
        transport = httpx.AsyncHTTPTransport(**access.connection())
        self._http = httpx.AsyncClient(transport=transport, **access.options())

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def send(self, request: NodeRequest[T]) -> T:
        """Return the answer of a request; raises `ClientError`."""
        with self._access.reaching(request):
            answer = await self._http.request(
                request.method, request.target, content=request.content, headers=request.headers
            )
        return request.read(answer.status_code, answer.content)

    async def receive(
        self,
        request: NodeRequest[Any],
        headers: Mapping[str, str] = NO_HEADERS,
        quiet_seconds: float | None = None,
    ) -> AsyncGenerator[bytes]:
        """Yield an answer as it comes."""
        seconds = quiet_seconds or self._access.timeout
        with self._access.reaching(request):
            async with self._http.stream(
                request.method, request.target, headers=headers, timeout=seconds
            ) as answer:
                if answer.status_code >= FIRST_ERROR:
                    raise refusal(answer.status_code, await answer.aread())
                async for received in answer.aiter_bytes():
                    yield received

    async def pause(self, seconds: float) -> None:
        """Wait for a time."""
        await asyncio.sleep(seconds)
