"""The simulated process of a group, which may die between any two steps.

It does in virtual time what the group's actor does in a real process. Its death has the same
effect: everything is lost but the log.
"""

from collections.abc import Callable, Sequence
from enum import Enum

from ....actors.group.host import drain
from ....actors.group.state.settings import GroupSettings
from ....actors.messages.commands import GroupRequest
from ....actors.timing import Now
from ....events.group import Group
from ....events.log.frame import NewEntry
from ..environment.clock import SimulatedClock, Story
from .coordinating import CoordinatingProcess, Hear
from .durable_state import DurableState


class Border(Enum):
    """Where a process may die while it writes."""

    BEFORE = "before it writes"
    BETWEEN_LOGS = "between its two logs"
    BEFORE_SPEAKING = "before it speaks"
    AFTER_SPEAKING = "after it has spoken"


class GroupProcess(CoordinatingProcess):
    """The process of a group whose logs lie beside it."""

    def __init__(
        self,
        clock: SimulatedClock,
        story: Story,
        settings: GroupSettings,
        durable_state: DurableState,
    ) -> None:
        super().__init__(clock, story, settings, durable_state)
        self.generation = 0
        """How often it was started anew."""
        self.is_down = False
        self._doom: Border | None = None
        self._downtime_ms = 0
        self._reopened: list[Callable[[], None]] = []
        self._open()

    @property
    def is_stopped(self) -> bool:
        """Whether it is down or frozen."""
        return self.is_down or self.is_frozen

    def submit(self, only: int | None, hear: Hear, message: GroupRequest) -> None:
        """Queue a message; `only` is the one process that may get it, None: any.

        A message to an earlier process may reach a later one, as one that has its port. One that
        goes through a connection ends with it.
        """
        if only in {None, self.generation} and not self.is_down:
            self.enqueue(hear, message)

    def on_reopened(self, deed: Callable[[], None]) -> None:
        """Register a callback for each restart of the process."""
        self._reopened.append(deed)

    def doom(self, border: Border, downtime_ms: int) -> None:
        """Kill the process the next time that it writes."""
        self._doom, self._downtime_ms = border, downtime_ms

    def spare(self) -> None:
        """Cancel a scheduled crash."""
        self._doom = None

    def die(self, downtime_ms: int) -> None:
        """Lose all but the logs, and be back after a while."""
        if not self.is_down:
            self._story.tell("the group's process dies")
            self.is_down, self.is_frozen, self._doom = True, False, None
            self._clock.after(downtime_ms, self._reopen)

    def freeze(self, span_ms: int, *, ticks_first: bool) -> None:
        """Do nothing for a while; messages wait meanwhile."""
        if not self.is_down and not self.is_frozen:
            self._story.tell("the group's process freezes for {} ms", span_ms)
            self.is_frozen = True
            self._clock.after(span_ms, self._wake, self.generation, ticks_first)

    def _wake(self, generation: int, ticks_first: bool) -> None:  # noqa: FBT001
        if generation == self.generation and self.is_frozen and not self.is_down:
            self._thaw(ticks_first)

    def _open(self) -> None:
        group = self._durable_state.restore_group()
        self._serve(group, self._durable_state.offsets, 1 + self.generation)

    def _reopen(self) -> None:
        self._queue.clear()
        self.generation += 1
        self.is_down = False
        self._story.tell("the group's process is back")
        self._open()
        for deed in self._reopened:
            deed()

    def _drain(self, taken: int = 0) -> None:
        """Write decisions, and only then send answers; it may crash in between."""
        logs = _Logs(self._durable_state, self._coordinator.group, self._dies_at)
        try:
            answers = drain(self._coordinator, logs, self._clock.now())
            self.decisions += max(taken, len(answers))
            for answer in answers:
                answer.to(answer.reply)
            if logs.is_written:
                self._dies_at(Border.AFTER_SPEAKING)
        except _DeathError:
            return
        self._wake_in_time()

    def _dies_at(self, border: Border) -> None:
        """Die at this border if that is to be; raises `_DeathError`."""
        if self._doom is border:
            self._story.tell("the group's process is to die {}", border.value)
            self.die(self._downtime_ms)
            raise _DeathError


class _DeathError(Exception):
    """The process has crashed: its present call ends."""


class _Logs:
    """The two logs of a process that may crash before or after each write."""

    def __init__(
        self, durable_state: DurableState, group: Group, dies_at: Callable[[Border], None]
    ) -> None:
        self.is_written = False
        self._durable_state, self._group, self._dies_at = durable_state, group, dies_at

    def append_offsets(self, entries: Sequence[NewEntry], _: Now) -> None:
        self._dies_at(Border.BEFORE)
        self._durable_state.write_offsets(entries)
        self._dies_at(Border.BETWEEN_LOGS)

    def append(self, entries: Sequence[NewEntry], _: Now) -> None:
        self._durable_state.write(entries, self._group)
        self.is_written = True
        self._dies_at(Border.BEFORE_SPEAKING)
