"""What Thespian puts the bytes of a message into, as they arrive."""
# pyright: basic

import pickle
from collections.abc import Callable


class MessageBuffer:
    """One message from a channel: it arrives in one piece, and its MAC is verified."""

    def __init__(self, _loads: Callable[[bytes], object] | None = None) -> None:
        self._body: bytes | memoryview = b""
        self._message: tuple[object] | None = None

    def addMore(self, body: bytes | memoryview) -> None:
        """Add a body that a channel has received."""
        self._body = body or self._body

    def remainingAmount(self) -> int:
        """Return how many bytes to request; a channel ignores it."""
        return 0

    def isDone(self) -> bool:
        """Return whether the message is complete."""
        return len(self._body) > 0

    def completed(self) -> tuple[object, bytes] | None:
        """Return the message, and that no further bytes follow it."""
        if not self.isDone():
            return None
        if self._message is None:
            self._message = (pickle.loads(self._body),)  # noqa: S301
        return self._message[0], b""

    def removeExtra(self) -> None:
        """Do nothing: no bytes follow the message."""
