"""The launcher's handle of REST: one that does not answer is replaced, as one that ended is."""

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.timing import Backoff
from fairlead.actors.worker.instructions import Timing
from fairlead.runtime.cluster.spec import EngineSpec, NodeSpec
from fairlead.runtime.config.load import load_config
from fairlead.runtime.node.launcher.rest_process import (
    HttpQuestion,
    RestProcess,
    RestStart,
    rest_command,
)
from fairlead.runtime.node.process_files import ProcessFiles
from fairlead.runtime.security.rest_listeners import RestListener

PROGRAM = """
import http.server, os, socketserver, sys
class Refusing(http.server.BaseHTTPRequestHandler):
    def do_HEAD(self):
        self.send_error(403)
    def log_message(self, *_):
        pass
if os.path.exists(sys.argv[1]):
    os.unlink(sys.argv[1])
server = socketserver.UnixStreamServer(sys.argv[1], Refusing)
os.write(int(sys.argv[3]), b"1")
server.serve_forever()
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "rest.sock"


@pytest.fixture
def rest(place: Path, tmp_path: Path) -> Iterator[RestProcess]:
    """A program in place of REST; it must answer within half a second."""
    node = NodeSpec(
        *(tmp_path, "connect", "here", ("w1",), GroupSettings(), Timing(), EngineSpec("noop")),
        backoff_ms=Backoff(1, 1),
        answer_timeout_ms=500,
    )
    listeners = [RestListener("unix", path=str(place))]
    start = RestStart(("-c", PROGRAM, str(place)), b"", listeners)
    process = RestProcess(start, ProcessFiles(tmp_path / "run"), node)
    assert process.open(lambda: False) == ""
    yield process
    process.stop()


def until(rest: RestProcess, is_so: Callable[[], bool]) -> None:
    """Look after the process until something is so."""
    deadline = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < deadline
        rest.look_after()
        time.sleep(0.02)


def ask(place: Path) -> tuple[object | None, bool]:
    question = HttpQuestion(place)
    try:
        return question.answer(10), question.is_lost
    finally:
        question.close()


def test_a_question_waits_for_nothing_before_its_answer_is_waited_for(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(place))
        server.listen()
        question = HttpQuestion(place)
        assert question._socket.getblocking() is False
        assert (question.answer(0), question.is_lost) == (None, False)
        question.close()


def test_a_process_that_answers_in_any_way_is_left_alone(rest: RestProcess, place: Path) -> None:
    pid = rest.pid
    assert ask(place) == (True, False)
    until(rest, lambda: rest.probe.idle_seconds > 0)  # asked and answered
    assert (rest.pid, rest.probe.silence.seconds) == (pid, 0.0)


def test_a_process_that_does_not_answer_any_more_is_replaced(
    rest: RestProcess, place: Path
) -> None:
    pid = rest.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    until(rest, lambda: rest.pid != pid)
    until(rest, lambda: rest.is_settled and rest.probe.idle_seconds > 0)
    assert ask(place) == (True, False)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_process_that_hangs_in_its_start_is_replaced_after_a_longer_time(
    rest: RestProcess, place: Path
) -> None:
    first = rest.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    until(rest, lambda: rest.pid != first)
    second = rest.pid
    assert second is not None
    os.kill(second, signal.SIGSTOP)  # before it listens: Python itself takes longer to start
    until(rest, lambda: rest.pid != second)
    until(rest, lambda: rest.is_settled and rest.probe.idle_seconds > 0)
    assert ask(place) == (True, False)


def test_where_nobody_listens_a_question_is_lost(place: Path) -> None:
    for each in (place, place / "in a folder that is gone"):
        assert ask(each) == (None, True)


def test_rest_is_told_what_connectors_may_reach() -> None:
    settings = ["paths.allow=/a,/b", "sql.allow=now", "jdbc.allow=jdbc:x://h/,jdbc:y://h/"]
    command = " ".join(rest_command(load_config(None, {}, settings), []))
    assert "--path-allow /a --path-allow /b --sql-allow now" in command
    assert "--jdbc-allow jdbc:x://h/ --jdbc-allow jdbc:y://h/" in command
