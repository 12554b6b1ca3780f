"""Holding a config against the node that it is for, with a deadline.

What is looked at may be a mount that hangs or a query that takes for ever: a thread is left
behind with it then, and the request goes on with a warning.
"""

import logging
from collections.abc import Mapping
from queue import Empty, SimpleQueue
from threading import Semaphore, Thread
from typing import Final

from ....pipeline.connectors.builtin.plugins import Plugin
from ....pipeline.connectors.context import Findings, Outside

LOGGER = logging.getLogger(__name__)
LONGEST_SECONDS: Final = 20.0
"""How long a request waits for what is found."""
MOST_AT_ONCE: Final = 8
"""How many configs are looked at at once, those that were left behind included."""


class OutsideChecks:
    """Asks connector classes what they find; at most so many at once, each within so long."""

    def __init__(self, outside: Outside, seconds: float = LONGEST_SECONDS) -> None:
        self._outside = outside
        self._seconds = seconds
        self._free = Semaphore(MOST_AT_ONCE)
        """How many more configs may be looked at now."""

    def find(self, plugin: Plugin, config: Mapping[str, str]) -> Findings:
        """Return what keeps a sound config from working; never raises, and never waits longer."""
        if not self._free.acquire(timeout=self._seconds):
            return _unchecked("others are being looked at")
        found: SimpleQueue[Findings] = SimpleQueue()
        Thread(target=self._look, args=(plugin, config, found), daemon=True).start()
        try:
            return found.get(timeout=self._seconds)
        except Empty:
            return _unchecked(f"that takes longer than {self._seconds:.0f} s")

    def _look(
        self, plugin: Plugin, config: Mapping[str, str], found: "SimpleQueue[Findings]"
    ) -> None:
        try:
            found.put(plugin.made_by.check_outside(config, self._outside))
        except Exception as error:  # noqa: BLE001  # what others install may fail in any way
            kind = type(error).__name__  # its words may hold a secret
            LOGGER.warning("%s failed to look at what its config leads to: %s", plugin.name, kind)
            found.put(_unchecked(f"the connector class fails ({kind})"))
        finally:
            self._free.release()


def _unchecked(why: str) -> Findings:
    return Findings(warnings=(f"what the config leads to was not looked at: {why}",))
