"""The command that a worker was started by, and whose life it shares."""

from contextlib import suppress

import psutil


class Tie:
    """A process, told from a later one of the same pid by when it started; None ties to nobody."""

    def __init__(self, pid: int | None) -> None:
        self._pid = pid
        self._started = 0.0 if pid is None else _started_at(pid)

    @property
    def is_cut(self) -> bool:
        """Whether the process is gone."""
        if self._pid is None:
            return False
        started = _started_at(self._pid)
        return not started or started != self._started


def _started_at(pid: int) -> float:
    """Return when a process started, 0 if it runs no more."""
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        if process.status() != psutil.STATUS_ZOMBIE:
            return process.create_time()
    return 0.0
