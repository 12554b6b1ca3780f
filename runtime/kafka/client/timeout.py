"""The state of a client's connection, and the timeout of that state."""

import time
from enum import Enum

from ..wire.bounds import IDLE_SECONDS


class ConnectionState(Enum):
    """The event that a connection waits for."""

    IDLE = "the next request"
    READING = "the rest of a request"
    ANSWERING = "an answer"
    WRITING = "its client, to take an answer"


class ConnectionTimeout:
    """The state of one connection, and the deadline of that state."""

    def __init__(self) -> None:
        """Start with the wait for the first request."""
        self.state = ConnectionState.IDLE
        self._deadline = 0.0
        """Monotonic clock; 0: there is none."""
        self.wait_for_request()

    def wait_for_request(self) -> None:
        """Wait for the next request, with the idle timeout of a broker."""
        self.wait_for(ConnectionState.IDLE, IDLE_SECONDS)

    def wait_for(self, state: ConnectionState, seconds: float = 0.0) -> None:
        """Enter a state with this timeout; 0: without a timeout."""
        self.state = state
        self._deadline = time.monotonic() + seconds if seconds else 0.0

    def is_over(self, now: float) -> bool:
        """Return whether the deadline has passed."""
        return bool(self._deadline) and now >= self._deadline
