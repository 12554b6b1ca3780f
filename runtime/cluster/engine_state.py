"""The state of an engine, as the process that runs it tells others."""

import logging
import os
from functools import cache
from typing import Final

from ...events.log.process import ProcessId, process_of
from ..pipeline.engines.engine import Engine, EngineState
from .node_files import DOWN, OFF, STARTING, UP, EngineFile

LOGGER = logging.getLogger(__name__)
_WORDS: Final = {
    EngineState.COLD: OFF,
    EngineState.WARMING: STARTING,
    EngineState.WARM: UP,
}


def state_of(engine: Engine, restarts: int) -> EngineFile:
    """Return the state of an engine of this process; `restarts` counts restarts so far."""
    is_warm = engine.state is EngineState.WARM
    detail = "" if is_warm else engine.detail
    state = _WORDS.get(engine.state, DOWN)
    return EngineFile(_me(), engine.pid, state, restarts, detail, engine.heap)


def log_change(last: EngineFile | None, told: EngineFile) -> None:
    """Log that an engine came up; its end is logged where it is started again."""
    if told.state == UP and (last is None or last.state != UP):
        pid = "" if told.pid is None else f", pid {told.pid}"
        LOGGER.info("the engine is up%s, restarts %d", pid, told.restarts)


@cache
def _me() -> ProcessId:
    """Return the identity of this process, cached since its lookup is slow."""
    return process_of(os.getpid())
