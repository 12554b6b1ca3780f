"""Who owns a log: one process at a time, by a lock that dies with it.

`owner.lock` is held by flock for the owner's life and names its pid and start time, so that a
second claimant can say who is in the way and a take-over kills that process and no other. The
lock is the first of three fences; the epoch and the expected offset, checked inside every write
transaction, hold even where it is lost.
"""

import fcntl
import json
import os
import time
from pathlib import Path
from typing import Final, Self
from weakref import WeakSet

from .errors import OwnedError
from .process import ProcessId, is_alive, kill, start_of

LOCK_NAME: Final = "owner.lock"
RECORD_BYTES: Final = 256  # written in one piece and always whole, so never torn for a reader
TAKEOVER_PATIENCE_S: Final = 10.0


def recorded_owner(path: Path) -> ProcessId | None:
    """Return the process that last claimed the log at `path`, alive or not."""
    try:
        record = json.loads((path / LOCK_NAME).read_bytes())
        return ProcessId(int(record["pid"]), str(record["started"]))
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
