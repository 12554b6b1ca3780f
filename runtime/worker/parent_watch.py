"""The command that a worker was started by, and whose life it shares."""

from ...events.log.owner import is_alive, process_of


class ParentWatch:
    """A process, told from a later one of the same pid by when it started; None ties to nobody."""

    def __init__(self, pid: int | None) -> None:
        self._process = None if pid is None else process_of(pid)

    @property
    def has_ended(self) -> bool:
        """Whether the process is gone."""
        return self._process is not None and not is_alive(self._process)
