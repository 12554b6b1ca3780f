"""When a source looks again after a look that found nothing."""

import time
from typing import Final

_REST_SHARE: Final = 9
"""How many times longer than it took a look that found nothing is let rest: a look of a large table
keeps the server busy for as long as it takes, and no worker's clock sees that."""


class LookRest:
    """How long what found nothing is let rest, and until when.

    The shorter of the last two looks counts: a machine, or a server, that was held up once for
    some seconds says nothing about the table, and its rows would wait for ten times as long.
    """

    def __init__(self) -> None:
        self._until = 0.0
        """On the monotonic clock, in seconds."""
        self._took = 0.0
        """How long the look before took, in seconds."""

    @property
    def is_over(self) -> bool:
        """Whether to look again."""
        return time.monotonic() >= self._until

    def end(self) -> None:
        """Look again at once."""
        self._until = 0.0

    def wait(self, seconds: float) -> None:
        """Look again after a while."""
        self._until = time.monotonic() + seconds

    def after_look(self, began: float, *, found: bool) -> None:
        """Learn when a look began, on the monotonic clock, that ends now, and whether it found."""
        took = time.monotonic() - began
        shorter, self._took = min(took, self._took), took
        self.wait(0.0 if found else _REST_SHARE * shorter)
