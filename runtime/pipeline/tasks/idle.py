"""How often tasks look for news that find none: the looks of all on a worker cost little together.

A look at a folder takes some tenths of a millisecond, whether ten files lie in it or a hundred
thousand, so that one task may look thirty times a second, and what lands is seen at once; dozens of
them look as seldom as their poll interval allows.
"""

from contextlib import ExitStack
from threading import Lock
from typing import Final

_SHARE: Final = 0.01
"""How much of a core all looks may take, until each task waits for its whole poll interval."""

_SHORTEST_S: Final = 0.02


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
