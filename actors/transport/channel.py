"""A connection whose two ends authenticate each other with the cluster's key before any message.

The end that connects sends a *hello*, the one that accepts answers with a *greeting*, and then
*frames* pass both ways:

    hello     magic(8) | nonce(32) | mac(32)     "whoever knows the key, at this address"
    greeting  nonce(32) | mac(32)                proves the key for this hello, at this address
    frame     length(4) | tag(16) | mac(32) | body

Every MAC is keyed BLAKE2b. Those of hello and greeting are made with the cluster's key and cover
the address (host and port) that was connected to: what is said to a port that has changed hands
cannot be passed on to a process that listens elsewhere. Those of frames are made with a key of
this connection and this direction, which comes from the cluster's key, both nonces and the
address; they cover the frame's number, its length and its body. So a frame is accepted once, in
its place, on the connection for which it was made, and nowhere else.

Nothing but a hello is sent before the other end has proven the key, and a hello proves nothing
by itself. The accepting end trusts the other only after the first frame's header, whose key depends
on the accepting end's own nonce (no replay). Bodies are authenticated, but not encrypted: they are
visible to those who can read loopback traffic.

No memory is allocated for a frame before the tag of its header has been checked.
"""

import hmac
import os
import pickle
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from typing import Final, NamedTuple

FRAME_LIMIT = 64 << 20  # maximum size of a body, in bytes

_MAGIC: Final = b"fairlead"
_NONCE: Final = 32
_MAC: Final = 32
_TAG: Final = 16
_HELLO: Final = len(_MAGIC) + _NONCE + _MAC
_GREETING: Final = _NONCE + _MAC
_START: Final = struct.Struct(">QI")  # a frame's number and length
_NUMBER: Final = 8  # bytes of the number, which both ends count and neither sends
_HEADER: Final = _START.size - _NUMBER + _TAG
_READ: Final = 1 << 20  # bytes read at once


class HostileFrameError(Exception):
    """A frame without a valid MAC for this position on this connection: forged, or a replay."""


class FrameTooLargeError(ValueError):
    """A message whose pickle exceeds `FRAME_LIMIT` bytes."""


class Direction:
    """One direction of a connection: it numbers, encodes and verifies frames."""

    def __init__(self, key: bytes) -> None:
        self._headers = blake2b(key=key, digest_size=_TAG, person=b"header")
        self._bodies = blake2b(key=key, digest_size=_MAC, person=b"body")
        self._number = 0  # of the next frame, or of the one whose header has been read

    def frame(self, body: bytes) -> bytes:
        """Encode the next frame."""
        start = _START.pack(self._number, len(body))
        self._number += 1
        tag, mac = self._tag(start), self._mac(start, body)
        return b"".join((start[_NUMBER:], tag, mac, body))

    def length(self, header: bytes) -> int:
        """Verify the next frame's header; return the length of its body in bytes."""
        (length,) = struct.unpack_from(">I", header)
        tag = self._tag(_START.pack(self._number, length))
        if not hmac.compare_digest(tag, header[-_TAG:]) or length > FRAME_LIMIT:
            raise HostileFrameError("a header without this connection's key")
        return int(length)

    def body(self, sealed: bytes) -> memoryview:
        """Verify a MAC and a body, after the frame's header; return the body."""
        mac, body = sealed[:_MAC], memoryview(sealed)[_MAC:]
        if not hmac.compare_digest(self._mac(_START.pack(self._number, len(body)), body), mac):
            raise HostileFrameError("a body without this connection's key")
        self._number += 1
        return body

    def _tag(self, start: bytes) -> bytes:
        digest = self._headers.copy()
        digest.update(start)
        return digest.digest()

    def _mac(self, start: bytes, body: bytes | memoryview) -> bytes:
        digest = self._bodies.copy()
        digest.update(start)
        digest.update(body)
        return digest.digest()


class SessionKeys(NamedTuple):
    """The keys of one end of an open connection, for both directions."""

    incoming: Direction
    outgoing: Direction


def _prove(key: bytes, purpose: bytes, *parts: bytes) -> bytes:
    """Return the MAC of parts, all but the last of fixed lengths, for one purpose."""
    return blake2b(b"".join(parts), key=key, digest_size=_MAC, person=purpose).digest()


def _encode(address: tuple[str, int]) -> bytes:
    return f"{address[0]}:{address[1]}".encode()


class Channel:
    """A stream socket that sends and receives whole bodies after a mutual authentication.

    It has the interface of a plain non-blocking socket. It reads at most to the end of one frame,
    so that the socket stays readable while there is more input.
    """

    def __init__(self, plain: socket.socket, key: bytes, *, accepted: bool) -> None:
        self._plain = plain
        self._key = key
        self._accepted = accepted
        #: The address of the accepting end, which both ends know.
        self._address = _encode(plain.getsockname()) if accepted else b""
        self._hello = b""  # the hello that was sent or received; empty before
        self._keys: SessionKeys | None = None  # set once the handshake is over for this end
        """None until the handshake is complete."""
        self._length: int | None = None  # of the next body, once its header is read
        self._input = bytearray()  # received part of the next protocol element
        self._output = bytearray()  # unsent bytes
        #: Whether the other end has proven, on this connection, that it holds the key.
        self.trusted = False
        """Whether the other end has proven that it knows the cluster's key."""

    def greet(self) -> None:
        """Send the hello on a connection opened by this process; `recv` handles the greeting."""
        start = _MAGIC + os.urandom(_NONCE)
        self._hello = start + _prove(self._key, b"hello", start, self._address)
        self._output += self._hello
        self.flush()

    @property
    def is_open(self) -> bool:
        """Whether the handshake is over for this end, so that it may send."""
        return self._keys is not None

    def send(self, body: bytes) -> None:
        """Send a body; bytes that cannot be sent at once are left to `flush`."""
        if self._keys is None:
            raise ConnectionError("the other end has not proven yet that it holds the key")
        self._output += self._keys.outgoing.frame(body)
        self.flush()

    def flush(self) -> bool:
        """Send the unsent bytes; return whether all are sent."""
        with suppress(BlockingIOError):
            while self._output:
                with memoryview(self._output) as view:
                    sent = self._plain.send(view)
                del self._output[:sent]
        return not self._output

    def recv(self, _size: int = 0) -> bytes | memoryview:
        """Return the next body, b"" if the other end has closed the connection.

        Raises `BlockingIOError` while it has not arrived in full, `HostileFrameError`, and what
        a socket raises.
        """
        self.flush()
        keys = self._keys or self.shake_hands()
        if keys and self._length is None and (header := self._receive_exactly(_HEADER)):
            self._length = keys.incoming.length(header)
            self.trusted = True
        if not keys or self._length is None:
            return b""
        sealed = self._receive_exactly(_MAC + self._length)
        self._length = None
        return keys.incoming.body(sealed) if sealed else b""

    def shake_hands(self) -> SessionKeys | None:
        """Handle the other end's part of the handshake; return None if it has disconnected.

        Raises as `recv` does.
        """
        if self._accepted:
            return self._answer_hello()
        return self._check_greeting()

    def _answer_hello(self) -> SessionKeys | None:
        hello = self._receive_exactly(_HELLO)
        if not hello:
            return None
        mac = _prove(self._key, b"hello", hello[:-_MAC], self._address)
        if not hmac.compare_digest(mac, hello[-_MAC:]):
            raise HostileFrameError("a connection that did not begin with this cluster's key")
        self._hello, nonce = hello, os.urandom(_NONCE)
        self._output += nonce + _prove(self._key, b"greeting", hello, nonce, self._address)
        self.flush()
        return self._derive_keys(nonce)

    def _check_greeting(self) -> SessionKeys | None:
        greeting = self._receive_exactly(_GREETING)
        if not greeting:
            return None
        nonce, mac = greeting[:_NONCE], greeting[_NONCE:]
        proof = _prove(self._key, b"greeting", self._hello, nonce, self._address)
        if not hmac.compare_digest(proof, mac):
            raise HostileFrameError("what answers on a port does not have this cluster's key")
        self.trusted = True
        return self._derive_keys(nonce)

    def _derive_keys(self, nonce: bytes) -> SessionKeys:
        to_acceptor, to_caller = (
            Direction(_prove(self._key, towards, self._hello, nonce, self._address))
            for towards in (b"to the acceptor", b"to the caller")
        )
        self._keys = (
            SessionKeys(to_acceptor, to_caller)
            if self._accepted
            else SessionKeys(to_caller, to_acceptor)
        )
        return self._keys

    def _receive_exactly(self, size: int) -> bytes:
        while len(self._input) < size:
            data = self._plain.recv(min(_READ, size - len(self._input)))
            if not data:
                return b""
            self._input += data
        piece = bytes(self._input)
        self._input.clear()
        return piece

    def connect(self, address: tuple[str, int]) -> None:
        """Connect the socket."""
        self._address = _encode(address)
        self._plain.connect(address)

    def fileno(self) -> int:
        """Return the socket's descriptor."""
        return self._plain.fileno()

    def setblocking(self, flag: bool) -> None:  # noqa: FBT001  (as a socket has it)
        """Set the blocking mode of the socket."""
        self._plain.setblocking(flag)

    def setsockopt(self, level: int, option: int, value: int) -> None:
        """Set an option of the socket."""
        self._plain.setsockopt(level, option, value)

    def shutdown(self, how: int) -> None:
        """Shut the socket down."""
        self._plain.shutdown(how)

    def close(self) -> None:
        """Close the socket."""
        self._plain.close()


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
            self._message = (pickle.loads(self._body),)  # noqa: S301  # its MAC is verified
        return self._message[0], b""

    def removeExtra(self) -> None:
        """Do nothing: no bytes follow the message."""
