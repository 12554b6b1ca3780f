"""The pause of a source between two polls without new rows."""

import time
from typing import Final

_REST_SHARE: Final = 9
"""The pause after a poll without rows, as a multiple of its duration: a poll of a large table
keeps the server busy."""


class PollPause:
    """The pause after polls without rows.

    It depends on the shorter of the last two polls: a single slow poll, due to a busy machine or
    server, would otherwise delay new rows for ten times as long.
    """

    def __init__(self) -> None:
        self._until = 0.0
        """The end of the pause on the monotonic clock, in seconds."""
        self._took = 0.0
        """The duration of the last poll, in seconds."""

    @property
    def is_over(self) -> bool:
        """Whether to poll again."""
        return time.monotonic() >= self._until

    def end(self) -> None:
        """Poll again at once."""
        self._until = 0.0

    def wait(self, seconds: float) -> None:
        """Poll again after a pause."""
        self._until = time.monotonic() + seconds

    def after_look(self, began: float, *, found: bool) -> None:
        """Note the end of a poll, with its monotonic start time, and whether it found rows."""
        took = time.monotonic() - began
        shorter, self._took = min(took, self._took), took
        self.wait(0.0 if found else _REST_SHARE * shorter)
