"""Which process it is, and whether it is still that one: a pid alone may be another's by now.

Locks, run folders and sinks outlive the process that they name: they name it by its pid and its
start.
"""

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple


class ProcessId(NamedTuple):
    """A process: its pid, and its start time as boot id and clock ticks, empty if unknown."""

    pid: int
    started: str


def start_of(pid: int) -> str:
    """Return when a live process began, in a form that no other process ever has, else ''."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
    # The name, field 2, may hold blanks and brackets; behind it state is the first field.
    state, *fields = stat.rpartition(")")[2].split()
    return "" if state in "ZX" else f"{boot}/{fields[18]}"


def process_of(pid: int) -> ProcessId:
    """Return the identity of the process that has this pid now."""
    return ProcessId(pid, start_of(pid))


def is_alive(process: ProcessId) -> bool:
    """Return whether exactly this process still lives."""
    return process.started != "" and start_of(process.pid) == process.started


def kill(process: ProcessId) -> None:
    """Kill exactly this process, if it lives.

    The descriptor keeps its pid from meaning another one.
    """
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(process.pid)
        try:
            if is_alive(process):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        finally:
            os.close(descriptor)
