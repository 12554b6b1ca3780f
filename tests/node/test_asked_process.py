"""A process beside the actors that does not echo any more is replaced, as one that ended is."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.timing import Backoff
from fairlead.actors.worker.instructions import Timing
from fairlead.runtime.cluster.spec import EngineSpec, KafkaSpec, NodeSpec
from fairlead.runtime.node.launcher.kafka_process import AskedProcess, KafkaProcess
from fairlead.runtime.node.process_files import ProcessFiles

ECHOING = """
import socket, sys
end = socket.socket(fileno=int(sys.argv[1]))
while asked := end.recv(1):
    end.send(asked)
"""


class Echoing(AskedProcess):
    """A program in place of the listener."""

    title = "echoing"


@pytest.fixture
def echoing(tmp_path: Path) -> Iterator[Echoing]:
    """A program that must answer within half a second."""
    node = node_at(tmp_path)
    process = Echoing("unused", {}, ProcessFiles(tmp_path / "run").recorder("echo", ""), node)
    process._command[process._command.index("-m") :] = ["-c", ECHOING]
    process.start()
    yield process
    process.stop()


def node_at(folder: Path, answer_timeout_ms: int = 500) -> NodeSpec:
    return NodeSpec(
        *(folder, "connect", "here", ("w1",), GroupSettings(), Timing(), EngineSpec("noop")),
        backoff_ms=Backoff(1, 1),
        answer_timeout_ms=answer_timeout_ms,
    )


def until(process: AskedProcess, is_so: Callable[[], bool]) -> None:
    """Look after the process until something is so."""
    deadline = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < deadline
        process.look_after()
        time.sleep(0.02)


def test_a_process_that_echoes_is_left_alone(echoing: Echoing) -> None:
    pid = echoing.pid
    until(echoing, lambda: echoing.probe.idle_seconds > 0)  # asked and answered
    assert (echoing.pid, echoing.silent_seconds) == (pid, 0.0)


def test_a_process_that_does_not_echo_any_more_is_replaced(echoing: Echoing) -> None:
    until(echoing, lambda: echoing.probe.idle_seconds > 0)
    pid = echoing.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    until(echoing, lambda: echoing.silent_seconds > 0)  # it is told meanwhile
    until(echoing, lambda: echoing.pid != pid)
    until(echoing, lambda: echoing.is_settled and echoing.probe.idle_seconds > 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_process_that_hangs_in_its_start_is_replaced_after_a_longer_time(
    echoing: Echoing,
) -> None:
    pid = echoing.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)  # Python itself takes longer to start
    until(echoing, lambda: echoing.probe.silence.is_over)
    assert (echoing.pid, echoing.silent_seconds) == (pid, 0.0)
    until(echoing, lambda: echoing.pid != pid)
    until(echoing, lambda: echoing.is_settled and echoing.probe.idle_seconds > 0)


def test_the_listener_of_kafkas_clients_echoes(tmp_path: Path) -> None:
    host = "127.0.0.1"
    spec = KafkaSpec(host, 0, host, ((host, 1),), 1, 9, 9, 45_000, 5_000, 60_000, 60_000)
    (tmp_path / "logs").mkdir()
    (tmp_path / "run").mkdir()
    listener = KafkaProcess(ProcessFiles(tmp_path / "run"), node_at(tmp_path, 30_000), spec)
    listener.start()
    try:
        pid = listener.pid
        until(listener, lambda: listener.probe.idle_seconds > 0)
        assert (listener.pid, listener.silent_seconds) == (pid, 0.0)
    finally:
        listener.stop()
