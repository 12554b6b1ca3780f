"""Copies a broker's response to a client without a task wake-up for each piece.

Bytes are written to the client when they arrive. If the client reads too slowly (back-pressure),
they stay in the buffer of the broker's stream, and a task copies them later.
"""

from ..wire.bounds import PIECE
from .stream import Stream


class Relay:
    """The copy of one response from a broker to a client."""

    def __init__(self, broker: Stream, client: Stream, size: int) -> None:
        """Start to copy a response of `size` bytes."""
        self.left = size
        """The number of bytes that are not copied yet."""
        self._broker, self._client = broker, client
        broker.on_data = self._copy

    async def read(self) -> bytes:
        """Return the next bytes to write, b"" if all are copied; raises `EOFError`."""
        if not self._broker.is_readable:
            await self._broker.wait()
        piece = self._broker.read_now(min(self.left, PIECE))
        if self.left and not piece:
            raise EOFError
        self.left -= len(piece)
        return piece

    def _copy(self, data: bytes) -> bool:
        client = self._client
        if len(data) > self.left or client.is_full or client.transport.is_closing():
            return False
        client.transport.write(data)
        self.left -= len(data)
        if not self.left:
            self._broker.wake()
        return True
