"""Keeps spans until a collector has them, up to a limit: then the oldest are dropped and counted.

A collector that is away is told once in the log, and that it is back once more.
"""

import logging
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

from .....projections.traces.spans import TraceSpan

LOGGER = logging.getLogger(__name__)
RETRY_SECONDS: Final = 10.0
KEPT_MAX: Final = 10_000
SENT_AT_ONCE: Final = 500


class Sender(Protocol):
    """A connection to a collector."""

    def send(self, spans: Sequence[TraceSpan]) -> str:
        """Send spans; return why they did not arrive, "" if they did."""
        ...

    def close(self) -> None:
        """End an attempt that is under way; for any thread."""
        ...


class SpanQueue:
    """The spans that a collector does not have yet, in order, for one thread."""

    def __init__(self, sender: Sender, endpoint: str) -> None:
        self._sender, self._endpoint = sender, endpoint
        self._waiting = deque[TraceSpan]()
        self._sent = self._dropped = 0
        self._dropped_before = 0
        """How many had been dropped when the collector last took any."""
        self._retry_at = 0.0
        """The monotonic time before which nothing is sent."""
        self._is_away = False
        """Whether the collector did not take what was sent last."""
        self.is_sending = False
        """Whether an answer of the collector is waited for now."""

    def counts(self) -> Mapping[str, int]:
        """Return how many spans were sent and dropped so far; for any thread."""
        return {"sent": self._sent, "dropped": self._dropped}

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not self._waiting

    def add(self, spans: Iterable[TraceSpan]) -> None:
        """Add spans at the end."""
        for each in spans:
            if len(self._waiting) == KEPT_MAX:
                self._waiting.popleft()
                self._dropped += 1
            self._waiting.append(each)

    def send(self) -> None:
        """Send what waits, unless the collector was away a moment ago."""
        while self._waiting and time.monotonic() >= self._retry_at:
            count = min(SENT_AT_ONCE, len(self._waiting))
            if why := self._send([self._waiting[n] for n in range(count)]):
                self._note_away(why)
                return
            for _ in range(count):
                self._waiting.popleft()
            self._sent += count
            self._note_back()

    def close(self) -> None:
        """End an attempt that is under way; for any thread."""
        self._sender.close()

    def _send(self, spans: Sequence[TraceSpan]) -> str:
        self.is_sending = True
        try:
            return self._sender.send(spans)
        finally:
            self.is_sending = False

    def _note_away(self, why: str) -> None:
        self._retry_at = time.monotonic() + RETRY_SECONDS
        if not self._is_away:
            self._is_away = True
            LOGGER.warning(
                "traces.endpoint: spans cannot be sent to %s: %s; nothing else waits for that, and"
                " it is tried again every %d s with the latest %d spans",
                self._endpoint,
                why,
                RETRY_SECONDS,
                KEPT_MAX,
            )

    def _note_back(self) -> None:
        if self._is_away:
            self._is_away = False
            told = "traces.endpoint: spans are sent to %s again; %d were dropped meanwhile"
            LOGGER.info(told, self._endpoint, self._dropped - self._dropped_before)
            self._dropped_before = self._dropped
