"""How many batches an engine runs at once: a few, since more of them only hold each other up.

Fifty batches at once on two cores were slower together than one after the other. Who has to wait is
let in by age times weight: a connector that weighs twice as much is let in when it has waited half
as long, and nobody waits for ever.
"""

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from threading import Event, Lock

from .restarts import Halt


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
