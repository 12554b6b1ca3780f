"""Those who send requests to a node: one waits for the answers, the other awaits them.

Both are made from where a node is and who asks it. A proxy of the environment is not used, as by
the command line: it could not reach this machine's loopback address.
"""

import asyncio
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, Final, Self, TypeVar
from urllib.parse import unquote

import httpx

from ..replies.live.events import EventInfo
from .errors import ClientError, NodeUnreachableError
from .events import QUIET_SECONDS, RETRY_SECONDS, STATE, STREAM, EventReader
from .requests import FIRST_ERROR, NodeRequest, Steps, refusal

T = TypeVar("T")
ANSWER_SECONDS: Final = 95.0
"""A node answers within 90 s, if only that it has not done it."""
_NOT_SENT: Final = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.UnsupportedProtocol,
    httpx.InvalidURL,
)
"""Errors before anything was sent."""


@dataclass(eq=False, repr=False)
class NodeAccess:
    """Where a node is, and who asks it."""

    url: str = "http://127.0.0.1:8083"
    """Of http, of https, or of a Unix socket (`unix:///path`)."""
    _: KW_ONLY
    token: str = ""
    user: tuple[str, str] | None = None
    """A user and their password."""
    socket: str = ""
    """The path of the node's Unix socket, which is used instead of the URL."""
    ca: str = ""
    """A file with the authorities of the node's certificate, in PEM; empty: those of the system."""
    cert: str = ""
    """A file with the client's certificate and private key, in PEM."""
    timeout: float = ANSWER_SECONDS
    """How many seconds an answer may take."""

    def __repr__(self) -> str:
        """Return it without secrets."""
        return f"{type(self).__name__}({self._where!r})"

    @cached_property
    def _parts(self) -> httpx.URL:
        try:
            return httpx.URL(self.url)
        except httpx.InvalidURL as error:
            raise NodeUnreachableError(f"{self.url!r} is no URL of a node: {error}") from None

    @cached_property
    def _path_of_socket(self) -> str:
        is_socket = self._parts.scheme == "unix"
        return self.socket or (unquote(self._parts.path) if is_socket else "")

    @cached_property
    def _where(self) -> str:
        return self._path_of_socket or str(self._parts.copy_with(userinfo=b""))

    def _options(self) -> dict[str, Any]:
        """Return the arguments of httpx, but for the transport."""
        user = self.user
        if user is None and self._parts.userinfo:
            user = (self._parts.username, self._parts.password)
        headers = {"Accept": "application/json", "User-Agent": "fairlead-client"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        return {
            "base_url": "http://localhost" if self._path_of_socket else self._where,
            "auth": None if self.token else user,
            "headers": headers,
            "timeout": self.timeout,
            "trust_env": False,
        }

    def _connection(self) -> dict[str, Any]:
        """Return the arguments of httpx's transport."""
        if self._path_of_socket:
            return {"uds": self._path_of_socket}
        try:
            context = ssl.create_default_context(cafile=self.ca or None)
            if self.cert:
                # Without a password OpenSSL would ask the terminal for one.
                context.load_cert_chain(self.cert, password="")
        except OSError as error:
            raise NodeUnreachableError(
                f"ca {self.ca!r} or cert {self.cert!r} cannot be used: {error}; nothing was sent"
            ) from None
        return {"verify": context}

    @contextmanager
    def _reaching(self, request: NodeRequest[Any]) -> Generator[None]:
        """Raise `NodeUnreachableError` for the errors of httpx."""
        try:
            yield
        except _NOT_SENT as error:
            raise NodeUnreachableError(
                f"no node answers at {self._where}: {error or type(error).__name__}; nothing was"
                " sent: is it up, and is that its URL?"
            ) from None
        except httpx.RequestError as error:
            is_read = request.method == "GET"
            after = "" if is_read else "; whether it took place is unknown: look, then repeat"
            raise NodeUnreachableError(
                f"{self._where} did not answer {request.method} {request.target}:"
                f" {error or type(error).__name__}{after}"
            ) from None


class SyncSession(NodeAccess):
    """Sends requests, and waits for their answers."""

    @cached_property
    def _http(self) -> httpx.Client:
        transport = httpx.HTTPTransport(**self._connection())
        return httpx.Client(transport=transport, **self._options())

    def __enter__(self) -> Self:
        """Return itself; its end closes the connections."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections."""
        if "_http" in vars(self):
            self._http.close()

    def send(self, request: NodeRequest[T]) -> T:
        """Return the answer of a request; raises `ClientError`."""
        with self._reaching(request):
            answer = self._http.request(
                request.method, request.target, content=request.content, headers=_typed(request)
            )
        return request.read(answer.status_code, answer.content)

    def run(self, work: NodeRequest[T] | Steps[T]) -> T:
        """Send a request, or one after the other; raises `ClientError`."""
        if isinstance(work, NodeRequest):
            return self.send(work)
        answer: object = None
        while True:
            try:
                step = work.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            if isinstance(step, NodeRequest):
                answer = self.send(step)
            else:
                time.sleep(step)
                answer = None

    def events(self) -> Generator[EventInfo]:
        """Return an iterator of what happens from now on, each event once.

        It goes on after a loss of the connection, until it is closed; raises `ClientError`.
        """
        return self._follow(EventReader(self.send(STATE)))

    def _follow(self, reader: EventReader) -> Generator[EventInfo]:
        while True:
            try:
                if reader.is_behind:
                    yield from reader.fill(self.send(STATE))
                for received in self._stream(reader):
                    yield from reader.take(received)
                    if reader.is_behind:
                        break
                reader.close()
            except ClientError as error:
                reader.close(error)
            time.sleep(RETRY_SECONDS)

    def _stream(self, reader: EventReader) -> Iterator[bytes]:
        with (
            self._reaching(STREAM),
            self._http.stream(
                STREAM.method, STREAM.target, headers=reader.headers, timeout=QUIET_SECONDS
            ) as answer,
        ):
            if answer.status_code >= FIRST_ERROR:
                raise refusal(answer.status_code, answer.read())
            yield from answer.iter_bytes()


class AsyncSession(NodeAccess):
    """Sends requests, and awaits their answers."""

    @cached_property
    def _http(self) -> httpx.AsyncClient:
        transport = httpx.AsyncHTTPTransport(**self._connection())
        return httpx.AsyncClient(transport=transport, **self._options())

    async def __aenter__(self) -> Self:
        """Return itself; its end closes the connections."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        if "_http" in vars(self):
            await self._http.aclose()

    async def send(self, request: NodeRequest[T]) -> T:
        """Return the answer of a request; raises `ClientError`."""
        with self._reaching(request):
            answer = await self._http.request(
                request.method, request.target, content=request.content, headers=_typed(request)
            )
        return request.read(answer.status_code, answer.content)

    async def run(self, work: NodeRequest[T] | Steps[T]) -> T:
        """Send a request, or one after the other; raises `ClientError`."""
        if isinstance(work, NodeRequest):
            return await self.send(work)
        answer: object = None
        while True:
            try:
                step = work.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            if isinstance(step, NodeRequest):
                answer = await self.send(step)
            else:
                await asyncio.sleep(step)
                answer = None

    async def events(self) -> AsyncGenerator[EventInfo]:
        """Return an iterator of what happens from now on, each event once.

        It goes on after a loss of the connection, until it is closed; raises `ClientError`.
        """
        return self._follow(EventReader(await self.send(STATE)))

    async def _follow(self, reader: EventReader) -> AsyncGenerator[EventInfo]:
        while True:
            try:
                if reader.is_behind:
                    for each in reader.fill(await self.send(STATE)):
                        yield each
                async for received in self._stream(reader):
                    for each in reader.take(received):
                        yield each
                    if reader.is_behind:
                        break
                reader.close()
            except ClientError as error:
                reader.close(error)
            await asyncio.sleep(RETRY_SECONDS)

    async def _stream(self, reader: EventReader) -> AsyncIterator[bytes]:
        with self._reaching(STREAM):
            async with self._http.stream(
                STREAM.method, STREAM.target, headers=reader.headers, timeout=QUIET_SECONDS
            ) as answer:
                if answer.status_code >= FIRST_ERROR:
                    raise refusal(answer.status_code, await answer.aread())
                async for received in answer.aiter_bytes():
                    yield received


def _typed(request: NodeRequest[Any]) -> Mapping[str, str]:
    return {} if request.content is None else {"Content-Type": "application/json"}
