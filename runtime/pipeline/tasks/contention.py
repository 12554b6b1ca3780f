"""What the tasks of one worker leave each other: places on its engine, and time to look for news.

Fifty batches at once on two cores were slower together than one after the other, so an engine runs
a few at once. Who has to wait is let in by age times weight: a connector that weighs twice as much
is let in when it has waited half as long, and nobody waits for ever.

A look at a folder takes some tenths of a millisecond, whether ten files lie in it or a hundred
thousand, so that one task may look some ten times a second, and what lands is seen soon, also where
nothing wakes the task; several of them look as seldom as their poll interval allows.
"""

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import Final

from .restarts import Halt

_SHARE: Final = 0.0025
"""How much of a core all looks may take, until each task waits for its whole poll interval."""

_SHORTEST_S: Final = 0.02


@dataclass(eq=False, frozen=True, slots=True)
class _Waiter:
    weight: int
    since: float
    """When it came, on the monotonic clock."""
    turn: Event = field(default_factory=Event)
    """Set when it is let in, and when it need not wait any longer."""


class Admission:
    """The places for batches on one engine; each method may be called from any thread."""

    def __init__(self, most: int) -> None:
        self._lock = Lock()
        """Guards all of this."""
        self._free = most
        """How many more batches may begin."""
        self._waiting: list[_Waiter] = []
        """Who waits for a place, in the order in which they came; then none is free."""

    def enter(self, weight: int, halt: Halt) -> ExitStack:
        """Wait for a place, or until somebody asks for an end; return what gives it back."""
        with self._lock:
            if self._free:
                self._free -= 1
                return self._place()
            waiter = _Waiter(weight, time.monotonic())
            self._waiting.append(waiter)
        halt.wait_for(waiter.turn)
        with self._lock:
            if waiter not in self._waiting:
                return self._place()
            self._waiting.remove(waiter)
            return ExitStack()

    def _place(self) -> ExitStack:
        place = ExitStack()
        place.callback(self._leave)
        return place

    def _leave(self) -> None:
        with self._lock:
            if not self._waiting:
                self._free += 1
                return
            now = time.monotonic()
            first = max(self._waiting, key=lambda each: (now - each.since) * each.weight)
            self._waiting.remove(first)
            first.turn.set()


class IdlePauses:
    """The pauses of all tasks of one worker; each method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._tasks = 0
        """How many tasks look for news, or work on some."""

    def count(self) -> ExitStack:
        """Count a task among those that look; return what ends that."""
        with self._lock:
            self._tasks += 1
        counted = ExitStack()
        counted.callback(self._leave)
        return counted

    def after(self, look_s: float, longest_s: float) -> float:
        """Return how long to wait after a look that took so much of the processor, in seconds."""
        return min(longest_s, max(_SHORTEST_S, self._tasks * look_s / _SHARE))

    def _leave(self) -> None:
        with self._lock:
            self._tasks -= 1
