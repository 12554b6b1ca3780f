"""Isolation of a process that runs third-party code: process group, log, title and memory.

The process leads its own process group, so that it can be killed with its children. The output and
the logs of its code go to a separate file, as does the stack when it crashes or gets SIGABRT. Its
title shows its current activity, and its environment has no secret.

The memory limit is `RLIMIT_DATA`, which counts writable private memory (Linux includes anonymous
mappings since 4.7). `RLIMIT_AS` would also count reserved addresses: a second thread alone reserves
64 MiB. Beyond the limit Python raises `MemoryError`.
"""

import gc
import logging
import mmap
import os
import resource
import signal
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import psutil
from setproctitle import getproctitle, setproctitle

from ...actors.transport.crashes import end_at_crashes

DOING = ", "
"""Separates the usual title of a process from its current activity."""

NICENESS = 5
"""The niceness relative to a worker, as heartbeats have priority."""

LEAST_ROOM = 8
"""A process that ran out of memory is usable while 1/LEAST_ROOM of its limit is free."""

OWNER_ONLY = 0o600

ENVIRONMENT: Final = frozenset(
    (
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LANGUAGE"),
        *("PYTHONPATH", "PYTHONHOME", "PYTHONUTF8", "PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE"),
        *("PYTHONPYCACHEPREFIX", "PYTHONWARNINGS", "VIRTUAL_ENV", "LD_LIBRARY_PATH"),
    )
)
"""The environment variables that third-party code gets, besides `LC_*`."""


def filter_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables that third-party code may see."""
    return {
        name: value
        for name, value in environment.items()
        if name in ENVIRONMENT or name.startswith("LC_")
    }


def isolate(log_file: Path, known_as: int) -> None:
    """Isolate this process; a line with the process id `known_as` begins its part of the log."""
    os.setpgid(0, 0)
    _write_to(log_file, known_as)
    _log_to_stderr()
    end_at_crashes(2, signal.SIGABRT)


@contextmanager
def show_in_title(what: str) -> Generator[None]:
    """Show an activity in the title of this process while the context is open.

    Third-party code may fork in the context. The child must not return from it as a second
    assignor process with the same address: it exits here.
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
    """Redirect stdout and stderr of this process to a file, or to /dev/null if that fails."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    try:
        output = os.open(log_file, flags, OWNER_ONLY)
    except OSError:
        output = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    with suppress(OSError):
        os.write(2, f"-- process {known_as}\n".encode())
    sys.stdout = os.fdopen(1, "w", buffering=1, errors="backslashreplace", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)


def _log_to_stderr() -> None:
    """Send all log records to stderr: the guard rotates that file."""
    to_stderr = logging.StreamHandler(sys.stderr)
    to_stderr.setFormatter(
        logging.Formatter("%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s")
    )
    logging.root.handlers[:] = [to_stderr]


def limit_memory(memory_bytes: int, *, is_for_children: bool) -> int:
    """Limit the memory of this process, and return the limit: a lower inherited one is kept.

    Children inherit it, and cannot raise it unless it is for this process alone: then `tied`
    programs have none.
    """
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    limit = memory_bytes if most == resource.RLIM_INFINITY else min(most, memory_bytes)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit if is_for_children else most))
    return limit


def lower_priority() -> None:
    """Lower this process's priority, and let it write no core file."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(NICENESS)


def has_room(memory_bytes: int) -> bool:
    """Return whether 1/LEAST_ROOM of the limit can be reserved; no page of it is written."""
    gc.collect()
    try:
        mmap.mmap(-1, memory_bytes // LEAST_ROOM, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except (OSError, MemoryError):
        return False
    return True


# -- used by other processes of the node


def read_activity(pid: int) -> str:
    """Return the activity in the title of a process or a descendant of it; "" if none has any."""
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        for each in (process, *process.children(recursive=True)):
            with suppress(psutil.Error):
                title, _, activity = " ".join(each.cmdline()).partition(DOING)
                if activity.strip() and title.startswith("fairlead: "):
                    return activity.strip()
    return ""


def kill_group(pid: int) -> None:
    """Kill a group leader that was not reaped yet, so that its pid is not reused, and its group.

    The leader is killed by its pid as well: it may have moved to another group.
    """
    with suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
    with suppress(OSError):
        os.kill(pid, signal.SIGKILL)


def kill_remaining_group(pid: int) -> None:
    """Kill the remaining processes of a group whose leader has ended.

    The system does not reuse the id of a group while it has processes. So if the pid belongs to a
    process that is not our child, the group is gone and nothing is killed.
    """
    with suppress(psutil.NoSuchProcess):
        if psutil.Process(pid).ppid() != os.getpid():
            return
    with suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
