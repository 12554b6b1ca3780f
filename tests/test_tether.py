"""A tied program lives as long as the process that has started it, and no longer."""

import os
import shutil
import signal
import subprocess
import sys

import psutil
import pytest

from fairlead.actors.tether import tied
from fairlead_tests.actor_system import eventually, runs
from fairlead_tests.postgres_server import tied_to_run

WAIT = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
START = """
import subprocess, sys
from fairlead.actors.tether import tied
subprocess.Popen(tied(sys.argv[1:])).wait()
"""
DIE_WITH = """
import signal, sys
from fairlead.actors.tether import die_with
signal.signal(int(sys.argv[2]), signal.SIG_DFL)  # what a shell starts behind itself ignores some
die_with(int(sys.argv[1]), int(sys.argv[2]))
print("lives")
"""


def test_a_tied_program_ends_with_the_process_that_started_it() -> None:
    program = [sys.executable, "-c", WAIT]
    with subprocess.Popen(
        [sys.executable, "-c", START, *program], stdout=subprocess.PIPE
    ) as starter:
        assert starter.stdout is not None
        child = psutil.Process(int(starter.stdout.readline()))
        assert runs(child)
        starter.kill()
        eventually(lambda: not runs(child), "it has ended")


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="there is no setpriv of util-linux")
def test_a_server_of_another_user_ends_with_the_process_that_started_it() -> None:
    start = "import subprocess, sys; subprocess.Popen(sys.argv[1:]).wait()"
    program = tied_to_run([sys.executable, "-c", WAIT])
    with subprocess.Popen(
        [sys.executable, "-c", start, *program], stdout=subprocess.PIPE
    ) as starter:
        assert starter.stdout is not None
        child = psutil.Process(int(starter.stdout.readline()))
        assert runs(child)
        starter.kill()
        eventually(lambda: not runs(child), "it has ended")


def test_a_program_does_not_start_for_a_parent_that_is_gone() -> None:
    *tether, _, program = tied([sys.executable])
    done = subprocess.run(
        [*tether, "1", program, "-c", "print('ran')"], capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, b"")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT])
def test_a_process_whose_parent_is_gone_gets_the_signal_at_once(number: signal.Signals) -> None:
    command = [sys.executable, "-c", DIE_WITH]
    gone = subprocess.run([*command, "1", str(int(number))], capture_output=True, check=False)
    here = subprocess.run(
        [*command, str(os.getpid()), str(int(number))], capture_output=True, check=False
    )
    assert [gone.returncode, here.returncode, here.stdout] == [-number, 0, b"lives\n"]


def test_ctrl_c_is_for_the_parent_alone() -> None:
    ask = "import signal; print(signal.getsignal(signal.SIGINT) == signal.SIG_IGN)"
    done = subprocess.run(tied([sys.executable, "-c", ask]), capture_output=True, check=True)
    assert done.stdout == b"True\n"
