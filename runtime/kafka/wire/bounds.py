"""Limits for clients: sizes, times and numbers, and the memory budget of all requests."""

import asyncio
from collections import deque
from typing import Final, NamedTuple

SHORTEST_FRAME: Final = 8
"""The size of API key, version and correlation id, in bytes, as all sizes here."""
LONGEST_FRAME: Final = 100 << 20
"""A broker's `socket.request.max.bytes`."""
LONGEST_DECODED: Final = 1 << 20
"""The maximum size of a request that is handled here."""
LONGEST_OF_NODE: Final = 8 << 20
"""The maximum size of a message of another node: many configs may be changed in one."""
LONGEST_REWRITTEN: Final = 64 << 20
"""The maximum size of a broker's response that is rewritten."""
PIECE: Final = 256 << 10
"""How much of a proxied frame is in memory at once."""
BUDGET: Final = 16 << 20
"""The budget for requests of all connections that are in transit to a group: they may all be in one
message to a process of groups, which takes four times their size."""
SMALL: Final = 64 << 10
"""The maximum size of a request that is received without a share of a budget."""
RECEIVING: Final = 16 << 20
"""The budget for larger requests of all connections that have not arrived whole."""
CONTENDED_SECONDS: Final = 5.0
"""The time limit for receiving a larger request while others wait for that budget."""
LONGEST_ANSWER: Final = 64 << 20
"""The maximum size of a response about many groups; clients repeat the request for the others."""
FRAME_SECONDS: Final = 30.0
"""The time limit for receiving the rest of a frame, and for sending a response."""
SLOWEST: Final = 32 << 10
"""The minimum rate, in bytes per second, of a frame that takes longer than that."""
IDLE_SECONDS: Final = 600.0
"""The idle timeout of a connection, as on a broker."""


NOT_AUTHENTICATED: Final = "not authenticated"
TLS: Final = "TLS"
"""Reasons of refusals for which there are metrics of their own."""
SESSION_OVER: Final = "session over"
"""The reason if a client did not authenticate again before its session was over (KIP-368)."""


class FrameRefused(Exception):  # noqa: N818  # says what becomes of the connection
    """Invalid or unsupported bytes from a client; the connection is closed without a response.

    `reason` is one of few words, for metrics.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason


class BudgetShare:
    """A reserved part of a budget, until it is returned."""

    def __init__(self, budget: "Budget", size: int) -> None:
        self._budget, self._size = budget, size

    def give_back(self) -> None:
        """Return the part to the budget; later calls do nothing."""
        size, self._size = self._size, 0
        if size:
            self._budget.give_back(size)


class Budget:
    """A limit for bytes in memory; takers wait in the order of their requests (FIFO)."""

    def __init__(self, size: int) -> None:
        self._left = size
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        """The callers that wait, in order, each with the bytes that it needs."""

    @property
    def is_wanted(self) -> bool:
        """Whether any caller waits for a part of it."""
        return any(not granted.done() for _, granted in self._waiting)

    def take_now(self, size: int) -> bool:
        """Reserve `size` bytes if available and no caller waits; return whether it was possible."""
        is_left = not self._waiting and size <= self._left
        if is_left:
            self._left -= size
        return is_left

    async def take(self, size: int) -> None:
        """Wait until `size` bytes are available, and reserve them."""
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
        """Return `size` bytes to the budget."""
        self._left += size
        while self._waiting and (self._waiting[0][1].done() or self._waiting[0][0] <= self._left):
            wanted, granted = self._waiting.popleft()
            if not granted.done():
                self._left -= wanted
                granted.set_result(None)


class Budgets(NamedTuple):
    """The budgets of all connections of a listener."""

    receiving: Budget
    """For large requests that have not arrived whole."""
    answering: Budget
    """For requests in transit to a group."""
