"""A coordinator with its queue and its timers, in virtual time.

It does what the group's actor does in a real process, but for the writing: what becomes of decided
records, and how the process ends, is told by the subclasses. One has its logs beside it, the other
one a store behind a network.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

from ....actors.group.group_shard import CoordinatorProcess, GroupShard
from ....actors.group.host import LATE_MS, TICK_MS, LatenessBudget
from ....actors.group.kind import WORKERS
from ....actors.group.members.commit import OffsetLedger
from ....actors.group.members.request_filter import first_epoch
from ....actors.group.state.settings import GroupSettings
from ....actors.messages.commands import GroupRequest
from ....actors.messages.computing import Install
from ....events.group import Group
from ..environment.clock import NEVER, SimulatedClock, Story
from .durable_state import DurableState, MemoryLog

Hear = Callable[..., None]
"""Gets a reply, and what else its process tells with it."""


class CoordinatingProcess(ABC):
    """One group's coordinator with its queue and its timers."""

    def __init__(
        self,
        clock: SimulatedClock,
        story: Story,
        settings: GroupSettings,
        durable_state: DurableState,
    ) -> None:
        self.is_frozen = False
        self.decisions = 0
        """How many requests it took, or answers it gave to those it had held, if these are more."""
        self._clock = clock
        self._story = story
        self._settings = settings
        self._durable_state = durable_state
        self._named = 0
        self._queue: list[tuple[GroupRequest, Hear]] = []
        self._is_due = False
        self._tick_at_ms = NEVER
        """When it is to be woken next for its timers, steady clock."""
        self._ticked_ms = 0
        """When it looked at its timers last, steady clock."""

    @property
    @abstractmethod
    def is_stopped(self) -> bool:
        """Whether it takes nothing from its queue now, and looks at no timer."""

    @abstractmethod
    def _drain(self, taken: int = 0) -> None:
        """Write decisions, and only then send answers; `taken` is how many requests led to them."""

    @property
    def group(self) -> Group:
        """The group as the process has it in memory."""
        return self._coordinator.group

    @property
    def coordinator_epoch(self) -> int:
        """The number of the process, which its supervisor knows."""
        return self._coordinator.coordinator_epoch

    def enqueue(self, hear: Hear, message: GroupRequest) -> None:
        """Queue a request, which is decided with all that are there by then."""
        self._queue.append((message, hear))
        if not self._is_due:
            self._is_due = True
            self._clock.after(0, self._flush)

    def _serve(self, group: Group, offsets: MemoryLog, epoch: int) -> None:
        """Begin to decide for a group as its log has it, as the owner of this epoch."""
        self._coordinator = GroupShard(
            group,
            WORKERS,
            self._settings,
            OffsetLedger(offsets),
            self._clock.now_ms,
            CoordinatorProcess(first_epoch(epoch), self._new_id),
        )
        self._lateness = LatenessBudget()
        self._tick_at_ms, self._ticked_ms = NEVER, self._clock.now_ms
        self._wake_in_time()

    def _new_id(self) -> str:
        self._named += 1
        return f"f{self._named}"

    def _thaw(self, ticks_first: bool) -> None:  # noqa: FBT001
        """Go on after a while in which nothing was done."""
        self.is_frozen = False
        is_late = self._tick_at_ms <= self._clock.now_ms
        if is_late and ticks_first and not self.is_stopped:
            self._pass_time()
        self._flush()
        if is_late and not ticks_first:
            self._tick(self._tick_at_ms)

    def _wake_in_time(self) -> None:
        """Set a timer for the coordinator's next tick, as the group's actor does."""
        now = self._clock.now()
        at_ms = max(self._coordinator.next_tick_ms(now), self._ticked_ms + TICK_MS, now.steady_ms)
        if at_ms < self._tick_at_ms:
            self._tick_at_ms = at_ms
            self._clock.after(at_ms - now.steady_ms, self._tick, at_ms)

    def _tick(self, at_ms: int) -> None:
        if at_ms == self._tick_at_ms and not self.is_stopped:
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
        if self.is_stopped:
            return
        queue, self._queue = self._queue, []
        for message, hear in queue:
            if isinstance(message, Install):
                self._durable_state.take_install(message)
            self._coordinator.submit(message, hear, self._clock.now())
        self._drain(len(queue))
