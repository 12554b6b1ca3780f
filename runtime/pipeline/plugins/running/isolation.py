"""Which connectors of a worker have a plugin host of their own, after the deaths of hosts.

All connectors of a worker share one host, so that each costs little. A plugin can end that host,
and with it what others do. Whose fault a death is may be known: the code that called System.exit,
or that did not end, is a connector's; and in a host of its own nobody else is. Such a connector
gets a host of its own once it has ended its host twice within ten minutes.

Other deaths tell nothing: a full heap, a crash, a kill from outside. After two of them within ten
minutes each connector that was there gets a host of its own. The next of these hosts that dies
names the culprit, and the others share a host again from their next start on. So do all of them
after ten minutes without a death.
"""

import time
from collections.abc import Callable, Set
from typing import Final

SHARED: Final = ""
"""The key of the host that connectors share; others have the name of their connector."""
WINDOW_S: Final = 600.0
"""How long a death counts."""
MOST_DEATHS: Final = 2
"""How many of them a connector, or the shared host, may have within that time."""


class Isolation:
    """The hosts that connectors belong in; not thread-safe."""

    def __init__(
        self, *, always: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Isolate those that have to be, or `always` each of them."""
        self._always = always
        self._clock = clock
        self._deaths: dict[str, list[float]] = {}
        """The times of the recent deaths by connector, and under `SHARED` those of nobody's."""
        self._suspects: dict[str, float] = {}
        """Connectors that may be the culprit, and until when each is alone."""

    def host_of(self, connector: str) -> str:
        """Return the key of the host in which a connector is to start."""
        is_suspect = self._suspects.get(connector, 0.0) > self._clock()
        is_alone = self._always or is_suspect or self._count(connector) >= MOST_DEATHS
        return connector if is_alone else SHARED

    def add_death(self, host: str, connectors: Set[str], culprit: str | None) -> None:
        """Count the death of a host in which these connectors were; None: it is not known whose."""
        if host != SHARED:
            culprit = host
        elif culprit is None and len(connectors) == 1:
            (culprit,) = connectors
        now = self._clock()
        self._deaths.setdefault(culprit or SHARED, []).append(now)
        if culprit is None:
            if self._count(SHARED) >= MOST_DEATHS:
                self._suspects.update(dict.fromkeys(connectors, now + WINDOW_S))
        elif self._suspects.pop(culprit, 0.0) > now:
            self._deaths[culprit] += [now] * (MOST_DEATHS - 1)
            self._suspects.clear()
            self._deaths.pop(SHARED, None)

    def _count(self, whose: str) -> int:
        now = self._clock()
        recent = [each for each in self._deaths.pop(whose, ()) if now - each < WINDOW_S]
        if recent:
            self._deaths[whose] = recent
        return len(recent)
