"""Stand by the assignor process: keep its log small, and end what it started once it is gone.

Run as a script: `python -I -S guard.py LEADER LOG`, by the leader of a process group and as
one of that group. So it ends with the group if somebody ends that; it is there for when
nobody is left to do so, and while it is there the group's number is nobody else's.
"""

import ctypes
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

LARGEST = 16 << 20
"""Bytes of a log, and of the older one beside it."""
PACE_SECONDS = 0.5
MOST_FILES = 4_096
_OWNER_ONLY = 0o600
_PR_SET_PDEATHSIG = 1


def guard(leader: int, log: Path) -> None:
    """Stand by until the process that leads this group is gone; ends with the group."""
    os.closerange(3, MOST_FILES)  # who waits for the end of what was inherited is not to wait
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGUSR1, 0, 0, 0)
    while os.getppid() == leader:
        keep_small(log)
        signal.sigtimedwait({signal.SIGUSR1}, PACE_SECONDS)
    os.killpg(leader, signal.SIGKILL)


def keep_small(log: Path, largest: int = LARGEST) -> None:
    """Put the end of a log that is too large aside, and empty it where it is.

    It can not be moved: those who write to it, always at its end, have it open.
    """
    with suppress(OSError):
        size = log.stat().st_size
        if size <= largest:
            return
        try:
            _put_aside(log, size - largest, largest)
        finally:
            os.truncate(log, 0)  # also where a full disk takes no older log


def _put_aside(log: Path, start: int, length: int) -> None:
    older = log.with_name(f"{log.name}.1")
    older.touch(_OWNER_ONLY)
    with log.open("rb") as whole:
        whole.seek(start)
        older.write_bytes(whole.read(length))


if __name__ == "__main__":
    guard(int(sys.argv[1]), Path(sys.argv[2]))
