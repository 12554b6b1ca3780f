"""A resource of a paused or stopped connector: it is assigned, but does not run."""

from collections.abc import Callable
from typing import Final

from ....events.model import RunState
from ....projections.launches import Launch
from .commits import TaskMemory
from .reports import Ending, Report, StatusReports
from .restarts import Halt

_FOR_EVER_S: Final = 3600.0


class Suspended:
    """One resource, under one fencing token, of a paused or stopped connector."""

    def __init__(
        self, launch: Launch, report: Callable[[Report], None], memory: TaskMemory | None = None
    ) -> None:
        self.halt = Halt()
        self._launch = launch
        self._status = StatusReports(launch, report)
        self._failure = memory.failure if memory else None

    def run(self, _: Exception | None = None) -> Ending:
        """Report the state, and wait for the end; a task that had failed stays FAILED."""
        if self._failure:
            self._status.report(RunState.FAILED, *self._failure)
        else:
            is_stopped = self._launch.target_state is RunState.STOPPED
            is_connector = not self._launch.resource.is_task
            state = RunState.STOPPED if is_stopped and is_connector else RunState.PAUSED
            self._status.report(state)
        while not self.halt.is_draining:
            self.halt.wait(_FOR_EVER_S)
        return Ending.CANCELLED if self.halt.is_cancelled else Ending.STOPPED

    def leave(self, *, any_call: bool = False) -> None:
        """Return None: no plugin is called, so no call can be overdue."""

    def cancel(self) -> None:
        """Ask it to end now."""
        self.halt.cancel()
