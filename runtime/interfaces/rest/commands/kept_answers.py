"""Questions to actors whose last answer is kept, so that nobody who reads waits for one that hangs.

An actor answers in milliseconds, or not at all. A read waits `PATIENCE_SECONDS` for a new answer,
and gets the last one with its age otherwise; only the first one of all waits until the question
fails. A question that fails takes the last answer away: from then on nothing is known.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

from ..server.errors import Unanswered

T = TypeVar("T")
PATIENCE_SECONDS: Final = 0.3


class KeptAnswer(Generic[T]):
    """The last answer to one question; one question at a time is open."""

    def __init__(self, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._patience_seconds = patience_seconds
        self.last: T | None = None
        """The last answer; None before the first one, and after a failure."""
        self._answered_at = 0.0
        """When it came, in monotonic seconds."""
        self._asking: asyncio.Task[T] | None = None

    @property
    def age_ms(self) -> int:
        """How old the last answer is, in milliseconds."""
        return int((time.monotonic() - self._answered_at) * 1000)

    def ask(self, question: Callable[[], Awaitable[T]]) -> "asyncio.Task[T]":
        """Begin to ask, unless a question is open; return the open one."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask(question))
            self._asking.add_done_callback(lambda task: task.cancelled() or task.exception())
        return self._asking

    async def read(self, question: Callable[[], Awaitable[T]]) -> tuple[T, int]:
        """Return an answer and its age in milliseconds, 0 for a new one; raises `Unanswered`."""
        asking = self.ask(question)
        patience = None if self.last is None else self._patience_seconds
        await asyncio.wait({asking}, timeout=patience)
        if not asking.done() and self.last is not None:
            return self.last, self.age_ms
        return await asyncio.shield(asking), 0

    async def _ask(self, question: Callable[[], Awaitable[T]]) -> T:
        try:
            answer = await question()
        except Unanswered:
            self.last = None
            raise
        self.last, self._answered_at = answer, time.monotonic()
        return answer
