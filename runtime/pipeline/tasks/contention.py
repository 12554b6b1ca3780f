"""How the tasks of one worker share its engine and the CPU time for polling their sources.

Fifty concurrent batches on two cores were slower than the same batches one after the other, so an
engine runs only a few at once. Waiting tasks get a slot in the order of waiting time multiplied by
weight: a connector with twice the weight waits half as long, and no task starves.

A poll of a folder takes some tenths of a millisecond, whether it has ten files or a hundred
thousand. So a single task may poll some ten times a second and finds new files soon, even if
nothing wakes it up. With many tasks each polls less often, down to its poll interval.
"""

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import Final

from .restarts import Halt

_SHARE: Final = 0.0025
"""The share of a core for all polls; the poll interval limits how far they slow down."""

_SHORTEST_S: Final = 0.02
"""The shortest pause between two polls."""


@dataclass(eq=False, frozen=True, slots=True)
class _Waiter:
    weight: int
    since: float
    """The monotonic time when it began to wait."""
    turn: Event = field(default_factory=Event)
    """Set when it gets a slot, and when its task is asked to end."""


class BatchSlots:
    """A semaphore for the batches on one engine; each method may be called from any thread."""

    def __init__(self, most: int) -> None:
        self._lock = Lock()
        """Guards the following fields."""
        self._free = most
        """The number of free slots."""
        self._waiting: list[_Waiter] = []
        """The tasks that wait for a slot, oldest first; while there are any, no slot is free."""

    def acquire(self, weight: int, halt: Halt) -> ExitStack:
        """Wait for a slot, or until the task is asked to end; closing the result frees the slot."""
        with self._lock:
            if self._free:
                self._free -= 1
                return self._held_slot()
            waiter = _Waiter(weight, time.monotonic())
            self._waiting.append(waiter)
        halt.wait_for(waiter.turn)
        with self._lock:
            if waiter not in self._waiting:
                return self._held_slot()
            self._waiting.remove(waiter)
            return ExitStack()

    def _held_slot(self) -> ExitStack:
        slot = ExitStack()
        slot.callback(self._release)
        return slot

    def _release(self) -> None:
        with self._lock:
            if not self._waiting:
                self._free += 1
                return
            now = time.monotonic()
            first = max(self._waiting, key=lambda each: (now - each.since) * each.weight)
            self._waiting.remove(first)
            first.turn.set()


class IdlePauses:
    """The pauses between the polls of all tasks of one worker; usable from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._tasks = 0
        """The number of running tasks."""

    def register(self) -> ExitStack:
        """Count a task as polling until the result is closed."""
        with self._lock:
            self._tasks += 1
        counted = ExitStack()
        counted.callback(self._unregister)
        return counted

    def after(self, poll_s: float, longest_s: float) -> float:
        """Return the pause in seconds after a poll that took `poll_s` seconds of CPU time."""
        return min(longest_s, max(_SHORTEST_S, self._tasks * poll_s / _SHARE))

    def _unregister(self) -> None:
        with self._lock:
            self._tasks -= 1
