"""Guard a process that runs third-party code: limit its memory, and kill all its descendants.

`guarded(program, log, bytes)` is the command line of a guarded program: `python -I -S guard.py
PARENT LOG BYTES PROGRAM ARGUMENT...`. The script starts the program, truncates its log when it
grows too large, and exits when its own parent exits. The program is tied to the guard. All its
descendants end with it, even those that left its process group or session: as a subreaper
(`PR_SET_CHILD_SUBREAPER`) the guard becomes the parent of orphans.

The limit is on the resident memory of all descendants together: private memory, shared memory (each
page counts once), and files in memory (memfd, /dev/shm).
"""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

LARGEST = 16 << 20
"""The size limit of the log in bytes, and of the older log beside it."""
PACE_SECONDS = 0.1
END_SECONDS = 10.0
SLACK_BYTES = 32 << 20
"""How far the limit may be exceeded: `RLIMIT_DATA`, which only raises `MemoryError`, acts first."""
TOO_MUCH = 77
"""The exit code if the memory limit was exceeded; otherwise it is that of the program."""
MOST_FILES = 4_096
HAS_CHILDREN = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").exists()
"""Whether this kernel lists the children of a process; else the parent of each is looked up."""
_TETHER = Path(__file__).parents[2] / "actors" / "tether.py"
"""The script that ties the program to the guard; a script cannot import its module."""
_OWNER_ONLY = 0o600
_PR_SET_CHILD_SUBREAPER = 36
_SIGNALS = {signal.SIGTERM, signal.SIGABRT, signal.SIGCHLD}
_IN_MEMORY = ("/memfd:", "/dev/shm/", "/run/shm/", "/SYSV", "/dev/zero")  # noqa: S108
_BLOCK_BYTES = 512


def guarded(program: Sequence[str], log: Path, most_bytes: int) -> list[str]:
    """Return the command line of a program whose descendants may use so much memory in total.

    `log` is what the program writes to. The guard ends them all when this process ends.
    """
    guard_of_it = [__file__, str(os.getpid()), str(log), str(most_bytes)]
    return [sys.executable, "-I", "-S", *guard_of_it, *program]


def guard(parent: int, log: Path, most_bytes: int, program: list[str]) -> int:
    """Run a program until it ends, the parent exits, or SIGTERM; return an exit code.

    SIGABRT is forwarded: the program logs its stack.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    adopt_orphans()
    child = _start(program)
    os.closerange(3, MOST_FILES)  # else the pipe to the program would stay open here
    try:
        return _watch(parent, child, log, most_bytes + SLACK_BYTES)
    finally:
        end_descendants()
        rotate_log(log)


def _watch(parent: int, child: int, log: Path, most_bytes: int) -> int:
    while os.getppid() == parent:
        status = _reap(child)
        if status is not None:
            return status
        if exceeds_memory(descendants(os.getpid()), most_bytes):
            return TOO_MUCH
        rotate_log(log)
        received = signal.sigtimedwait(_SIGNALS, PACE_SECONDS)
        number = received.si_signo if received is not None else 0
        if number == signal.SIGTERM:
            break
        if number == signal.SIGABRT:
            os.kill(child, signal.SIGABRT)
    return 0


def _start(program: list[str]) -> int:
    me, child = os.getpid(), os.fork()
    if child:
        return child
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        tied = [sys.executable, "-I", "-S", str(_TETHER), str(me), *program]
        os.execv(tied[0], tied)  # noqa: S606  # no shell is wanted
    finally:
        os._exit(1)


def _reap(child: int) -> int | None:
    """Reap all children that have ended; return the exit code of `child` if it is among them."""
    status: int | None = None
    with suppress(ChildProcessError):
        while True:
            pid, how = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            if pid == child:
                status = os.waitstatus_to_exitcode(how) & 0xFF
    return status


def adopt_orphans() -> None:
    """Become a subreaper: descendants whose parent ends become children of this process."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_descendants() -> None:
    """Kill all descendants of this process, including those started meanwhile."""
    deadline = time.monotonic() + END_SECONDS
    while (found := descendants(os.getpid())) and time.monotonic() < deadline:
        for number in (signal.SIGSTOP, signal.SIGKILL):  # a stopped process cannot fork
            for each in found:
                with suppress(OSError):
                    os.kill(each, number)
        _reap(0)
        time.sleep(0.002)


def descendants(pid: int) -> list[int]:
    """Return all descendants of a process, including zombies."""
    found, waiting = list[int](), [pid]
    while waiting:
        children = _children(waiting.pop())
        found += children
        waiting += children
    return found


def _children(pid: int) -> list[int]:
    if not HAS_CHILDREN:
        return [each for each in _all() if _parent(each) == pid]
    found = list[int]()
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208  # quick: it runs often
            content = Path(f"/proc/{pid}/task/{thread}/children").read_bytes()
            found += map(int, content.split())
    return found


def _all() -> Iterable[int]:
    return (int(each) for each in os.listdir("/proc") if each.isdigit())  # noqa: PTH208


def _parent(pid: int) -> int:
    """Return a process's parent, 0 if it is gone."""
    with suppress(OSError):
        # The name, in parentheses, may itself contain any character; state and parent follow.
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
    return 0


def exceeds_memory(pids: Sequence[int], most_bytes: int) -> bool:
    """Return whether processes together have more than `most_bytes` of resident memory.

    Pages of code and of files on disk do not count: the system can drop them.
    """
    files = _files_in_memory(pids)
    own, shared = (_sum(pids, "status", name) for name in (b"RssAnon:", b"RssShmem:"))
    if own + max(shared, files) <= most_bytes:
        return False
    # The proportional set size counts shared pages once, but it is expensive to read.
    own, shared = (
        _sum(pids, "smaps_rollup", exact) or rough
        for exact, rough in ((b"Pss_Anon:", own), (b"Pss_Shmem:", shared))
    )
    return own + max(shared, files) > most_bytes


def _sum(pids: Sequence[int], file: str, name: bytes) -> int:
    return sum(_kib(f"/proc/{pid}/{file}", name) for pid in pids) << 10


def _kib(path: str, name: bytes) -> int:
    with suppress(OSError):
        for line in Path(path).read_bytes().splitlines():
            if line.startswith(name):
                return int(line.split()[1])
    return 0


def _files_in_memory(pids: Iterable[int]) -> int:
    """Return the total size of open files that exist only in memory, in bytes."""
    sizes = dict[tuple[int, int], int]()
    for pid in pids:
        with suppress(OSError):
            for number in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
                path = f"/proc/{pid}/fd/{number}"
                with suppress(OSError):
                    if os.readlink(path).startswith(_IN_MEMORY):  # noqa: PTH115
                        found = os.stat(path)  # noqa: PTH116
                        sizes[found.st_dev, found.st_ino] = found.st_blocks * _BLOCK_BYTES
    return sum(sizes.values())


def rotate_log(log: Path, largest: int = LARGEST) -> None:
    """Copy the end of a log that is too large to `LOG.1`, and truncate the log.

    It is not renamed, since processes have it open and append to it.
    """
    with suppress(OSError):
        size = log.stat().st_size
        if size <= largest:
            return
        try:
            _copy_to_older(log, size - largest, largest)
        finally:
            os.truncate(log, 0)  # even if a full disk has no room for the copy


def _copy_to_older(log: Path, start: int, length: int) -> None:
    older = log.with_name(f"{log.name}.1")
    older.touch(_OWNER_ONLY)
    with log.open("rb") as whole:
        whole.seek(start)
        older.write_bytes(whole.read(length))


if __name__ == "__main__":
    sys.exit(guard(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]))
