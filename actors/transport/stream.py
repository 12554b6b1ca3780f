"""A stream of messages between two processes of a cluster, faster than actor messages.

An actor message costs an envelope, an acknowledgement and several turns of two event loops: too
much for thousands per second. Here a message is one frame of a `Channel`, whose ends authenticate
each other before anything is unpickled. One end is an actor with a `StreamPort`, which it polls;
the other is any process with the key and the port. Messages arrive in order, or the stream ends.
"""

import pickle
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

from .channel import FRAME_LIMIT, Channel, FrameTooLargeError, HostileFrameError
from .tcp import OUT_OF_DESCRIPTORS, SCARCE_SECONDS, LoopbackAddress, accepted

MOST_STRANGERS: Final = 16
"""The maximum number of unauthenticated connections of a port; the oldest is closed."""


class StreamEndedError(Exception):
    """The other end has disconnected, or is not of this cluster."""


class MessageStream:
    """One end of a stream, which does not block."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    @property
    def is_trusted(self) -> bool:
        """Whether the other end has proven that it is of this cluster."""
        return self._channel.trusted

    def fileno(self) -> int:
        """Return its descriptor."""
        return self._channel.fileno()

    def send(self, message: object) -> bool:
        """Send a picklable message; return whether all of it was sent (else call `flush`).

        Raises `StreamEndedError`, and `FrameTooLargeError` if its pickle is too long.
        """
        body = pickle.dumps(message, 5)
        if len(body) > FRAME_LIMIT:
            raise FrameTooLargeError(f"a message of {len(body)} bytes exceeds {FRAME_LIMIT}")
        try:
            self._channel.send(body)
            return self._channel.flush()
        except OSError as error:
            raise StreamEndedError(str(error)) from None

    def flush(self) -> bool:
        """Send the unsent bytes; return whether all are sent.

        Raises `StreamEndedError`.
        """
        try:
            return self._channel.flush()
        except OSError as error:
            raise StreamEndedError(str(error)) from None

    def receive(self) -> object | None:
        """Return the next message, None if it is incomplete. Raises `StreamEndedError`."""
        try:
            body = self._channel.recv()
        except BlockingIOError:
            return None
        except (HostileFrameError, OSError) as error:
            raise StreamEndedError(str(error)) from None
        if not body:
            raise StreamEndedError("the other end has hung up")
        return pickle.loads(body)  # type: ignore[no-any-return]  # noqa: S301  # its MAC is right

    def close(self) -> None:
        """Close it."""
        self._channel.close()


def dial(port: int, key: bytes, host: str, seconds: float) -> MessageStream:
    """Open a stream to an actor's port, within so many seconds.

    Raises `StreamEndedError`.
    """
    plain = socket.socket()
    plain.settimeout(seconds)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    channel = Channel(plain, key, accepted=False)
    try:
        channel.connect((host, port))
        channel.greet()
        is_open = channel.shake_hands() is not None
        plain.settimeout(0)
    except (HostileFrameError, OSError) as error:
        channel.close()
        raise StreamEndedError(str(error)) from None
    if not is_open:
        channel.close()
        raise StreamEndedError("the other end has hung up")
    return MessageStream(channel)


class StreamPort:
    """The listening socket of an actor's process for streams, and its open streams."""

    def __init__(self) -> None:
        """Listen on the host of the process's transport."""
        self._listening = socket.create_server((LoopbackAddress.host, 0))
        self._listening.settimeout(0)
        self._streams: dict[int, MessageStream] = {}
        """By descriptor, the oldest first."""

    @property
    def number(self) -> int:
        """The port number."""
        return int(self._listening.getsockname()[1])

    @property
    def watched(self) -> list[int]:
        """The descriptors to watch for input."""
        return [self._listening.fileno(), *self._streams]

    def receive(self, readable: Iterable[int]) -> Iterator[tuple[MessageStream, object]]:
        """Yield a message of each stream that has one, of these descriptors."""
        for number in readable:
            if number == self._listening.fileno():
                self._accept()
            elif (stream := self._streams.get(number)) is not None:
                try:
                    message = stream.receive()
                except StreamEndedError:
                    self.close(stream)
                else:
                    if message is not None:
                        yield stream, message

    def close(self, stream: MessageStream) -> None:
        """Close one of its streams; idempotent."""
        for number in [each for each, held in self._streams.items() if held is stream]:
            del self._streams[number]
        stream.close()

    def _accept(self) -> None:
        try:
            plain, _ = self._listening.accept()
        except OSError as error:
            if error.errno in OUT_OF_DESCRIPTORS:
                time.sleep(SCARCE_SECONDS)  # else the loop would spin
            return
        plain.settimeout(0)
        with suppress(OSError):
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        strangers = [each for each in self._streams.values() if not each.is_trusted]
        for each in strangers[: max(0, len(strangers) + 1 - MOST_STRANGERS)]:
            self.close(each)
        self._streams[plain.fileno()] = MessageStream(accepted(plain))
