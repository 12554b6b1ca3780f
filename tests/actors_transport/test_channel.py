# pyright: reportPrivateUsage=false
"""What a channel accepts: its own other end, once, in order, and nobody else."""

import random
import socket
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field

import pytest

from fairlead.actors.transport import channel
from fairlead.actors.transport.channel import Channel, HostileFrameError

KEY, OTHER = bytes(range(32)), bytes(32)
HELLO, GREETING, BEFORE_BODY = 72, 64, 52


@dataclass
class Wire:
    """Two sockets that are connected, and what has been read off them."""

    caller: socket.socket
    acceptor: socket.socket
    story: list[bytes] = field(default_factory=list[bytes])


class Tap:
    """Makes connections over loopback."""

    def __init__(self) -> None:
        self._open = ExitStack()

    def wire(self, server: socket.socket | None = None) -> Wire:
        """Connect two sockets, to a given listening socket or to a new one."""
        server = server or self.server()
        caller = self._open.enter_context(closing(socket.create_connection(server.getsockname())))
        acceptor = self._open.enter_context(closing(server.accept()[0]))
        for each in (caller, acceptor):
            each.setblocking(False)
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return Wire(caller, acceptor)

    def server(self) -> socket.socket:
        """Listen on a port of its own."""
        return self._open.enter_context(closing(socket.create_server(("127.0.0.1", 0))))

    def close(self) -> None:
        """Close all."""
        self._open.close()


@pytest.fixture
def tap() -> Generator[Tap]:
    made = Tap()
    yield made
    made.close()


def ends(wire: Wire, key: bytes = KEY) -> tuple[Channel, Channel]:
    """Both ends of a connection, before the handshake."""
    caller = Channel(wire.caller, key, accepted=False)
    caller._address = channel._encode(wire.caller.getpeername())
    return caller, Channel(wire.acceptor, KEY, accepted=True)


def opened(wire: Wire) -> tuple[Channel, Channel]:
    """Both ends of a connection, after the handshake."""
    caller, acceptor = ends(wire)
    caller.greet()
    with pytest.raises(BlockingIOError):
        acceptor.recv()
    assert caller.shake_hands()
    return caller, acceptor


def tapped(wire: Wire, size: int = 1 << 20) -> bytes:
    """What has arrived at the acceptor's socket, which so does not get it."""
    return wire.acceptor.recv(size)


def test_bodies_pass_both_ways_in_order(tap: Tap) -> None:
    caller, acceptor = opened(tap.wire())
    for body in (b"one", b"two", b"x" * 100_000):
        caller.send(body)
    acceptor.send(b"to the caller")
    assert [bytes(acceptor.recv()) for _ in range(3)] == [b"one", b"two", b"x" * 100_000]
    assert bytes(caller.recv()) == b"to the caller"
    caller.close()
    assert acceptor.recv() == b""


def test_a_body_larger_than_the_system_takes_at_once_arrives(tap: Tap) -> None:
    caller, acceptor = opened(tap.wire())
    body = random.Random(1).randbytes(20 << 20)
    caller.send(body)
    assert not caller.flush()
    got = b""
    while not got:
        try:
            got = bytes(acceptor.recv())
        except BlockingIOError:
            caller.flush()
    assert got == body
    assert caller.flush()


def test_a_reader_never_reads_into_the_next_frame(tap: Tap) -> None:
    wire = tap.wire()
    caller, acceptor = opened(wire)
    caller.send(b"one")
    caller.send(b"two")
    assert bytes(acceptor.recv()) == b"one"
    assert len(tapped(wire)) == BEFORE_BODY + len(b"two")


def test_who_connects_sends_no_content_before_the_other_end_has_proven_the_key(tap: Tap) -> None:
    wire = tap.wire()
    caller, _ = ends(wire)
    caller.greet()
    with pytest.raises(ConnectionError):
        caller.send(b"secret")
    assert len(tapped(wire)) == HELLO
    wire.acceptor.sendall(random.Random(1).randbytes(GREETING))
    with pytest.raises(HostileFrameError):
        caller.shake_hands()
    assert not caller.is_open
    with pytest.raises(BlockingIOError):
        tapped(wire)


def test_who_does_not_have_the_key_is_not_answered(tap: Tap) -> None:
    wire = tap.wire()
    caller, acceptor = ends(wire, OTHER)
    caller.greet()
    with pytest.raises(HostileFrameError):
        acceptor.recv()
    with pytest.raises(BlockingIOError):
        wire.caller.recv(1)


def test_a_connection_is_trusted_from_its_first_header_on(tap: Tap) -> None:
    wire = tap.wire()
    caller, acceptor = opened(wire)
    assert (caller.trusted, acceptor.trusted) == (True, False)
    caller.send(b"body")
    frame = tapped(wire)
    wire.caller.sendall(frame[:20])
    with pytest.raises(BlockingIOError):
        acceptor.recv()
    assert acceptor.trusted


def captured(tap: Tap, server: socket.socket | None = None) -> tuple[bytes, bytes, bytes]:
    """All that a caller sent on one connection (hello, then two frames), and the greeting."""
    wire = tap.wire(server)
    caller, acceptor = ends(wire)
    caller.greet()
    hello = tapped(wire)
    wire.caller.sendall(hello)
    with pytest.raises(BlockingIOError):
        acceptor.recv()
    greeting = wire.caller.recv(GREETING)
    wire.acceptor.sendall(greeting)
    caller.shake_hands()
    caller.send(b"first")
    caller.send(b"second")
    return hello, greeting, tapped(wire)


def test_what_was_captured_is_not_accepted_on_another_connection_to_the_same_port(tap: Tap) -> None:
    server = tap.server()
    hello, _, frames = captured(tap, server)
    wire = tap.wire(server)
    acceptor = Channel(wire.acceptor, KEY, accepted=True)
    wire.caller.sendall(hello + frames)
    with pytest.raises(HostileFrameError):
        acceptor.recv()
    assert not acceptor.trusted


def test_what_was_captured_is_not_accepted_at_another_port(tap: Tap) -> None:
    hello, _, frames = captured(tap)
    wire = tap.wire()
    wire.caller.sendall(hello + frames)
    acceptor = Channel(wire.acceptor, KEY, accepted=True)
    with pytest.raises(HostileFrameError):
        acceptor.recv()
    assert not acceptor.is_open


def test_an_old_greeting_opens_no_connection(tap: Tap) -> None:
    server = tap.server()
    _, greeting, _ = captured(tap, server)
    wire = tap.wire(server)
    caller, _ = ends(wire)
    caller.greet()
    wire.acceptor.sendall(greeting)
    with pytest.raises(HostileFrameError):
        caller.shake_hands()


def test_who_took_over_a_port_cannot_pass_a_hello_on_to_another_process(tap: Tap) -> None:
    taken, other = tap.wire(), tap.wire()
    caller, _ = ends(taken)
    caller.greet()
    other.caller.sendall(tapped(taken))
    acceptor = Channel(other.acceptor, KEY, accepted=True)
    with pytest.raises(HostileFrameError):
        acceptor.recv()
    with pytest.raises(BlockingIOError):
        other.caller.recv(1)


def test_what_a_process_has_sent_is_not_accepted_when_it_comes_back(tap: Tap) -> None:
    wire = tap.wire()
    caller, _ = opened(wire)
    caller.send(b"body")
    wire.acceptor.sendall(tapped(wire))
    with pytest.raises(HostileFrameError):
        caller.recv()


def test_a_hello_that_comes_back_is_no_greeting(tap: Tap) -> None:
    wire = tap.wire()
    caller, _ = ends(wire)
    caller.greet()
    wire.acceptor.sendall(tapped(wire))
    with pytest.raises(HostileFrameError):
        caller.shake_hands()


Change = Callable[[list[bytes]], bytes]


CHANGES: dict[str, Change] = {
    "reordered": lambda frames: frames[1] + frames[0],
    "first left out": lambda frames: frames[1],
    "header of another": lambda frames: frames[0][:20] + frames[1][20:],
    "body of another": lambda frames: frames[0][:BEFORE_BODY] + frames[1][BEFORE_BODY:],
    "truncated": lambda frames: frames[0][:-1] + frames[1],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_frames_count_in_their_places_only(tap: Tap, change: Change) -> None:
    wire = tap.wire()
    caller, acceptor = opened(wire)
    frames = list[bytes]()
    for body in (b"first", b"other"):
        caller.send(body)
        frames.append(tapped(wire))
    wire.caller.sendall(change(frames))
    with pytest.raises(HostileFrameError):
        acceptor.recv()


def test_a_frame_is_accepted_once(tap: Tap) -> None:
    wire = tap.wire()
    caller, acceptor = opened(wire)
    caller.send(b"body")
    frame = tapped(wire)
    wire.caller.sendall(frame * 2)
    assert bytes(acceptor.recv()) == b"body"
    with pytest.raises(HostileFrameError):
        acceptor.recv()


def test_every_bit_of_a_frame_counts(tap: Tap) -> None:
    server = tap.server()
    for place in range(BEFORE_BODY + len(b"body")):
        wire = tap.wire(server)
        caller, acceptor = opened(wire)
        caller.send(b"body")
        frame = bytearray(tapped(wire))
        frame[place] ^= 1 << place % 8
        wire.caller.sendall(frame)
        with pytest.raises(HostileFrameError):
            acceptor.recv()


def test_every_bit_of_a_handshake_counts(tap: Tap) -> None:
    server = tap.server()
    for place in range(HELLO + GREETING):
        wire = tap.wire(server)
        caller, acceptor = ends(wire)
        caller.greet()
        hello = bytearray(tapped(wire))
        if place < HELLO:
            hello[place] ^= 1 << place % 8
            wire.caller.sendall(hello)
            with pytest.raises(HostileFrameError):
                acceptor.recv()
            continue
        wire.caller.sendall(hello)
        with pytest.raises(BlockingIOError):
            acceptor.recv()
        greeting = bytearray(wire.caller.recv(GREETING))
        greeting[place - HELLO] ^= 1 << place % 8
        wire.acceptor.sendall(greeting)
        with pytest.raises(HostileFrameError):
            caller.shake_hands()


def test_nothing_is_held_for_a_stranger(tap: Tap) -> None:
    wire = tap.wire()
    _, acceptor = ends(wire)
    wire.caller.sendall(bytes(100_000))
    with pytest.raises(HostileFrameError):
        acceptor.recv()
    assert len(acceptor._input) <= HELLO


def test_a_length_without_its_tag_reserves_nothing(tap: Tap) -> None:
    wire = tap.wire()
    _, acceptor = opened(wire)
    wire.caller.sendall(b"\xff" * 20 + bytes(1000))
    with pytest.raises(HostileFrameError):
        acceptor.recv()
    assert acceptor._length is None


def test_a_handshake_and_a_frame_arrive_in_any_pieces(tap: Tap) -> None:
    server = tap.server()
    for size in (1, 7, 20, 52, 71, 73):
        wire = tap.wire(server)
        caller, acceptor = ends(wire)
        caller.greet()
        for piece in pieces(tapped(wire), size):
            wire.caller.sendall(piece)
            with pytest.raises(BlockingIOError):
                acceptor.recv()
        for piece in pieces(wire.caller.recv(GREETING), size):
            assert not caller.is_open
            wire.acceptor.sendall(piece)
            try:
                caller.shake_hands()
            except BlockingIOError:
                continue
        caller.send(b"body" * 30)
        got = b""
        for piece in pieces(tapped(wire), size):
            assert got == b""
            wire.caller.sendall(piece)
            try:
                got = bytes(acceptor.recv())
            except BlockingIOError:
                continue
        assert got == b"body" * 30


def pieces(data: bytes, size: int) -> list[bytes]:
    """Cut data into pieces."""
    return [data[start : start + size] for start in range(0, len(data), size)]
