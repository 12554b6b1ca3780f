"""The two ways to use a client: one waits for the end of what it does, the other awaits it."""

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from functools import cached_property
from typing import Any, Self, TypeVar

from .access import NodeAccess
from .exchange import AwaitingExchange, BlockingExchange, NodeExchange

T = TypeVar("T")


class SyncSession(NodeAccess):
    """Does what a client is asked, and waits for its end."""

    @cached_property
    def _exchange(self) -> BlockingExchange:
        return BlockingExchange(self)

    def __enter__(self) -> Self:
        """Return itself; its end closes the connections."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections."""
        if "_exchange" in vars(self):
            self._exchange.close()

    def run(self, work: Callable[[NodeExchange], Coroutine[Any, Any, T]]) -> T:
        """Return the result of some work; raises `ClientError`."""
        return _finish(work(self._exchange))

    def iterate(
        self, work: Callable[[NodeExchange], Coroutine[Any, Any, AsyncGenerator[T]]]
    ) -> Generator[T]:
        """Begin some work, and return an iterator of its results; raises `ClientError`."""
        return _unroll(self.run(work))


class AsyncSession(NodeAccess):
    """Does what a client is asked, to be awaited."""

    @cached_property
    def _exchange(self) -> AwaitingExchange:
        return AwaitingExchange(self)

    async def __aenter__(self) -> Self:
        """Return itself; its end closes the connections."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        if "_exchange" in vars(self):
            await self._exchange.close()

    async def run(self, work: Callable[[NodeExchange], Coroutine[Any, Any, T]]) -> T:
        """Return the result of some work; raises `ClientError`."""
        return await work(self._exchange)

    async def iterate(
        self, work: Callable[[NodeExchange], Coroutine[Any, Any, AsyncGenerator[T]]]
    ) -> AsyncGenerator[T]:
        """Begin some work, and return an iterator of its results; raises `ClientError`."""
        return await work(self._exchange)


def _finish(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine over a blocking exchange: it ends within its first step."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise RuntimeError("a coroutine over a blocking exchange waits for a loop")


def _unroll(results: AsyncGenerator[T]) -> Generator[T]:
    """Yield the results of an iterator over a blocking exchange."""
    try:
        while True:
            try:
                result = _finish(results.__anext__())
            except StopAsyncIteration:
                return
            yield result
    finally:
        _finish(results.aclose())
