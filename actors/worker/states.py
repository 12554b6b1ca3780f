"""The states of a member and the transitions between them, as one table (PROTOCOL §9).

The states are those of Kafka's consumer (`MemberState`), without STALE: a worker has no poll loop
that could stall. Transitions depend on two sets: what the member owns, and its target.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from enum import StrEnum

from ...events.model import NOTHING, Resource, Resources


class State(StrEnum):
    """The state of a member."""

    UNSUBSCRIBED = "unsubscribed"
    JOINING = "joining"
    RECONCILING = "reconciling"
    ACKNOWLEDGING = "acknowledging"
    STABLE = "stable"
    FENCED = "fenced"
    PREPARE_LEAVING = "prepare-leaving"
    LEAVING = "leaving"
    FATAL = "fatal"


TRANSITIONS: dict[State, frozenset[State]] = {
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

CLASSIC_TRANSITIONS: dict[State, frozenset[State]] = {
    State.UNSUBSCRIBED: frozenset({State.JOINING}),
    State.JOINING: frozenset({State.RECONCILING, State.FENCED, State.PREPARE_LEAVING, State.FATAL}),
    State.RECONCILING: frozenset(
        {State.JOINING, State.STABLE, State.FENCED, State.PREPARE_LEAVING, State.FATAL}
    ),
    State.STABLE: frozenset({State.RECONCILING, State.FENCED, State.PREPARE_LEAVING, State.FATAL}),
    State.FENCED: frozenset({State.JOINING, State.UNSUBSCRIBED}),
    State.PREPARE_LEAVING: frozenset({State.LEAVING, State.FENCED, State.FATAL}),
    State.LEAVING: frozenset({State.UNSUBSCRIBED}),
    State.FATAL: frozenset(),
}
"""The same for a member of the classic protocol: it joins each generation anew.

JOINING lasts until its SyncGroup is answered, RECONCILING until nothing has to stop any more.
"""

SENDING = frozenset(
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
    """An illegal transition, which is a bug; the text has the last transitions."""


class Machine:
    """The state, and the last transitions."""

    def __init__(self, transitions: Mapping[State, frozenset[State]] = TRANSITIONS) -> None:
        self.state = State.UNSUBSCRIBED
        self._transitions = transitions
        self._story: deque[str] = deque(maxlen=STORY_LENGTH)
        """The last transitions, for error messages."""

    def go(self, state: State, why: str) -> None:
        """Change to a state; raises `IllegalTransitionError` if the table does not allow it."""
        if state is self.state:
            return
        self._story.append(f"{self.state.value} -> {state.value}: {why}")
        if state not in self._transitions[self.state]:
            raise IllegalTransitionError("\n".join(self._story))
        self.state = state


class Work:
    """The owned resources of one member, and its target; it revokes before it starts others."""

    def __init__(self) -> None:
        self.owned: Resources = NOTHING
        """What runs here: from before a start begins until after the stop has completed."""
        self.target: Resources = NOTHING
        """The latest assignment."""
        self.log_offset = 0
        """The log's end of the latest answer."""

    @property
    def must_release(self) -> bool:
        """Return whether it owns anything outside of its target."""
        return not self.owned <= self.target

    def is_given_up(self, reported: Iterable[Resource] | None) -> bool:
        """Return whether a revocation is confirmed: an answered request reported it."""
        is_reported = reported is not None and self.target.issuperset(reported)
        return is_reported and not self.must_release

    def aim(self, target: Resources) -> Resources:
        """Set a new target; return the resources to stop."""
        newly = (self.owned & self.target) - target
        self.target = target
        return newly

    def grant(self) -> Resources:
        """Own the whole target; return the resources to start."""
        grant = self.target - self.owned
        self.owned |= grant
        return grant

    def release(self, resources: Iterable[object]) -> bool:
        """Remove stopped resources; return whether any of them was owned."""
        gone = self.owned.intersection(resources)
        self.owned -= gone
        return bool(gone)
