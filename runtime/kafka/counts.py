"""What the listener counts, and what it says of what it refuses: a line a second at most."""

import logging
import time
from pathlib import Path
from typing import Final

from ...projections.metrics import ListenerMetrics
from .wire.bounds import FrameRefused
from .wire.served import NAMES

LOGGER = logging.getLogger(__name__)
COMPLAINT_SECONDS: Final = 1.0


class Counts:
    """Connections, requests by call, and what was refused for which reason."""

    def __init__(self, folder: Path) -> None:
        """`folder` is where processes of the node keep their figures."""
        self._metrics = ListenerMetrics(folder)
        self._silent_until = 0.0
        self._unsaid = 0
        """How many complaints were not written since the last one that was."""

    def count(self, api: int) -> None:
        """Count a request."""
        self._metrics.count_request(NAMES.get(api, "other"))

    def open(self, change: int) -> None:
        """Count a connection that was opened, or closed (-1)."""
        self._metrics.count_connection(change)

    def refuse(self, refused: FrameRefused, address: str) -> None:
        """Count a refusal, and tell of it."""
        self._metrics.count_refusal(refused.reason)
        self.complain("closed the connection of", f"{address}: {refused}")

    def complain(self, what: str, whom: str) -> None:
        """Write a line to the log, unless there was one within the last second."""
        now = time.monotonic()
        if now < self._silent_until:
            self._unsaid += 1
            return
        more = f" ({self._unsaid} more like this were not told)" if self._unsaid else ""
        self._silent_until, self._unsaid = now + COMPLAINT_SECONDS, 0
        LOGGER.warning("%s %s%s", what, whom, more)
