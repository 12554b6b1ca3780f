"""A stream of messages between two processes of a cluster, beside the letters of their actors.

What passes thousands of times a second costs a letter each time: an envelope, an acknowledgement,
turns of two loops. Here a message is one frame of a `Channel`, whose ends have proven the cluster's
key to each other before any is loaded. One end is an actor's, which has a `StreamPort` and is told
when there is something to read; the other is any process that knows the key and the port. What was
sent arrives in its order, or the stream ends.
"""

import pickle
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

from .channel import FRAME_LIMIT, Channel, FrameTooLargeError, HostileFrameError
from .transport import OUT_OF_DESCRIPTORS, SCARCE_SECONDS, LoopbackAddress, accepted

MOST_STRANGERS: Final = 16
"""Connections of one port that have not proven the key yet; the oldest of more is closed."""


class StreamEndedError(Exception):
    """The other end has gone, or is none of this cluster."""


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
        """Send a message that pickle takes; tell whether the system has taken all of it.

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
        """Send what the system did not take before; tell whether it has all by now.

        Raises `StreamEndedError`.
        """
        try:
            return self._channel.flush()
        except OSError as error:
            raise StreamEndedError(str(error)) from None

    def receive(self) -> object | None:
        """Return the next message; None: it is not here yet. Raises `StreamEndedError`."""
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
    """Return a stream to an actor's port; it may take so long.

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
    """Where an actor's process takes streams, and those that it has."""

    def __init__(self) -> None:
        """Listen, on the address that all of the process listens on."""
        self._listening = socket.create_server((LoopbackAddress.host, 0))
        self._listening.settimeout(0)
        self._streams: dict[int, MessageStream] = {}
        """By descriptor, the oldest first."""

    @property
    def number(self) -> int:
        """The port's number."""
        return int(self._listening.getsockname()[1])

    @property
    def watched(self) -> list[int]:
        """The descriptors that may have something to read."""
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
        """Close one of its streams; it may be closed already."""
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
