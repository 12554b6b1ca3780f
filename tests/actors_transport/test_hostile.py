# pyright: reportPrivateUsage=false
"""What strangers on the same machine can do to a system: nothing."""

import contextlib
import pickle
import random
import resource
import socket
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from fairlead.actors.transport import tcp
from fairlead.actors.transport.actor import Address
from fairlead.actors.transport.channel import Channel, Direction, FrameTooLargeError
from fairlead.actors.transport.system import System
from fairlead_tests.actor_system import Running, eventually, isolated, listeners, log_of, runs
from fairlead_tests.actors_transport.probe_actors import Echo, Parent, Tell

ASK = 30.0
pytestmark = pytest.mark.cluster
BAD = bytes(32)


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
    """The bomb in a well-made frame of ours, with a key that is not the cluster's."""
    return Direction(BAD).frame(pickle.dumps(Bomb(proof)))


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
    shared_system: Running, attack: Callable[[Path], bytes]
) -> None:
    system, proof = shared_system.system, shared_system.folder / "proof"
    echo, closed = system.create(Echo), "closed a connection"
    before = log_of(shared_system.folder).count(closed)
    ports = listeners(shared_system.processes()[1:])  # the launcher hears nobody, it only asks
    assert len(ports) == 2
    for _, port in ports:
        assert said_to_a_stranger(port, attack(proof)) == b""
    assert system.ask(echo, "still there", ASK) == "still there"
    assert not proof.exists()
    assert log_of(shared_system.folder).count(closed) > before


def said_to_a_stranger(port: int, attack: bytes) -> bytes:
    """All that a process answers to some bytes before it hangs up."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as stranger:
        try:
            stranger.sendall(attack)
            return stranger.recv(1)
        except ConnectionError:
            return b""


def test_who_takes_over_a_port_is_not_believed_and_is_told_nothing(shared_system: Running) -> None:
    system = shared_system.system
    parent, dead, other = system.create(Parent), system.create(Echo), system.create(Echo)
    dead_port, other_port = (port_of(system, each) for each in (dead, other))
    process = process_of(system, dead)
    process.kill()
    eventually(lambda: not runs(process), "it is dead, and its port free")
    with socket.create_server(("127.0.0.1", dead_port)) as impostor:
        system.tell(parent, Tell(dead, "a secret"))
        caller, _ = impostor.accept()
        with caller:
            caller.settimeout(60)
            hello = caller.recv(1 << 16)
            caller.settimeout(1)
            with pytest.raises(TimeoutError):
                caller.recv(1)
            assert hello[:8] == b"fairlead"
            assert len(hello) == 72
            assert said_to_a_stranger(other_port, hello) == b""  # nobody else takes it
            caller.sendall(random.Random(1).randbytes(64))
            undelivered = ["undelivered str"]
            eventually(lambda: system.ask(parent, "story", ASK) == undelivered, "it is back")
    assert "does not have this cluster's key" in log_of(shared_system.folder)


def test_a_recorded_hello_gets_a_new_greeting_and_what_followed_it_is_refused(
    shared_system: Running,
) -> None:
    system = shared_system.system
    echo = system.create(Echo)
    port = port_of(system, echo)
    answers = list[bytes]()
    hello = hello_for(port, shared_system.address.key)
    for _ in range(2):
        with socket.create_connection(("127.0.0.1", port), timeout=60) as stranger:
            stranger.sendall(hello)
            answers.append(stranger.recv(1 << 16))
            stranger.sendall(Direction(shared_system.address.key).frame(b"recorded"))
            with contextlib.suppress(ConnectionError):
                assert stranger.recv(1) == b""
    assert [len(each) for each in answers] == [64, 64]
    assert answers[0] != answers[1]
    assert system.ask(echo, "still there", ASK) == "still there"


def hello_for(port: int, key: bytes) -> bytes:
    """What a process of the cluster would send to a port first."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as caller:
        caller.connect(server.getsockname())
        channel = Channel(caller, key, accepted=False)
        channel._address = f"127.0.0.1:{port}".encode()
        channel.greet()
        with contextlib.closing(server.accept()[0]) as acceptor:
            return acceptor.recv(1 << 16)


def process_of(system: System, echo: Address) -> psutil.Process:
    """The process of an actor that has told its process id."""
    pid = system.ask(echo, "pid", ASK)
    assert isinstance(pid, int)
    return psutil.Process(pid)


def port_of(system: System, echo: Address) -> int:
    """The port on which an actor listens."""
    ((_, port),) = listeners([process_of(system, echo)])
    return port


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


def test_a_message_too_large_is_refused_where_it_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp, "FRAME_LIMIT", 100)
    sender = SimpleNamespace(myAddress=None)
    serialize: Any = tcp.Transport.serializer
    assert len(serialize(sender, SimpleNamespace(message=b"x" * 50))) > 50
    with pytest.raises(FrameTooLargeError, match="send it in parts"):
        serialize(sender, SimpleNamespace(message=b"x" * 100))


def test_an_actor_without_descriptors_lives_on_and_hears_when_there_are_some(
    shared_system: Running,
) -> None:
    system = shared_system.system
    echo = system.create(Echo)
    process, port = process_of(system, echo), port_of(system, echo)
    most = process.num_fds() + 3
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (most, most))
    with contextlib.ExitStack() as crowd:
        for _ in range(60):
            crowd.enter_context(socket.create_connection(("127.0.0.1", port)))
        before = process.cpu_times()
        time.sleep(2)
        after = process.cpu_times()
        assert after.user + after.system - before.user - before.system < 1, "it does not spin"
    assert runs(process)
    eventually(lambda: system.ask(echo, "still there", 5) == "still there", "it hears again")
