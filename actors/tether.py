"""Processes that die with their parent: for this process itself, and for any program it starts.

The kernel sends the signal when the *thread* ends that has started the process, so that thread must
live as long as the child is to.

`tied(program)` is the command line of a program that dies with this process: `python -I -S
tether.py PARENT PROGRAM ARGUMENT...`. A process with threads must not run Python code between fork
and exec, so this script runs after a first exec, and imports nothing but a few modules of Python.
The parent death signal and the ignored SIGINT survive the second exec; the parent handles Ctrl-C.
The memory limit of a worker is removed: it is for the worker alone.
"""

import ctypes
import os
import resource
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1


def tied(program: Sequence[str]) -> list[str]:
    """Return the command line of a program that is killed when the calling thread ends."""
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *program]


def die_with(parent: int, number: int = signal.SIGKILL) -> None:
    """Get a signal once the parent, or the thread of it that started this process, has ended."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)  # the parent ended before prctl


def main(parent: int, program: list[str]) -> None:
    """Replace this process by a program that is killed when its parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    die_with(parent)
    os.execv(program[0], program)  # noqa: S606  # no shell is wanted


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
