"""The trouble of a connector or a task, in a word."""

from typing import Final

from ...events.model import NOTE, RunState

RESTING: Final = frozenset({RunState.PAUSED.value, RunState.STOPPED.value})
"""States that a user has asked for: they are no trouble."""
REMARK: Final = "RUNNING with a remark"


def trouble_of(state: str, reason: str) -> str:
    """Return the trouble of a connector or a task; "" if it runs, or rests as it is to."""
    if state == RunState.RUNNING.value:
        return REMARK if reason and not reason.startswith(NOTE) else ""
    return "" if state in RESTING else state
