"""What connector classes find outside: asked within a time, and by a few requests at once.

What they look at may be a mount that hangs or a query that takes for ever: a thread is left behind
with it then, and the request goes on without.
"""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from threading import Semaphore, Thread
from typing import Final, TypeVar

from ....pipeline.connectors.builtin.plugins import Plugin
from ....pipeline.spi.context import Findings, Outside
from ....pipeline.spi.errors import Away, OffsetRefused

LOGGER = logging.getLogger(__name__)
OUTSIDE_SECONDS: Final = 20.0
"""How long a request waits for what is found outside."""
MOST_AT_ONCE: Final = 8
"""How many requests look outside at once, those that were left behind included."""
T = TypeVar("T")


class Unchecked(Exception):  # noqa: N818  # says what happened
    """What was to be looked at was not; the text says why, without a secret."""


class OutsideChecks:
    """Asks connector classes what they find; at most so many at once, each within so long."""

    def __init__(
        self, outside: Callable[[], Outside] = Outside, seconds: float = OUTSIDE_SECONDS
    ) -> None:
        """Take what makes what they are given, and how long a request waits for them."""
        self._outside = outside
        self._seconds = seconds
        self._free = Semaphore(MOST_AT_ONCE)
        """How many more may look now."""

    def find(self, plugin: Plugin, config: Mapping[str, str]) -> Findings:
        """Return what keeps a sound config from working; never raises, and never waits longer."""
        try:
            return self.ask(plugin, lambda outside: plugin.made_by.check_outside(config, outside))
        except (Unchecked, Away, OffsetRefused) as error:
            told = str(error) if isinstance(error, Unchecked) else _failed(error)
            return Findings(warnings=(f"what the config leads to was not looked at: {told}",))

    def ask(self, plugin: Plugin, question: Callable[[Outside], T]) -> T:
        """Return what a connector class answers; raises `Unchecked`, `Away`, `OffsetRefused`."""
        if not self._free.acquire(timeout=self._seconds):
            raise Unchecked("others are being looked at")
        found: Future[T] = Future()
        Thread(target=self._look, args=(plugin, question, found), daemon=True).start()
        try:
            return found.result(timeout=self._seconds)
        except TimeoutError:
            raise Unchecked(f"that takes longer than {self._seconds:.0f} s") from None

    def _look(self, plugin: Plugin, question: Callable[[Outside], T], found: "Future[T]") -> None:
        try:
            found.set_result(question(self._outside()))
        except (Away, OffsetRefused) as error:
            found.set_exception(error)
        except Exception as error:  # noqa: BLE001  # what others install may fail in any way
            kind = type(error).__name__  # its words may hold a secret
            LOGGER.warning("%s failed to look at what its config leads to: %s", plugin.name, kind)
            found.set_exception(Unchecked(_failed(error)))
        finally:
            self._free.release()


def _failed(error: Exception) -> str:
    return f"the connector class fails ({type(error).__name__})"
