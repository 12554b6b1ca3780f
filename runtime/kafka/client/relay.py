"""An answer that is passed on as it is: it is written where it comes in, and wakes no task.

As soon as the client does not take it, what comes waits in the broker's stream until a task passes
that on.
"""

from ..wire.bounds import PIECE
from .stream import Stream


class Relay:
    """One answer under way, from a broker to a client."""

    def __init__(self, broker: Stream, client: Stream, size: int) -> None:
        """Begin to pass on so many bytes."""
        self.left = size
        """How many are not passed on yet."""
        self._broker, self._client = broker, client
        broker.take = self._take

    async def read(self) -> bytes:
        """Return what is to be written next, nothing if all is written; raises `EOFError`."""
        if not self._broker.has_news:
            await self._broker.wait()
        piece = self._broker.read_now(min(self.left, PIECE))
        if self.left and not piece:
            raise EOFError
        self.left -= len(piece)
        return piece

    def _take(self, data: bytes) -> bool:
        client = self._client
        if len(data) > self.left or client.is_full or client.transport.is_closing():
            return False
        client.transport.write(data)
        self.left -= len(data)
        if not self.left:
            self._broker.wake()
        return True
