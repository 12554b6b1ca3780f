"""What a client may cost: sizes, times and numbers, and the budget that all requests share."""

import asyncio
from collections import deque
from typing import Final

SHORTEST_FRAME: Final = 8
"""Key, version and number of a request are that long."""
LONGEST_FRAME: Final = 100 << 20
"""A broker's `socket.request.max.bytes`."""
LONGEST_DECODED: Final = 1 << 20
"""Of a request that is answered here."""
LONGEST_AMENDED: Final = 64 << 20
"""Of a broker's answer that is changed on its way."""
PIECE: Final = 256 << 10
"""So much of a frame that is passed on is held at once."""
BUDGET: Final = 16 << 20
"""So much of requests that no group has taken yet is held at once, of all connections: they may all
travel to a process of groups together, and take four times as much on that way."""
LONGEST_ANSWER: Final = 64 << 20
"""Of many groups to one request; groups of which no more is told are asked for again."""
FRAME_SECONDS: Final = 30.0
"""How long the rest of a frame may take to come, and an answer to be taken."""
SLOWEST: Final = 32 << 10
"""Bytes in a second that a long frame must come with beyond that."""
IDLE_SECONDS: Final = 600.0
"""How long a connection may be silent, as at a broker."""


class FrameRefused(Exception):  # noqa: N818  # says what becomes of the connection
    """Bytes that are no request that is served here; the connection is closed without an answer.

    `reason` is one of few words, by which refusals are counted.
    """

    def __init__(self, reason: str, told: str = "") -> None:
        super().__init__(f"{reason}: {told}" if told else reason)
        self.reason = reason


class BudgetShare:
    """A part of a budget, until it is given back."""

    def __init__(self, budget: "Budget", size: int) -> None:
        self._budget, self._size = budget, size

    def give_back(self) -> None:
        """Let others have it; nothing the next time."""
        size, self._size = self._size, 0
        if size:
            self._budget.give_back(size)


class Budget:
    """Bytes that may be held at once; who wants more waits, first come first served."""

    def __init__(self, size: int) -> None:
        self._left = size
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    def take_now(self, size: int) -> bool:
        """Take so much if there is so much left and nobody waits; tell whether it is so."""
        is_left = not self._waiting and size <= self._left
        if is_left:
            self._left -= size
        return is_left

    async def take(self, size: int) -> None:
        """Wait until there is so much left, and take it."""
        if self.take_now(size):
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size, granted))
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self.give_back(size)
            raise

    def give_back(self, size: int) -> None:
        """Let others have it."""
        self._left += size
        while self._waiting and (self._waiting[0][1].done() or self._waiting[0][0] <= self._left):
            wanted, granted = self._waiting.popleft()
            if not granted.done():
                self._left -= wanted
                granted.set_result(None)
