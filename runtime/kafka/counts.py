"""The metrics of the listener, and its rate-limited warnings."""

import logging
import time
from pathlib import Path
from typing import Final

from ...projections.metrics.processes import ListenerMetrics
from .wire.bounds import TLS, FrameRefused
from .wire.served import NAMES

LOGGER = logging.getLogger(__name__)
WARN_SECONDS: Final = 1.0
"""The minimum interval of warnings."""


class Counts:
    """Counts connections, requests by API, and refusals by reason."""

    def __init__(self, folder: Path) -> None:
        """`folder` has the metrics of all processes of the node."""
        self._metrics = ListenerMetrics(folder)
        self._silent_until = 0.0
        self._suppressed = 0
        """The number of warnings that were dropped since the last logged one."""

    def count_request(self, api: int) -> None:
        """Count a request by its API."""
        self._metrics.count_request(NAMES.get(api, "other"))

    def count_connection(self, change: int) -> None:
        """Count a connection that was opened (1) or closed (-1)."""
        self._metrics.count_connection(change)

    def count_failed_authentication(self, mechanism: str) -> None:
        """Count a client that did not prove who it is, by its mechanism."""
        self._metrics.count_failed_authentication(mechanism or "none")

    def count_denial(self, api: int, principal: str, missing: str) -> None:
        """Count a call whose client did not have a right, and warn about it."""
        self._metrics.count_denial(NAMES.get(api, "other"))
        self.warn("no right:", f"{principal!a} may not {missing}")

    def count_refusal(self, refused: FrameRefused, address: str) -> None:
        """Count a refusal, and warn about it."""
        self._metrics.count_refusal(refused.reason)
        if refused.reason == TLS:
            self._metrics.count_failed_handshake()
        self.warn("closed the connection of", f"{address}: {refused}")

    def count_unreadable(self, flaw: str, address: str) -> None:
        """Count an ask of a member that cannot be read, and warn about it."""
        self._metrics.count_refusal("unreadable ask")
        self.warn("an ask cannot be read:", f"{address}: {flaw}")

    def tell_certificate_end(self, seconds: float) -> None:
        """Set when the certificate expires, in seconds since 1970."""
        self._metrics.tell_certificate_end(seconds)

    def close(self) -> None:
        """Count nothing more."""
        self._metrics.close()

    def warn(self, what: str, whom: str) -> None:
        """Log a warning, unless the last one was less than `WARN_SECONDS` ago."""
        now = time.monotonic()
        if now < self._silent_until:
            self._suppressed += 1
            return
        more = f" ({self._suppressed} more warnings were not logged)" if self._suppressed else ""
        self._silent_until, self._suppressed = now + WARN_SECONDS, 0
        LOGGER.warning("%s %s%s", what, whom, more)
