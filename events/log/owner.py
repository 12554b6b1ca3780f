"""Who owns a log: one process at a time, by a lock that dies with it.

`owner.lock` is held by flock for the owner's life and names its pid and start time, so that a
second claimant can say who is in the way and a take-over kills that process and no other. The
lock is the first of three fences; the epoch and the expected offset, checked inside every write
transaction, hold even where it is lost.
"""

import fcntl
import json
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, Self
from weakref import WeakSet

from .errors import OwnedError

LOCK_NAME: Final = "owner.lock"
RECORD_BYTES: Final = 256  # written in one piece and always whole, so never torn for a reader
TAKEOVER_PATIENCE_S: Final = 10.0


class Owner(NamedTuple):
    """A process: its pid, and its start as boot id and clock ticks, empty where unknown."""

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


def process_of(pid: int) -> Owner:
    """Return the process that goes by a pid at this moment."""
    return Owner(pid, start_of(pid))


def is_alive(owner: Owner) -> bool:
    """Tell whether exactly this process still lives."""
    return owner.started != "" and start_of(owner.pid) == owner.started


def kill(owner: Owner) -> None:
    """Kill exactly this process, if it lives.

    The descriptor keeps its pid from meaning another one.
    """
    with suppress(ProcessLookupError):
        process = os.pidfd_open(owner.pid)
        try:
            if is_alive(owner):
                signal.pidfd_send_signal(process, signal.SIGKILL)
        finally:
            os.close(process)


def recorded_owner(path: Path) -> Owner | None:
    """Return the process that last claimed the log at `path`, alive or not."""
    try:
        record = json.loads((path / LOCK_NAME).read_bytes())
        return Owner(int(record["pid"]), str(record["started"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


class OwnerLock:
    """The held lock of one log; a fork's child lets go of it at once."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        _held.add(self)

    @classmethod
    def claim(cls, path: Path, *, takeover: bool = False) -> Self:
        """Take the lock of the log at `path`.

        With `takeover` the recorded owner is killed first, be it stopped or hung. Raises
        `OwnedError` if another process keeps the lock.
        """
        descriptor = os.open(path / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(path, descriptor, takeover=takeover)
            me = {"pid": os.getpid(), "started": start_of(os.getpid())}
            os.pwrite(descriptor, json.dumps(me).encode().ljust(RECORD_BYTES), 0)
        except BaseException:
            os.close(descriptor)
            raise
        return cls(descriptor)

    def release(self) -> None:
        """Let go of the lock; a second time does nothing."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


_held: WeakSet[OwnerLock] = WeakSet()


def _release_inherited() -> None:
    # A child's copy of the descriptor would keep the lock alive when the owner has died.
    for lock in list(_held):
        lock.release()


os.register_at_fork(after_in_child=_release_inherited)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _lock(path: Path, descriptor: int, *, takeover: bool) -> None:
    if _try_lock(descriptor):
        return
    if not takeover:
        raise _owned(path)
    _take_over(path, descriptor)


def _owned(path: Path) -> OwnedError:
    owner = recorded_owner(path)
    if owner is None or not is_alive(owner):
        return OwnedError(f"{path} is owned by a process that left no name; try again, or stop it")
    if owner.pid == os.getpid():
        return OwnedError(f"{path} is open for writing in this very process", owner.pid)
    return OwnedError(
        f"{path} is owned by the live process {owner.pid}: stop that one, or take the log over",
        owner.pid,
    )


def _take_over(path: Path, descriptor: int) -> None:
    owner = recorded_owner(path)
    if owner is None or owner.pid == os.getpid():
        raise _owned(path)
    kill(owner)
    deadline = time.monotonic() + TAKEOVER_PATIENCE_S
    while not _try_lock(descriptor):
        if time.monotonic() > deadline:
            raise _owned(path)
        time.sleep(0.002)
