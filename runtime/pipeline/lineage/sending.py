"""Asynchronous sender of lineage events: a thread sends them in order and drops them on errors.

Tasks never wait for it. It warns about the first error, and again only after a success.
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
"""The length of the queue."""
_TIMEOUT_S: Final = 5.0
_LAST_S: Final = 2.0
"""How long `close` waits for the last event to be sent."""


class EventSender:
    """Sends the events of one run to a server."""

    def __init__(self, url: str, api_key: str, warn: Callable[[str], None]) -> None:
        """Start the thread; raises `ValueError` for an invalid URL."""
        auth = ApiKeyTokenProvider({"apiKey": api_key}) if api_key else TokenProvider({})
        self._transport = HttpTransport(HttpConfig(url, timeout=_TIMEOUT_S, auth=auth))
        self._url = url
        self._warn = warn
        self._has_warned = False
        """Whether it has warned since the last event that was sent."""
        self._waiting: Queue[RunEvent | None] = Queue(_MOST)
        self._thread = Thread(target=self._work, name="lineage", daemon=True)
        self._thread.start()

    def send(self, event: RunEvent) -> None:
        """Queue an event; drop it if the queue is full."""
        with suppress(Full):
            self._waiting.put_nowait(event)

    def close(self) -> None:
        """End the thread after the queued events, and wait for it a short time."""
        with suppress(Full):
            self._waiting.put_nowait(None)
        self._thread.join(_LAST_S)

    def _work(self) -> None:
        while (event := self._waiting.get()) is not None:
            try:
                self._transport.emit(event)
            except Exception as error:  # noqa: BLE001  # of the library: the event is lost
                self._warn_once(error)
            else:
                self._has_warned = False
        self._transport.close()

    def _warn_once(self, error: Exception) -> None:
        if not self._has_warned:
            self._has_warned = True
            self._warn(f"openlineage.url: events cannot be sent to {self._url}: {error}")
