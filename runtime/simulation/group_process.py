"""The simulated process of a group, which may die between any two steps.

It does in virtual time what the group's actor does in a real process. Its death has the same
effect: everything is lost but the log.
"""

from collections.abc import Callable, Sequence
from enum import Enum

from ...actors.group.group_shard import CoordinatorProcess, GroupShard
from ...actors.group.host import LATE_MS, TICK_MS, LatenessBudget, drain
from ...actors.group.kind import WORKERS
from ...actors.group.members.commit import OffsetLedger
from ...actors.group.members.request_filter import first_epoch
from ...actors.group.state.settings import GroupSettings
from ...actors.messages.commands import GroupRequest, Reply
from ...actors.messages.computing import Install
from ...actors.timing import Now
from ...events.group import Group
from ...events.log.frame import NewEntry
from .durable_state import DurableState
from .environment.clock import NEVER, SimulatedClock, Story

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
        """How often it was started anew."""
        self.is_down = self.is_frozen = False
        self.decisions = 0
        """How many requests it took, or answers it gave to those it had held, if these are more."""
        self._clock = clock
        self._story = story
        self._settings = settings
        self._durable_state = durable_state
        self._named = 0
        self._doom: Border | None = None
        self._downtime_ms = 0
        self._queue: list[tuple[GroupRequest, Hear]] = []
        self._is_due = False
        self._tick_at_ms = NEVER
        """When it is to be woken next for its timers, steady clock."""
        self._ticked_ms = 0
        """When it looked at its timers last, steady clock."""
        self._reopened: list[Callable[[], None]] = []
        self._open()

    @property
    def group(self) -> Group:
        """The group as the process has it in memory."""
        return self._coordinator.group

    @property
    def coordinator_epoch(self) -> int:
        """The number of the process, which its supervisor knows."""
        return self._coordinator.coordinator_epoch

    def submit(self, only: int | None, hear: Hear, message: GroupRequest) -> None:
        """Queue a message; `only` is the one process that may get it, None: any.

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
            self._clock.after(span_ms, self._thaw, self.generation, ticks_first)

    def _thaw(self, generation: int, ticks_first: bool) -> None:  # noqa: FBT001
        if generation == self.generation and self.is_frozen and not self.is_down:
            self.is_frozen = False
            is_late = self._tick_at_ms <= self._clock.now_ms
            if is_late and ticks_first:
                self._pass_time()
            self._flush()
            if is_late and not ticks_first:
                self._tick(self._tick_at_ms)

    def _open(self) -> None:
        ledger = OffsetLedger(self._durable_state.offsets)
        group = self._durable_state.restore_group()
        self._coordinator = GroupShard(
            group,
            WORKERS,
            self._settings,
            ledger,
            self._clock.now_ms,
            CoordinatorProcess(first_epoch(1 + self.generation), self._new_id),
        )
        self._lateness = LatenessBudget()
        self._tick_at_ms, self._ticked_ms = NEVER, self._clock.now_ms
        self._wake_in_time()

    def _new_id(self) -> str:
        self._named += 1
        return f"f{self._named}"

    def _reopen(self) -> None:
        self._queue.clear()
        self.generation += 1
        self.is_down = False
        self._story.tell("the group's process is back")
        self._open()
        for deed in self._reopened:
            deed()

    def _wake_in_time(self) -> None:
        """Set a timer for the coordinator's next tick, as the group's actor does."""
        now = self._clock.now()
        at_ms = max(self._coordinator.next_tick_ms(now), self._ticked_ms + TICK_MS, now.steady_ms)
        if at_ms < self._tick_at_ms:
            self._tick_at_ms = at_ms
            self._clock.after(at_ms - now.steady_ms, self._tick, at_ms)

    def _tick(self, at_ms: int) -> None:
        if at_ms == self._tick_at_ms and not self.is_down and not self.is_frozen:
            self._pass_time()
            self._drain()

    def _pass_time(self) -> None:
        """Execute all due timers; timers are extended by the time the process was frozen."""
        now = self._clock.now()
        late_ms = now.steady_ms - self._tick_at_ms
        if late_ms >= LATE_MS:
            self._coordinator.extend_timers(self._lateness.grant(late_ms, now.steady_ms))
        self._tick_at_ms, self._ticked_ms = NEVER, now.steady_ms
        self._coordinator.run_timers(now)

    def _flush(self) -> None:
        self._is_due = False
        if self.is_down or self.is_frozen:
            return
        queue, self._queue = self._queue, []
        for message, hear in queue:
            if isinstance(message, Install):
                self._durable_state.take_install(message)
            self._coordinator.submit(message, hear, self._clock.now())
        self._drain(len(queue))

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
