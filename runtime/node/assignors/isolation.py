"""What sets the assignor process apart from the others of its node, and how others use that.

It leads a process group of its own, by which it is killed with all that it has started. Its
assignors print and log to a log of its own, and there is also the stack of where it is when it is
told to abort (`SIGABRT`) or crashes. Its title tells what it does at the moment.

The limit is on what a process has written or may write of its own memory (`RLIMIT_DATA`; Linux
counts anonymous mappings since 4.7). One on addresses would count what is only reserved: a second
thread alone reserves 64 MiB. Beyond the limit Python raises `MemoryError`.
"""

import faulthandler
import gc
import logging
import mmap
import os
import resource
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from setproctitle import getproctitle, setproctitle

LOGGER = logging.getLogger(__name__)

DOING = ", "
"""What follows this in the title of a process is what it does at the moment."""

NICENESS = 5
"""By how much nicer than a worker: heartbeats go first."""

LEAST_ROOM = 8
"""A process that ran out of memory is of use as long as one part in so many is free."""

OWNER_ONLY = 0o600
FATAL = (signal.SIGSEGV, signal.SIGFPE, signal.SIGABRT, signal.SIGBUS, signal.SIGILL)


def isolate(log_file: Path, known_as: int) -> None:
    """Isolate this process; its part of the log begins with `known_as`, a process id."""
    os.setpgid(0, 0)
    _write_to(log_file, known_as)
    _log_to_stderr()
    for number in FATAL:
        signal.signal(number, signal.SIG_DFL)  # an actor's own handler would have it crash for ever
    faulthandler.enable(2)


@contextmanager
def show_in_title(what: str) -> Generator[None]:
    """Show in the title of this process what it does.

    Third-party code may fork inside. Its child would return from there as well, as a second
    assignor process that answers to the same address: it ends here.
    """
    usual, me = getproctitle(), os.getpid()
    setproctitle(f"{usual}{DOING}{what}")
    try:
        yield
    finally:
        if os.getpid() != me:
            os._exit(0)
        setproctitle(usual)


def _write_to(log_file: Path, known_as: int) -> None:
    """Redirect what this process and its children print to a file, or else to nowhere."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    try:
        found = os.open(log_file, flags, OWNER_ONLY)
    except OSError:
        found = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    os.dup2(found, 1)
    os.dup2(found, 2)
    os.close(found)
    with suppress(OSError):
        os.write(2, f"-- process {known_as}\n".encode())
    sys.stdout = os.fdopen(1, "w", buffering=1, errors="backslashreplace", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)


def _log_to_stderr() -> None:
    """Have assignors log to stderr: the guard keeps that file small."""
    to_stderr = logging.StreamHandler(sys.stderr)
    to_stderr.setFormatter(
        logging.Formatter("%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s")
    )
    logging.root.handlers[:] = [to_stderr]


def limit(memory_bytes: int) -> None:
    """Limit this process; a limit that it was born with may be lower, and stays."""
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    if most != resource.RLIM_INFINITY and most < memory_bytes:
        LOGGER.warning("assignors get %d bytes, not %d: ulimit -d says so", most, memory_bytes)
        memory_bytes = most
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(NICENESS)


def has_room(memory_bytes: int) -> bool:
    """Tell whether this process can allocate `LEAST_ROOM` of its limit; it writes to none of it."""
    gc.collect()
    try:
        mmap.mmap(-1, memory_bytes // LEAST_ROOM, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except (OSError, MemoryError):
        return False
    return True


# -- for the processes that ask it, and the one that ends it


def deed_of(pid: int) -> str:
    """Return what a process says in its title that it does, or one below it, if any says so."""
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        for each in (process, *process.children(recursive=True)):
            with suppress(psutil.Error):
                title, _, deed = " ".join(each.cmdline()).partition(DOING)
                if deed.strip() and title.startswith("fairlead: "):
                    return deed.strip()
    return ""


def kill_group(pid: int) -> None:
    """Kill a leader that has not been waited for, and its group: the number is nobody else's yet.

    The leader itself may have gone over to another group.
    """
    with suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
    with suppress(OSError):
        os.kill(pid, signal.SIGKILL)


def kill_rest(pid: int) -> None:
    """Kill what is left of a group whose leader has ended.

    While any of the group is there its number is given to nobody; a process that goes by it
    now, and is no child of ours, says that the group is gone.
    """
    with suppress(psutil.NoSuchProcess):
        if psutil.Process(pid).ppid() != os.getpid():
            return
    with suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
