"""Checks of connector classes against external systems, with limits in time and number.

A check may hang, on a mount or in a query: then its thread is abandoned, and the request continues
without the check. Neither those that run nor those that were abandoned keep other requests waiting.
"""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from threading import Semaphore, Thread
from typing import Final, TypeVar

from ....pipeline.connectors.plugins import Plugin
from ....pipeline.spi.context import ExternalAccess, ProbeResult
from ....pipeline.spi.errors import Away, LettersRefused, OffsetRefused

LOGGER = logging.getLogger(__name__)
EXTERNAL_SECONDS: Final = 20.0
"""How long a request waits for a check."""
MOST_AT_ONCE: Final = 8
"""The maximum number of checks that requests wait for at once."""
MOST_ABANDONED: Final = 32
"""The maximum number of abandoned threads: with so many, nothing is checked any more."""
TURN_SECONDS: Final = 2.0
"""How long a request waits for its turn: the threads of requests are few, too."""
T = TypeVar("T")


class Unchecked(Exception):  # noqa: N818  # says what happened
    """A check was not done; the message says why, without secrets."""


class ExternalChecks:
    """Runs the checks of connector classes, within the limits."""

    def __init__(
        self,
        outside: Callable[[], ExternalAccess] = ExternalAccess,
        seconds: float = EXTERNAL_SECONDS,
    ) -> None:
        """`outside` creates the access of a check; `seconds` is the time limit."""
        self._outside = outside
        self._seconds = seconds
        self._free = Semaphore(MOST_AT_ONCE)
        """How many more checks may run now."""
        self._abandoned = Semaphore(MOST_ABANDONED)
        """How many more threads may be abandoned."""

    def find(self, plugin: Plugin, config: Mapping[str, str]) -> ProbeResult:
        """Return the warnings for a valid config; never raises, and returns within the limit."""
        try:
            return self.ask(plugin, lambda outside: plugin.made_by.probe(config, outside))
        except (Unchecked, Away, OffsetRefused) as error:
            told = str(error) if isinstance(error, Unchecked) else _failed(error)
            return ProbeResult(warnings=(f"what the config leads to was not looked at: {told}",))

    def ask(self, plugin: Plugin, question: Callable[[ExternalAccess], T]) -> T:
        """Call a connector class; raises `Unchecked` and the class's own refusals."""
        if not self._free.acquire(timeout=min(TURN_SECONDS, self._seconds)):
            raise Unchecked("others are being looked at")
        try:
            return self._run(plugin, question)
        finally:
            self._free.release()

    def _run(self, plugin: Plugin, question: Callable[[ExternalAccess], T]) -> T:
        if not self._abandoned.acquire(blocking=False):
            raise Unchecked(f"{MOST_ABANDONED} earlier looks at other systems hang")
        findings: Future[T] = Future()
        Thread(target=self._look, args=(plugin, question, findings), daemon=True).start()
        try:
            return findings.result(timeout=self._seconds)
        except TimeoutError:
            raise Unchecked(f"that takes longer than {self._seconds:.0f} s") from None

    def _look(
        self, plugin: Plugin, question: Callable[[ExternalAccess], T], findings: "Future[T]"
    ) -> None:
        try:
            findings.set_result(question(self._outside()))
        except (Away, LettersRefused, OffsetRefused) as error:
            findings.set_exception(error)
        except Exception as error:  # noqa: BLE001  # what others install may fail in any way
            kind = type(error).__name__  # its words may hold a secret
            LOGGER.warning("%s failed to look at what its config leads to: %s", plugin.name, kind)
            findings.set_exception(Unchecked(_failed(error)))
        finally:
            self._abandoned.release()


def _failed(error: Exception) -> str:
    return f"the connector class fails ({type(error).__name__})"
