"""Facts about the machine that a node is to run on: limits, memory, cores, clock, kernel.

What cannot be read is None: a container, another kernel or a sandbox may hide it, and a check
says nothing about what it does not know. Memory, processes and cores are also limited by the
control groups (versions 1 and 2) of this process, and by those above them.
"""

import ctypes
import os
import resource
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

SYSCTLS: Final = ("vm.overcommit_memory", "vm.max_map_count", "kernel.pid_max")
UNLIMITED: Final = 1 << 62
"""No limit; version 1 of control groups says it by a number near 2^63."""
_SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108  # looked at, never written
_TIME_ERROR: Final = 5
_TIMEX_BYTES: Final = 256
"""More than `struct timex` has; its first field says what to change: 0, nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """The part of a machine that this process may use; sizes in bytes, times in seconds."""

    user: int
    open_files: int = UNLIMITED
    """The hard limit, up to which a node raises its own."""
    processes: int = UNLIMITED
    """The lowest limit of processes and threads: of the user, or of a control group."""
    memory: int = UNLIMITED
    memory_limit: int = UNLIMITED
    """That of the control groups."""
    memory_available: int = UNLIMITED
    cores: int = 1
    cores_limit: float | None = None
    """How many cores' time the control groups allow."""
    shared_memory: int | None = None
    """The size of /dev/shm; None: there is none that can be written."""
    sysctls: Mapping[str, int] = field(default_factory=dict[str, int])
    now: float = 0.0
    zone: str = "UTC"
    is_synchronised: bool | None = None
    """Whether the kernel's clock follows a time server."""


def read_machine() -> MachineFacts:
    """Read the facts about this machine, as this process sees them."""
    memory = psutil.virtual_memory()
    return MachineFacts(
        user=os.getuid(),
        open_files=_hard_limit(resource.RLIMIT_NOFILE),
        processes=min(_hard_limit(resource.RLIMIT_NPROC), _group_limit("pids", "pids.max")),
        memory=memory.total,
        memory_limit=min(
            _group_limit("memory", "memory.max"), _group_limit("memory", "memory.limit_in_bytes")
        ),
        memory_available=memory.available,
        cores=len(os.sched_getaffinity(0)),
        cores_limit=_cores_limit(),
        shared_memory=_shared_memory(),
        sysctls=dict(_sysctls()),
        now=time.time(),
        zone=time.strftime("%Z (%z)"),
        is_synchronised=_is_synchronised(),
    )


def _hard_limit(which: int) -> int:
    """Return a hard limit of this process."""
    hard = resource.getrlimit(which)[1]
    return UNLIMITED if hard == resource.RLIM_INFINITY else hard


def group_folders(controller: str, root: Path = Path("/"), pid: str = "self") -> Iterator[Path]:
    """Yield the folders of a controller's control groups of a process, the innermost first."""
    mounted = root / "sys" / "fs" / "cgroup"
    with suppress(OSError):
        for line in (root / "proc" / pid / "cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and controller not in controllers.split(","):
                continue
            base = mounted / controllers if controllers else mounted
            folder = base / path.lstrip("/")
            # A container sees its own group as the root of the hierarchy, whatever its path is.
            yield from (each for each in (folder, *folder.parents) if each.is_relative_to(base))


def _group_limit(controller: str, name: str) -> int:
    """Return the lowest of a limit in the control groups of this process and above."""
    limits = [UNLIMITED]
    for folder in group_folders(controller):
        with suppress(OSError, ValueError):  # "max": there is no limit
            limits.append(int((folder / name).read_text()))
    return min(limits)


def _cores_limit() -> float | None:
    quotas: list[float] = []
    for folder in group_folders("cpu"):
        with suppress(OSError, ValueError):  # "max"
            quota, period = map(int, (folder / "cpu.max").read_text().split())
            quotas.append(quota / period)
        with suppress(OSError, ValueError):
            quota = int((folder / "cpu.cfs_quota_us").read_text())
            if quota > 0:
                quotas.append(quota / int((folder / "cpu.cfs_period_us").read_text()))
    return min(quotas, default=None)


def _shared_memory() -> int | None:
    if not os.access(_SHARED_MEMORY, os.W_OK):
        return None
    disk = os.statvfs(_SHARED_MEMORY)
    return disk.f_blocks * disk.f_frsize


def _sysctls() -> Iterator[tuple[str, int]]:
    for name in SYSCTLS:
        with suppress(OSError, ValueError):
            yield name, int((Path("/proc/sys") / name.replace(".", "/")).read_text())


def _is_synchronised() -> bool | None:
    """Ask the kernel whether its clock is kept in step with a time server (adjtimex)."""
    try:
        answer = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    except (OSError, AttributeError):
        return None
    return None if answer < 0 else answer != _TIME_ERROR
