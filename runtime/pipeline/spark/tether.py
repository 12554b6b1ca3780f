"""Become another program that dies with the one that started it.

Run as a script: `python -I -S tether.py PARENT_PID PROGRAM ARGUMENT...`. It stands between
fork and exec because nothing else may run there in a process that has threads. The parent's
death signal outlives exec, and so does an ignored SIGINT: Ctrl-C is the parent's to handle.
The limit of a worker's memory does not: it is for the worker alone.
"""

import ctypes
import os
import resource
import signal
import sys

_PR_SET_PDEATHSIG = 1
_PARENT_IS_GONE = 3


def main(parent: int, program: list[str]) -> None:
    """Replace this process; the signal comes when the parent's starting *thread* ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(_PARENT_IS_GONE)  # it died before the signal was asked for
    os.execv(program[0], program)  # noqa: S606  # no shell is wanted


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
