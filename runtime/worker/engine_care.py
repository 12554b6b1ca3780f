"""Looking after a worker's engine: starting it again, and knowing when it can take work."""

import logging

from ..spark.engine import Engine, EngineState

LOGGER = logging.getLogger(__name__)
BACKOFF_MS = 5_000
"""How long an engine that went down again rests before it is started once more; it doubles."""
BACKOFF_MAX_MS = 120_000


class EngineCare:
    """One engine; `look` is to be called about once a second, on the thread that opened it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.is_warm = False
        """Once warm counts as warm: what runs here waits for a new engine rather than moves."""
        self._known_pid: int | None = None
        self._open_at_ms = 0
        self._backoff_ms = BACKOFF_MS

    def look(self, now_ms: int) -> None:
        """Start the engine again if it went down and has rested."""
        if self.engine.state is EngineState.WARM:
            self.is_warm = True
            self._backoff_ms = BACKOFF_MS
        elif self.engine.state is EngineState.DOWN and now_ms >= self._open_at_ms:
            LOGGER.warning("the engine is down (%s): starting it again", self.engine.detail)
            self._open_at_ms = now_ms + self._backoff_ms
            self._backoff_ms = min(2 * self._backoff_ms, BACKOFF_MAX_MS)
            self.engine.open()

    def new_pid(self) -> int | None:
        """Return the process id of the engine's driver, once for each driver."""
        pid = self.engine.pid
        is_new = pid is not None and pid != self._known_pid
        self._known_pid = pid
        return pid if is_new else None
