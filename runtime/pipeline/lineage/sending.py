"""Events on their way to a server: sent in their order by a thread, and given up rather than kept.

No task waits for it. That events cannot be sent is told once, until one is sent again.
"""

from collections.abc import Callable
from contextlib import suppress
from queue import Full, Queue
from threading import Thread
from typing import Final

from openlineage.client.event_v2 import RunEvent
from openlineage.client.transport.http import (
    ApiKeyTokenProvider,
    HttpConfig,
    HttpTransport,
    TokenProvider,
)

_MOST: Final = 100
"""How many events may wait."""
_TIMEOUT_S: Final = 5.0
_LAST_S: Final = 2.0
"""How long an end waits for the last event to be sent."""


class EventSender:
    """Sends the events of one run to a server."""

    def __init__(self, url: str, api_key: str, warn: Callable[[str], None]) -> None:
        """Take where to send; raises `ValueError` for what is no URL."""
        auth = ApiKeyTokenProvider({"apiKey": api_key}) if api_key else TokenProvider({})
        self._transport = HttpTransport(HttpConfig(url, timeout=_TIMEOUT_S, auth=auth))
        self._shown = url
        self._warn = warn
        self._is_told = False
        """Whether it was told that the last event could not be sent."""
        self._waiting: Queue[RunEvent | None] = Queue(_MOST)
        self._thread = Thread(target=self._work, name="lineage", daemon=True)
        self._thread.start()

    def send(self, event: RunEvent) -> None:
        """Have an event sent, unless so many wait that the server has been away for long."""
        with suppress(Full):
            self._waiting.put_nowait(event)

    def close(self) -> None:
        """Send what waits, and wait a little until it is."""
        with suppress(Full):
            self._waiting.put_nowait(None)
        self._thread.join(_LAST_S)

    def _work(self) -> None:
        while (event := self._waiting.get()) is not None:
            try:
                self._transport.emit(event)
            except Exception as error:  # noqa: BLE001  # of the library: whatever it is, none is sent
                self._tell(error)
            else:
                self._is_told = False
        self._transport.close()

    def _tell(self, error: Exception) -> None:
        if not self._is_told:
            self._is_told = True
            self._warn(f"openlineage.url: events cannot be sent to {self._shown}: {error}")
