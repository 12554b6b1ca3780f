"""Lost work, and what the incremental assignor remembers from one round to the next.

Lost is what was assigned and nobody has any more, though it is still configured. It waits for
the worker that lost it, up to the longest delay. That one comes back under another member id;
so, when the time has come, the lost work goes to those that came empty-handed meanwhile, and
only if there are none of these to everybody.

Only the leader of the moment remembers anything: the next one begins with `LeaderMemory()`. See
KIP-415, and the fields and `handleLostAssignments` of Connect's
`IncrementalCooperativeAssignor`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ....events.model import NOTHING, Resource, Resources
from .loads import KINDS, Loads, of_kind


@dataclass(frozen=True, slots=True)
class DelayedRebalance:
    """A rebalance that is due later, and the workers that lost work may go to then."""

    candidates: tuple[str, ...] = ()
    """Workers that came with nothing while lost work waited, in the order in which they came.

    Perhaps one of them is the worker that lost it.
    """
    due_ms: int | None = None
    """Wall clock; None: no rebalance is due."""


NO_DELAY = DelayedRebalance()


@dataclass(frozen=True, slots=True)
class LeaderMemory:
    """What was decided last, and what has been put off."""

    assignment: Resources = NOTHING
    """What was assigned, or waited, after the last round."""
    revocation: Resources = NOTHING
    """What was to be given up by that round."""
    generation: int = -1
    """The generation that round was for."""
    members: frozenset[str] = frozenset()
    """The workers that took part in it."""
    wait: DelayedRebalance = NO_DELAY
    revoked: bool = False
    """Whether that round, or one put off since, took work away to level the loads."""
    streak: int = 0
    """How many rounds in a row had to wait because one before them revoked."""


class RoundTime(NamedTuple):
    """The time (wall clock), and how long lost work may wait (0: it never does); milliseconds."""

    now_ms: int
    max_delay_ms: int


@dataclass(frozen=True, slots=True)
class LostWork:
    """What becomes of lost work: it waits, is handed out as if new, or goes to candidates."""

    wait: DelayedRebalance
    revoked: bool
    """What to remember as `revoked` from now on."""
    delay_ms: int = 0
    """For how long it waits; 0: it does not."""
    as_new: Resources = NOTHING
    handed: Loads = field(default_factory=dict[str, Sequence[Resource]])


def handle_lost(memory: LeaderMemory, lost: Resources, loads: Loads, clock: RoundTime) -> LostWork:
    """Return what becomes of lost work, given what the workers keep; the order of tests counts.

    A round put off for having revoked too often waits here as well, with nothing lost.
    """
    wait = memory.wait
    if not lost and not memory.revoked:
        return LostWork(NO_DELAY, revoked=False)
    nobody_left = wait.due_ms is None and memory.members <= loads.keys()
    if nobody_left or clock.max_delay_ms == 0:
        return LostWork(wait, memory.revoked, as_new=lost)
    if wait.due_ms is not None and clock.now_ms >= wait.due_ms:
        present = [worker for worker in wait.candidates if worker in loads]
        if present:
            return LostWork(NO_DELAY, revoked=False, handed=_deal(lost, present))
        return LostWork(NO_DELAY, revoked=False, as_new=lost)
    return _wait(memory, loads, clock)


def _wait(memory: LeaderMemory, loads: Loads, clock: RoundTime) -> LostWork:
    """Begin to wait, or go on; a worker that has nothing becomes a candidate."""
    wait, (now_ms, delay_ms) = memory.wait, clock
    if wait.due_ms is not None:
        delay_ms = min(wait.due_ms - now_ms, delay_ms)
    empty = (worker for worker in sorted(loads) if not loads[worker])
    candidates = tuple(dict.fromkeys((*wait.candidates, *empty)))
    return LostWork(DelayedRebalance(candidates, now_ms + delay_ms), memory.revoked, delay_ms)


def _deal(lost: Resources, takers: Sequence[str]) -> Loads:
    """Deal connectors to one taker after the other, and tasks from the first one on again."""
    handed: dict[str, list[Resource]] = {taker: [] for taker in takers}
    for tasks in KINDS:
        for turn, resource in enumerate(of_kind(sorted(lost), tasks=tasks)):
            handed[takers[turn % len(takers)]].append(resource)
    return handed
