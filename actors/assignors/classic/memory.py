"""What the incremental assignor remembers from one round to the next.

Only the leader of the moment remembers it: whoever leads next begins with `Memory()`. See the
fields of Connect's `IncrementalCooperativeAssignor`.
"""

from dataclasses import dataclass

from ....events.model import NOTHING, Resources


@dataclass(frozen=True, slots=True)
class DelayedRebalance:
    """A rebalance that is due later: when (wall clock, in milliseconds), and for whom.

    The candidates came empty-handed while lost work waited, in the order of their coming:
    perhaps one of them is who lost it. None of them means that nothing is due.
    """

    candidates: tuple[str, ...] = ()
    due_ms: int | None = None


NO_DELAY = DelayedRebalance()


@dataclass(frozen=True, slots=True)
class LeaderMemory:
    """What was decided last, and what has been put off.

    `assignment` is what was in hands or waited after the last round, `revocation` what was to
    be given up by it, `generation` the one it was for, and `members` who was there. `revoked`
    tells whether that round, or one put off since, took work away to level the loads, and
    `streak` counts how often another had to wait for that reason.
    """

    assignment: Resources = NOTHING
    revocation: Resources = NOTHING
    generation: int = -1
    members: frozenset[str] = frozenset()
    wait: DelayedRebalance = NO_DELAY
    revoked: bool = False
    streak: int = 0
