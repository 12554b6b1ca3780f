"""The states of a member and the ways between them, as one table (PROTOCOL §9).

The states are those of the consumer's membership machine, without STALE: a worker has no
poll loop that could stall.
"""

from collections import deque
from enum import StrEnum


class State(StrEnum):
    """Where a member stands with its group."""

    UNSUBSCRIBED = "unsubscribed"
    JOINING = "joining"
    RECONCILING = "reconciling"
    ACKNOWLEDGING = "acknowledging"
    STABLE = "stable"
    FENCED = "fenced"
    PREPARE_LEAVING = "prepare-leaving"
    LEAVING = "leaving"
    FATAL = "fatal"


WAYS: dict[State, frozenset[State]] = {
    State.UNSUBSCRIBED: frozenset({State.JOINING}),
    State.JOINING: frozenset(
        {State.RECONCILING, State.STABLE, State.FENCED, State.PREPARE_LEAVING, State.FATAL}
    ),
    State.RECONCILING: frozenset(
        {State.ACKNOWLEDGING, State.FENCED, State.PREPARE_LEAVING, State.FATAL}
    ),
    State.ACKNOWLEDGING: frozenset(
        {State.RECONCILING, State.STABLE, State.FENCED, State.PREPARE_LEAVING, State.FATAL}
    ),
    State.STABLE: frozenset({State.RECONCILING, State.FENCED, State.PREPARE_LEAVING, State.FATAL}),
    State.FENCED: frozenset({State.JOINING, State.UNSUBSCRIBED}),
    State.PREPARE_LEAVING: frozenset({State.LEAVING, State.FENCED, State.FATAL}),
    State.LEAVING: frozenset({State.UNSUBSCRIBED}),
    State.FATAL: frozenset(),
}
"""From each state, where a member may go; staying where it is is always legal."""

SPEAKING = frozenset(
    {
        State.JOINING,
        State.RECONCILING,
        State.ACKNOWLEDGING,
        State.STABLE,
        State.PREPARE_LEAVING,
        State.LEAVING,
    }
)
"""The states in which a member sends heartbeats."""

STORY_LENGTH = 20


class IllegalTransitionError(Exception):
    """The machine was driven where no way leads: a bug, told with the story behind it."""


class Machine:
    """The state, and the last steps that led to it."""

    def __init__(self) -> None:
        self.state = State.UNSUBSCRIBED
        self._story: deque[str] = deque(maxlen=STORY_LENGTH)

    def go(self, state: State, why: str) -> None:
        """Go to a state; raises `IllegalTransitionError` where no way leads there."""
        if state is self.state:
            return
        self._story.append(f"{self.state.value} -> {state.value}: {why}")
        if state not in WAYS[self.state]:
            raise IllegalTransitionError("\n".join(self._story))
        self.state = state
