"""When a process is taken for slow, and when for hung."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from fairlead.actors.transport.question import Question
from fairlead.runtime.cluster.node_files import SlowProcess, read_slow, write_slow
from fairlead.runtime.processes.liveness import (
    ENDING,
    PING_SECONDS,
    GroupProbe,
    ProcessProbe,
    SignalWait,
    Silence,
    rest_of,
)

LIMIT = 30.0


def test_silence_is_told_before_it_is_too_long() -> None:
    silence = Silence(LIMIT, 0.0)
    told = list[tuple[int, str]]()
    for second in range(1, 32):
        silence.look(second, is_silent=True)
        word = "over" if silence.is_over else "slow" if silence.is_slow else "well"
        if not told or told[-1][1] != word:
            told.append((second, word))
    assert told == [(1, "well"), (3, "slow"), (30, "over")]
    silence.look(32, is_silent=False)
    assert (silence.seconds, silence.is_slow, silence.is_over) == (0.0, False, False)


def test_a_short_limit_is_told_of_at_its_half() -> None:
    silence = Silence(2.0, 0.0)
    silence.look(1.0, is_silent=True)
    assert (silence.is_slow, silence.is_over) == (True, False)


def test_time_in_which_nobody_waited_is_no_silence() -> None:
    silence = Silence(LIMIT, 0.0)
    for second in range(1, 10):
        silence.look(second, is_silent=True)
    silence.look(1_000_000, is_silent=True)  # the machine was suspended
    assert (silence.seconds, silence.is_over) == (10.0, False)


def test_a_group_is_asked_once_at_a_time_and_again_when_a_question_is_lost() -> None:
    probe, me = GroupProbe(LIMIT, 0.0), os.getpid()
    asked = [probe.look(number / 10, me, is_starting=False) for number in range(31)]
    assert (asked.index(True), sum(asked)) == (0, 1)
    probe.take_loss()
    assert probe.look(3.1, me, is_starting=False)
    assert probe.silence.seconds > 3.0
    probe.take_answer()
    assert probe.look(3.1 + PING_SECONDS, me, is_starting=False)
    assert probe.silence.seconds == 0.0


@pytest.fixture
def busy() -> Iterator[subprocess.Popen[bytes]]:
    """A process that works without a pause."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        yield process
        process.kill()


def test_a_group_that_reads_its_log_is_not_hung_and_one_that_is_stopped_is(
    busy: subprocess.Popen[bytes],
) -> None:
    probe = GroupProbe(LIMIT, 0.0)
    for second in range(40):
        probe.look(float(second), busy.pid, is_starting=True)
        time.sleep(0.03)  # a process that works uses the processor in any such while
    assert not probe.silence.is_over
    os.kill(busy.pid, signal.SIGSTOP)
    time.sleep(0.1)
    for second in range(40, 80):
        probe.look(float(second), busy.pid, is_starting=True)
    assert probe.silence.is_over


def test_a_group_that_is_open_and_does_not_answer_is_hung_whatever_it_does(
    busy: subprocess.Popen[bytes],
) -> None:
    probe = GroupProbe(LIMIT, 0.0)
    for second in range(40):
        probe.look(float(second), busy.pid, is_starting=False)
    assert probe.silence.is_over


class Answered:
    """A question that is answered at once."""

    is_lost = False

    def answer(self, _: float) -> str:
        return "I am here"

    def close(self) -> None:
        """Nothing to let go of."""


def test_a_process_that_has_answered_is_asked_again_when_it_is_time_or_when_there_is_news() -> None:
    watch = ProcessProbe(LIMIT)
    ask = lambda: cast("Question", Answered())  # noqa: E731
    assert [watch.look(ask) for _ in range(3)] == ["I am here", None, None]
    assert watch.silence.seconds == 0.0, "no answer was due"
    watch.ask_now()
    assert [watch.look(ask) for _ in range(2)] == ["I am here", None]


def test_who_is_silent_is_written_down_while_it_is(tmp_path: Path) -> None:
    found = SlowProcess("group", "connect", 4711, time.monotonic() - 7.2, 30.0)
    write_slow(tmp_path, [found])
    assert read_slow(tmp_path) == (found,)
    assert str(found) == (
        "group connect (pid 4711) has not answered for 7 s; after 30 s it is killed and restarted"
    )
    assert (tmp_path / "slow.json").stat().st_mode & 0o777 == 0o600
    write_slow(tmp_path, [])
    assert (read_slow(tmp_path), list(tmp_path.iterdir())) == ((), [])
    (tmp_path / "slow.json").write_text("[{}]")
    assert read_slow(tmp_path) == ()


class Asked(Answered):
    """A question that is answered when it is told to be."""

    is_answered = False

    def answer(self, _: float) -> str | None:  # type: ignore[override]
        return "I am here" if self.is_answered else None


def test_processes_that_all_answer_are_left_alone_until_the_next_question() -> None:
    prompt, late, question = ProcessProbe(LIMIT), ProcessProbe(LIMIT), Asked()
    prompt.look(lambda: cast("Question", Answered()))
    late.look(lambda: cast("Question", question))
    assert (rest_of([prompt]) > PING_SECONDS / 2, rest_of([prompt, late])) == (True, 0.0)
    question.is_answered = True
    late.look(lambda: cast("Question", question))
    assert rest_of([prompt, late]) > PING_SECONDS / 2
    late.forget()
    assert rest_of([prompt, late]) == 0.0, "a new process is asked at once"


def test_a_group_is_looked_at_while_it_owes_an_answer_and_left_alone_until_the_next() -> None:
    probe, me = GroupProbe(LIMIT, 0.0), os.getpid()
    assert probe.look(0.0, me, is_starting=False)
    assert probe.idle_seconds(0.1) == 0.0
    probe.take_answer()
    assert probe.idle_seconds(0.5) == PING_SECONDS - 0.5


@pytest.fixture
def signals() -> Iterator[SignalWait]:
    """What waits for signals, which are handled as before in the end."""
    numbers = (*ENDING, signal.SIGCHLD)
    before = {each: signal.getsignal(each) for each in numbers}
    yield SignalWait()
    for each, handler in before.items():
        signal.signal(each, handler)


AGES = 600.0


def test_the_end_of_a_child_cuts_a_pause_short(signals: SignalWait) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert child.stdin is not None
        child.stdin.close()
        signals.pause(AGES)
    assert signals.ending == 0


def test_an_order_to_end_cuts_a_pause_short_whenever_it_comes(signals: SignalWait) -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    assert signals.ending == signal.SIGTERM
    signals.pause(AGES)
    signals.pause(0.0)
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGHUP)).start()
    signals.pause(AGES)
    assert signals.ending == signal.SIGHUP
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()).isdisjoint(ENDING)
