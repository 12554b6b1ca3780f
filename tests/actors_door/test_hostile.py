"""What strangers on the same machine can do to a system: nothing."""

import contextlib
import pickle
import random
import socket
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from actor_system import Running, eventually, isolated, listeners, log_of, runs
from actors_door.cast import Echo, Parent, Tell

from fairlead.actors import transport
from fairlead.actors.transport import FrameBuffer, FrameTooLargeError, HostileFrameError, Seal

ASK = 30.0
pytestmark = pytest.mark.cluster
GOOD, BAD = bytes(range(32)), bytes(32)


class Bomb:
    """A pickle that runs a command where it is loaded."""

    def __init__(self, proof: Path) -> None:
        self.proof = proof

    def __reduce__(self) -> tuple[Callable[[list[str]], int], tuple[list[str]]]:
        return subprocess.call, (["/usr/bin/touch", str(self.proof)],)


def stock(proof: Path) -> bytes:
    """The bomb as stock Thespian would frame it."""
    body = pickle.dumps(Bomb(proof))
    return b"%d>%s" % (len(body), body)


def prefixed(proof: Path) -> bytes:
    """The bomb behind a length of our own kind, without any proof."""
    body = pickle.dumps(Bomb(proof))
    return struct.pack(">I", len(body)) + bytes(48) + body


def wrong_key(proof: Path) -> bytes:
    """The bomb, well sealed with a key that is not the cluster's."""
    return Seal(BAD).frame(Bomb(proof))


def noise(proof: Path) -> bytes:
    """Random bytes."""
    return random.Random(str(proof.name)).randbytes(100_000)


def four_gibibytes(_proof: Path) -> bytes:
    """A claim that four gibibytes follow."""
    return struct.pack(">I", 0xFFFFFFFF) + bytes(100_000)


def test_the_bomb_goes_off_where_it_is_loaded(tmp_path: Path) -> None:
    pickle.loads(pickle.dumps(Bomb(tmp_path / "proof")))
    assert (tmp_path / "proof").exists()


@pytest.mark.parametrize("attack", [stock, prefixed, wrong_key, noise, four_gibibytes])
def test_a_stranger_runs_nothing_and_is_not_answered(
    actor_system: Running, attack: Callable[[Path], bytes]
) -> None:
    system, proof = actor_system.system, actor_system.folder / "proof"
    echo = system.create(Echo)
    ports = listeners(actor_system.processes()[1:])  # the launcher hears nobody, it only asks
    assert len(ports) == 2
    for _, port in ports:
        assert said_to_a_stranger(port, attack(proof)) == b""
    assert system.ask(echo, "still there", ASK) == "still there"
    assert not proof.exists()
    assert "closed a connection" in log_of(actor_system.folder)


def said_to_a_stranger(port: int, attack: bytes) -> bytes:
    """All that a process answers to some bytes before it hangs up."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as stranger:
        try:
            stranger.sendall(attack)
            return stranger.recv(1)
        except ConnectionError:
            return b""


def test_who_takes_over_a_port_is_not_believed(actor_system: Running) -> None:
    system = actor_system.system
    parent, echo = system.create(Parent), system.create(Echo)
    (process,) = actor_system.titled("fairlead: echo")
    ((_, port),) = listeners([process])
    process.kill()
    eventually(lambda: not runs(process), "it is dead, and its port free")
    with socket.create_server(("127.0.0.1", port)) as impostor:
        system.tell(parent, Tell(echo, "hello"))
        caller, _ = impostor.accept()
        with caller:
            caller.sendall(Seal(BAD).ack)
            undelivered = ["undelivered str"]
            eventually(lambda: system.ask(parent, "story", ASK) == undelivered, "it is back")
    assert system.ask(parent, "story", ASK) == undelivered


def test_the_slow_and_the_truncated_are_cut_off(tmp_path: Path) -> None:
    with isolated(tmp_path / "system", STRANGER_SECONDS=0.2) as running:
        echo = running.system.create(Echo)
        (process,) = running.titled("fairlead: echo")
        for start in (b"", b"\0\0", bytes(19)):
            ((_, port),) = listeners([process])
            assert said_to_a_stranger(port, start) == b""
        assert running.system.ask(echo, "still there", ASK) == "still there"


def test_a_crowd_of_strangers_keeps_nobody_out(tmp_path: Path) -> None:
    with isolated(tmp_path / "system", STRANGERS_LIMIT=32) as running:
        echo = running.system.create(Echo)
        (process,) = running.titled("fairlead: echo")
        ((_, port),) = listeners([process])
        with contextlib.ExitStack() as crowd:
            for _ in range(150):
                crowd.enter_context(socket.create_connection(("127.0.0.1", port)))
            assert running.system.ask(echo, "still there", ASK) == "still there"
            eventually(lambda: process.num_fds() < 32 + 50, "most of the crowd is sent away")
            assert running.system.ask(echo, "still there", ASK) == "still there"


@pytest.fixture
def seal(monkeypatch: pytest.MonkeyPatch) -> Seal:
    seal = Seal(GOOD)
    monkeypatch.setattr(transport, "_seal", seal)
    return seal


def test_a_frame_arrives_in_any_pieces(seal: Seal) -> None:
    frame = seal.frame(["a", 1]) + seal.frame("next")
    for size in (1, 7, 20, 52, len(frame)):
        buffer = FrameBuffer()
        for start in range(0, len(frame), size):
            assert buffer.isDone() == (start >= len(seal.frame(["a", 1])))
            buffer.addMore(frame[start : start + size])
        assert buffer.completed() == (["a", 1], seal.frame("next"))


def test_a_reader_never_reads_into_the_next_frame(seal: Seal) -> None:
    for message in ("ACK", "x" * 1000):
        rest = seal.frame(message) + b"next"
        buffer = FrameBuffer()
        while not buffer.isDone():
            amount = buffer.remainingAmount()
            buffer.addMore(rest[:amount])
            rest = rest[amount:]
        assert (buffer.completed(), rest) == ((message, b""), b"next")


@pytest.mark.usefixtures("seal")
def test_nothing_is_held_for_a_stranger() -> None:
    buffer = FrameBuffer()
    with pytest.raises(HostileFrameError):
        buffer.addMore(struct.pack(">I", 1 << 30) + bytes(16))
    assert (buffer.trusted, buffer.isDone(), buffer.completed()) == (False, False, None)


def test_every_bit_of_a_frame_counts(seal: Seal) -> None:
    frame = seal.frame("message")
    for place in range(len(frame)):
        broken = bytearray(frame)
        broken[place] ^= 1
        with pytest.raises(HostileFrameError):
            FrameBuffer().addMore(bytes(broken))


def test_a_message_too_large_is_refused_where_it_is_sent(
    seal: Seal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "FRAME_LIMIT", 100)
    assert len(seal.frame(b"x" * 50)) > 50
    with pytest.raises(FrameTooLargeError, match="send it in parts"):
        seal.frame(b"x" * 100)
