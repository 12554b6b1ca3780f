"""Replace this process by a program that dies with its parent.

Run as a script: `python -I -S tether.py PARENT_PID PROGRAM ARGUMENT...`. A process with threads
must not run Python code between fork and exec, so this script runs after a first exec. The parent
death signal and the ignored SIGINT survive the second exec; the parent handles Ctrl-C. The memory
limit of a worker is removed: it is for the worker alone.
"""

import ctypes
import os
import resource
import signal
import sys

_PR_SET_PDEATHSIG = 1
_PARENT_IS_GONE = 3


def main(parent: int, program: list[str]) -> None:
    """Replace this process; it is killed when the *thread* of the parent that started it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(_PARENT_IS_GONE)  # the parent died before prctl
    os.execv(program[0], program)  # noqa: S606  # no shell is wanted


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
