"""Who sees workers end and tells the group: at once or late, once or twice, rightly or not."""

from typing import TYPE_CHECKING, Final

from ...actors.messages.orders import EndMember
from .log import GROUP_ID
from .rng import stream

if TYPE_CHECKING:
    from .world import World

SOON_MS: Final = (1, 20, 500)
LATE_MS: Final = (4_000, 15_000, 40_000)
MISTAKE_EVERY_MS: Final = 20_000
"""How often, on the mean, a member that lives is reported, where that happens at all."""


class SimulatedSupervisor:
    """The supervisor of all nodes in one world.

    It names exactly the process that it means. What a living worker runs after a wrong report
    the group may give to others at once; its commits are refused by then, so it does not count
    as running anything until it joins again.
    """

    def __init__(self, world: "World") -> None:
        self._world = world
        self._rng = stream(world.schedule.seed, "supervisor")
        if world.schedule.traits.mistakes:
            self._schedule_mistake()

    def sees_end(self, worker: str) -> None:
        """Take note of a worker's end, and tell the group of it unless it goes unseen."""
        if self._rng.random() >= self._world.schedule.traits.seen:
            return
        is_late = self._rng.random() < 1 / 3 and not self._world.is_calm
        self._report_after(self._rng.choice(LATE_MS if is_late else SOON_MS), worker)
        if self._rng.random() < 1 / 3:
            self._report_after(self._rng.choice(LATE_MS), worker)

    def _report_after(self, delay_ms: int, worker: str) -> None:
        self._world.clock.after(self._rng.randint(1, delay_ms), self._report, worker)

    def _report(self, worker: str) -> None:
        ended_ms = self._world.clock.wall_ms
        self._world.command(EndMember(GROUP_ID, worker, worker, ended_ms))

    def _schedule_mistake(self) -> None:
        delay_ms = self._rng.randint(1, 2 * MISTAKE_EVERY_MS)
        self._world.clock.after(delay_ms, self._mistake)

    def _mistake(self) -> None:
        if self._world.is_calm:
            return
        living = [each.name for each in self._world.workers() if each.foreign is None]
        if living and not self._world.process.is_down:
            worker = self._rng.choice(living)
            self._world.exclusivity.disown(worker)
            self._report(worker)
        self._schedule_mistake()
