"""Keeps two hosts from running nodes on one data folder, where locks do not reach that far.

The lock of a run folder keeps out other processes of the same host, and of others if the file
system's locks work across them. Where they do not, as on some mounts of NFS, `run/lease.json` does:
the node writes it anew every few seconds, if the folder is on a file system that other hosts may
have as well. A node that starts and finds that of another host watches whether it still changes; it
compares no clocks. On the same host, and on a file system of this host alone, the lock is enough.

Two that start within the same seconds are not kept apart. Then the owner epoch of each log fences
the earlier one (LOG.md §4), as far as the file system shows both the same bytes; LMDB asks for a
local one.
"""

import json
import platform
import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from .node_files import write_json
from .run_folder import NodeRunsError

FILE: Final = "lease.json"
RENEW_SECONDS: Final = 4.0
WATCH_SECONDS: Final = 15.0
"""How long the lease of another host may stay the same before it is taken to be left over."""
_LOOK_SECONDS: Final = 0.5
_MACHINE: Final = Path("/etc/machine-id")
MOUNTS: Final = Path("/proc/mounts")
_OCTAL: Final = re.compile(r"\\([0-7]{3})")
REMOTE: Final = re.compile(
    r"nfs\d?|cifs|smb\d?|smbfs|9p|afs|ceph|glusterfs|lustre|ocfs2|gfs2|fuse\.(?!ext|ntfs).+|virtiofs"
    r"|beegfs|gpfs|vboxsf"
)
"""File systems of another host, on which LMDB's locks and memory maps are not safe."""


def host_id() -> str:
    """Return what tells this host from others: its name, and the id of the machine."""
    machine = ""
    with suppress(OSError):
        machine = _MACHINE.read_text().strip()
    return f"{platform.node()}/{machine}"


def file_system_of(folder: Path, mounts: str) -> str:
    """Return the kind of the file system that is mounted at a folder or nearest above it.

    `mounts` is the text of /proc/mounts.
    """
    nearest, kind = -1, ""
    for line in mounts.splitlines():
        _, place, this, *_ = [*line.split(" "), "", "", ""]
        mounted = Path(_OCTAL.sub(lambda code: chr(int(code[1], 8)), place) or "/")
        if folder.is_relative_to(mounted) and len(mounted.parts) >= nearest:
            nearest, kind = len(mounted.parts), this
    return kind


def is_of_this_host(folder: Path) -> bool:
    """Return whether a folder is on a file system that no other host has; False if unknown."""
    try:
        kind = file_system_of(folder.resolve(), MOUNTS.read_text(errors="surrogateescape"))
    except OSError:
        return False
    return bool(kind) and not REMOTE.fullmatch(kind)


class Lease:
    """The lease of this host on a run folder; nothing is written where the lock is enough."""

    def __init__(self, run_folder: Path) -> None:
        self._file = run_folder / FILE
        self.is_needed = not is_of_this_host(run_folder)
        """Whether other hosts may have the folder as well."""
        self._host = host_id()
        self._count = 0
        """How often this process has written it: that changes it each time."""
        self._renew_at = 0.0
        """When to write it anew, in monotonic seconds."""

    def renew(self) -> None:
        """Write the lease anew, if it is time; errors are ignored."""
        if self.is_needed and time.monotonic() >= self._renew_at:
            self._renew_at = time.monotonic() + RENEW_SECONDS
            self._count += 1
            with suppress(OSError):
                write_json(self._file, {"host": self._host, "count": self._count})

    def release(self) -> None:
        """Remove the lease."""
        with suppress(OSError):
            self._file.unlink(missing_ok=True)


def require_free(
    data_dir: Path,
    say: Callable[[str], None],
    watch_seconds: float = WATCH_SECONDS,
) -> None:
    """Raise `NodeRunsError` if another host's lease on a data folder is renewed.

    Takes no time if there is none of another host, or if the file system is of this one: then the
    lease came with the disk.
    """
    first = _read(data_dir)
    if first is None or first[0] == host_id() or is_of_this_host(data_dir):
        return
    host = first[0].partition("/")[0]
    say(f"{data_dir} was used by a node on host {host}: watching whether that one still runs")
    until = time.monotonic() + watch_seconds
    while time.monotonic() < until:
        time.sleep(min(_LOOK_SECONDS, watch_seconds))
        found = _read(data_dir)
        if found is None:
            return
        if found != first:
            raise NodeRunsError(
                f"a node on host {host} runs on {data_dir}: stop it there, or choose another"
                " data.dir; nothing was changed. Logs must not be shared by hosts"
            )


def _read(data_dir: Path) -> tuple[str, int] | None:
    try:
        content = json.loads((data_dir / "run" / FILE).read_bytes())
        return str(content["host"]), int(content["count"])
    except (OSError, ValueError, TypeError, KeyError):
        return None
