"""What a connection waits for, and until when."""

import time
from enum import Enum

from ..wire.bounds import IDLE_SECONDS


class ConnectionState(Enum):
    """What a connection waits for."""

    IDLE = "the next request"
    READING = "the rest of a request"
    ANSWERING = "an answer"
    WRITING = "its client, to take an answer"


class WaitLimit:
    """How long one connection waits for what."""

    def __init__(self) -> None:
        """Begin to wait for the first request."""
        self.state = ConnectionState.IDLE
        self._until = 0.0
        """When it has waited for too long, on the monotonic clock; 0: it may wait."""
        self.wait_for_request()

    def wait_for_request(self) -> None:
        """Wait for the next request, as long as a broker does."""
        self.wait_for(ConnectionState.IDLE, IDLE_SECONDS)

    def wait_for(self, state: ConnectionState, seconds: float = 0.0) -> None:
        """Wait for something, for so long; 0: however long it takes."""
        self.state = state
        self._until = time.monotonic() + seconds if seconds else 0.0

    def is_over(self, now: float) -> bool:
        """Tell whether it has waited for too long."""
        return bool(self._until) and now >= self._until
