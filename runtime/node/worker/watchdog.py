"""What ends a worker from without: a watchdog, and the end of the command that started it.

The watchdog is the last fence: a thread that ends the process when the actor itself hangs past
its deadline. Everything that fences a worker runs on its one actor thread. If that hangs, on a
disk or in a library, nobody would stop what runs here before others may start it.
"""

import logging
import os
import time
from threading import Condition, Thread

from ....events.log.process import is_alive, process_of

LOGGER = logging.getLogger(__name__)
EXIT_HUNG = 76
LAST_WORDS = "the worker ends itself: it was not heard in time, or hung"
LAST_WORDS_SECONDS = 0.02
NEVER = float("inf")


class Watchdog:
    """Ends the process at a deadline unless a later one is set before it."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._by = NEVER
        Thread(target=self._watch, name="watchdog", daemon=True).start()

    def until(self, steady_ms: int | None) -> None:
        """Set the deadline, on the monotonic clock; None: nothing runs that must end."""
        by = NEVER if steady_ms is None else steady_ms / 1000
        with self._changed:
            is_earlier = by < self._by
            self._by = by
            if is_earlier:
                self._changed.notify()

    def _watch(self) -> None:
        with self._changed:
            while (left := self._by - time.monotonic()) > 0:
                self._changed.wait(None if left == NEVER else left)
        # On a thread of its own: what the actor hangs in may hold the log.
        Thread(target=LOGGER.critical, args=[LAST_WORDS], daemon=True).start()
        time.sleep(LAST_WORDS_SECONDS)
        os._exit(EXIT_HUNG)


class ParentWatch:
    """A process, told from a later one of the same pid by when it started; None ties to nobody."""

    def __init__(self, pid: int | None) -> None:
        self._process = None if pid is None else process_of(pid)

    @property
    def has_ended(self) -> bool:
        """Whether the process is gone."""
        return self._process is not None and not is_alive(self._process)
