"""Time and chance in a simulation, and who tells its story.

All of it is the same for the same seed. The order in which things happen depends on nothing but
the seed. For each thing there is a random generator of its own, out of the seed and the
thing's name. So what happens to one worker does not shift what happens to another, in any process:
a text seeds `Random` by its SHA-512, not by its hash.
"""

import heapq
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

from ....actors.timing import Now

WALL_MS = 1_700_000_000_000
"""The wall clock at the beginning, in milliseconds since 1970."""

NEVER = 1 << 60
"""Later than anything."""

Deed = Callable[..., None]


class SimulatedClock:
    """Two clocks in milliseconds: a steady one that drives everything, and a wall clock.

    The wall clock may be set forwards and backwards (`skew_ms`), the steady one never is.
    """

    def __init__(self) -> None:
        self.now_ms = 0
        self.skew_ms = 0
        self._agenda: list[tuple[int, int, Deed, tuple[Any, ...]]] = []
        self._order = count()
        self._now = Now(WALL_MS, 0)

    @property
    def wall_ms(self) -> int:
        """The wall clock of this machine, which faults may set."""
        return WALL_MS + self.now_ms + self.skew_ms

    def set_wall(self, skew_ms: int) -> None:
        """Set the wall clock to be so far off from now on."""
        self.skew_ms = skew_ms
        self._now = Now(self.wall_ms, self.now_ms)

    def now(self) -> Now:
        """Return this moment on both clocks."""
        if self._now.steady_ms != self.now_ms:
            self._now = Now(self.wall_ms, self.now_ms)
        return self._now

    def after(self, delay_ms: int, deed: Deed, *args: object) -> None:
        """Schedule a call once, after a delay."""
        heapq.heappush(self._agenda, (self.now_ms + delay_ms, next(self._order), deed, args))

    def run(self, until_ms: int) -> None:
        """Run all calls that are due up to a moment: by time, then in the order of scheduling."""
        agenda = self._agenda
        while agenda and agenda[0][0] <= until_ms:
            self.now_ms, _, deed, args = heapq.heappop(agenda)
            deed(*args)
        self.now_ms = until_ms


def random_stream(*names: object) -> Random:
    """Return a random generator seeded by these names: the same names, the same numbers."""
    return Random("/".join(map(str, names)))  # noqa: S311  # nobody is to be kept from guessing


class Story:
    """The lines so far; a story that is not narrated costs next to nothing."""

    def __init__(self, clock: SimulatedClock, *, is_told: bool) -> None:
        self.is_told = is_told
        self.lines: list[str] = []
        self._clock = clock

    def tell(self, template: str, *args: object) -> None:
        """Add a line if the story is narrated; only then `template` is filled in."""
        if self.is_told:
            seconds = self._clock.now_ms / 1_000
            self.lines.append(f"{seconds:9.3f}  {template.format(*args)}")


class Violation(Exception):  # noqa: N818  # what was violated is the news, not that it is an error
    """Something happened that must never happen; the number is that of PROTOCOL §11."""
