"""The process of a group: it decides, it writes, it speaks; and it dies wherever it may.

What the group's actor does on real processes is done here in virtual time. A death
costs the same: everything but the log.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum
from typing import Final

from ...actors.group.coordinator import Coordinator
from ...actors.group.members.request_filter import first_epoch
from ...actors.group.shard import Now, drain
from ...actors.group.state.settings import GroupSettings
from ...actors.group.work.ledger import OffsetLedger
from ...actors.messages.commands import GroupRequest, Reply
from ...actors.messages.computing import Install
from ...events.group import Group
from ...events.log.frame import NewEntry
from .clock import SimulatedClock, Story
from .durable_state import DurableState

TICK_MS: Final = 100
"""As often as the group's actor looks at its timers."""

Hear = Callable[[Reply], None]


class Border(Enum):
    """Where a process may die while it writes."""

    BEFORE = "before it writes"
    BETWEEN_LOGS = "between its two logs"
    BEFORE_SPEAKING = "before it speaks"
    AFTER_SPEAKING = "after it has spoken"


class GroupProcess:
    """One group's coordinator with its queue, its logs and its timers."""

    def __init__(
        self,
        clock: SimulatedClock,
        story: Story,
        settings: GroupSettings,
        durable_state: DurableState,
    ) -> None:
        self.generation = 0
        self.is_down = self.is_frozen = False
        self.decisions = 0
        """How many answers it gave."""
        self.restarts = 0
        self._clock = clock
        self._story = story
        self._settings = settings
        self._durable_state = durable_state
        self._named = 0
        self._doom: Border | None = None
        self._downtime_ms = 0
        self._queue: list[tuple[GroupRequest, Hear]] = []
        self._is_due = False
        self._reopened: list[Callable[[], None]] = []
        self._open()
        clock.after(TICK_MS, self._tick)

    @property
    def group(self) -> Group:
        """The group as the process has it in memory."""
        return self._coordinator.group

    @property
    def coordinator_epoch(self) -> int:
        """The number of the process, as its supervisor hears of it."""
        return self._coordinator.coordinator_epoch

    def take(self, only: int | None, hear: Hear, message: GroupRequest) -> None:
        """Queue a message; `only` is the process that alone may get it, None: whoever is there.

        A message to an earlier process may reach a later one, as one that has its port. One that
        goes through a connection ends with it.
        """
        if only not in {None, self.generation} or self.is_down:
            return
        self._queue.append((message, hear))
        if not self._is_due:
            self._is_due = True
            self._clock.after(0, self._flush)

    def on_reopened(self, deed: Callable[[], None]) -> None:
        """Have something done each time the process is there again."""
        self._reopened.append(deed)

    def doom(self, border: Border, downtime_ms: int) -> None:
        """Have the process die the next time that it writes."""
        self._doom, self._downtime_ms = border, downtime_ms

    def spare(self) -> None:
        """Call off a death that was to come."""
        self._doom = None

    def die(self, downtime_ms: int) -> None:
        """Lose all but the logs, and be back after a while."""
        if not self.is_down:
            self._story.tell("the group's process dies")
            self.is_down, self.is_frozen, self._doom = True, False, None
            self._clock.after(downtime_ms, self._reopen)

    def freeze(self, span_ms: int, *, ticks_first: bool) -> None:
        """Do nothing for a while; what arrives meanwhile waits."""
        if not self.is_down and not self.is_frozen:
            self._story.tell("the group's process freezes for {} ms", span_ms)
            self.is_frozen = True
            self._clock.after(span_ms, self._thaw, self.generation, ticks_first)

    def _thaw(self, generation: int, ticks_first: bool) -> None:  # noqa: FBT001
        if generation == self.generation and self.is_frozen and not self.is_down:
            self.is_frozen = False
            if ticks_first:
                self._coordinator.pass_time(self._clock.now())
            self._flush()

    def _open(self) -> None:
        ledger = OffsetLedger(self._durable_state.offsets)
        group = self._durable_state.restored()
        self._coordinator = Coordinator(
            group,
            self._settings,
            ledger,
            self._clock.now_ms,
            self._new_id,
            first_epoch(1 + self.generation),
        )

    def _new_id(self) -> str:
        self._named += 1
        return f"f{self._named}"

    def _reopen(self) -> None:
        self._queue.clear()
        self.generation += 1
        self.restarts += 1
        self.is_down = False
        self._story.tell("the group's process is back")
        self._open()
        for deed in self._reopened:
            deed()

    def _tick(self) -> None:
        self._clock.after(TICK_MS, self._tick)
        if not self.is_down and not self.is_frozen:
            self._coordinator.pass_time(self._clock.now())
            self._drain()

    def _flush(self) -> None:
        self._is_due = False
        if self.is_down or self.is_frozen:
            return
        queue, self._queue = self._queue, []
        for message, hear in queue:
            if isinstance(message, Install):
                self._durable_state.heard(message)
            self._coordinator.take(message, hear, self._clock.now())
        self._drain()

    def _drain(self) -> None:
        """Write what was decided, and only then speak; it may die on the way."""
        logs = _Logs(self._durable_state, self._coordinator.group, self._dies_at)
        with suppress(_DeathError):
            for answer in drain(self._coordinator, logs, self._clock.now()):
                self.decisions += 1
                answer.to(answer.reply)
            if logs.is_written:
                self._dies_at(Border.AFTER_SPEAKING)

    def _dies_at(self, border: Border) -> None:
        """Die at this border if that is to be; raises `_DeathError`."""
        if self._doom is border:
            self._story.tell("the group's process is to die {}", border.value)
            self.die(self._downtime_ms)
            raise _DeathError


class _DeathError(Exception):
    """The process is gone: nothing of what it was doing goes on."""


class _Logs:
    """The two logs of a process that may die at each border."""

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
