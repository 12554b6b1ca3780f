"""The last fence of a worker: a thread that kills the process if the actor hangs past a deadline.

All other fencing runs on the one actor thread. If that hangs, on a disk or in a library, only the
watchdog stops the tasks of this process before another worker may start them.
"""

import logging
import os
import time
from threading import Condition, Thread

LOGGER = logging.getLogger(__name__)
EXIT_HUNG = 76
LAST_WORDS = "the worker ends itself: it was not heard in time, or hung"
LAST_WORDS_SECONDS = 0.02
NEVER = float("inf")


class Watchdog:
    """Ends the process at a deadline, unless a later deadline is set in time."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._by = NEVER
        """The deadline, in seconds on the monotonic clock."""
        Thread(target=self._watch, name="watchdog", daemon=True).start()

    def until(self, steady_ms: int | None) -> None:
        """Set the deadline, on the monotonic clock; None: no deadline, as nothing runs."""
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
        # On a separate thread, since the hanging actor may hold the lock of the log.
        Thread(target=LOGGER.critical, args=[LAST_WORDS], daemon=True).start()
        time.sleep(LAST_WORDS_SECONDS)
        os._exit(EXIT_HUNG)
