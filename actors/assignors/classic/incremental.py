"""The incremental cooperative assignor: in one round revoke, in the next give out.

What workers run stays with them, except what was deleted, what two of them run, and what one has
above its share. That is revoked first; when they have stopped it and rejoined, it is free, and is
assigned like new work.

Work is lost if it was assigned, is still configured, and no worker reports it any more. It waits
for the worker that lost it, up to the maximum delay. That worker comes back under another member
id; so, when the delay is over, lost work goes to the workers that joined with nothing meanwhile,
and to all workers only if there are none of these.

Connect's class keeps its memory in fields; here it goes in and comes out, so that the same
memory and the same round always lead to the same result. Only the leader of the moment remembers
anything: the next one begins with `LeaderMemory()`. Workers, and candidates that came in the same
round, are gone through in the order of their ids, where Connect takes that of a hash map; names
are in the order of their code points, where Java compares UTF-16. See KIP-415, and
`performTaskAssignment` and `handleLostAssignments` of Connect's `IncrementalCooperativeAssignor`.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ....events.model import NOTHING, Resource, Resources
from .loads import KINDS, Loads, add_loads, find_surplus, hand_out, of_kind, remove_loads, union

INITIAL_MS = 1
MULTIPLIER = 40


class RoundTime(NamedTuple):
    """The wall-clock time, and the delay for lost work (0: none); milliseconds."""

    now_ms: int
    max_delay_ms: int


@dataclass(frozen=True, slots=True)
class Round:
    """The input of one rebalance: the configured resources, and those that each worker reports."""

    configured: Resources
    reported: Loads
    generation: int
    """The generation to be assigned."""
    completed: int
    """The last generation that the leader went through."""
    clock: RoundTime


@dataclass(frozen=True, slots=True)
class Increments:
    """The resources that each worker starts and revokes, and when all rejoin (ms, 0: never)."""

    assigned: Loads
    revoked: Loads
    delay_ms: int
    """When all members rejoin, in milliseconds; 0: never."""


@dataclass(frozen=True, slots=True)
class DelayedRebalance:
    """The time of a delayed rebalance, and the candidate workers for lost work."""

    candidates: tuple[str, ...] = ()
    """Workers that came with nothing while lost work waited, in the order in which they came.

    Perhaps one of them is the worker that lost it.
    """
    due_ms: int | None = None
    """Wall clock; None: no rebalance is due."""


NO_DELAY = DelayedRebalance()


@dataclass(frozen=True, slots=True)
class LeaderMemory:
    """The leader's state between rebalances: the last assignment, and the delayed rebalance."""

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


class _Differences(NamedTuple):
    """The resources that were deleted, lost and created since the last round."""

    deleted: Resources
    lost: Resources
    created: Resources


def assign(memory: LeaderMemory, current: Round) -> tuple[LeaderMemory, Increments]:
    """Return the memory for the next round, and the increments of every worker."""
    changes = _find(memory, current)
    revoked = _revoke(current.reported, changes.deleted)
    kept = remove_loads(current.reported, revoked)
    handled = handle_lost(memory, changes.lost, kept, current.clock)
    loads = add_loads(kept, handled.handed)
    memory, delay_ms, over = _level(memory, handled, current, loads)
    loads = remove_loads(loads, over)
    revoked = {worker: (*gone, *over.get(worker, ())) for worker, gone in revoked.items()}
    loads = add_loads(loads, hand_out([*sorted(changes.created), *sorted(handled.as_new)], loads))
    remembered = replace(
        memory,
        assignment=(union(loads) - union(revoked)) | changes.lost,
        revocation=union(revoked),
        generation=current.generation,
        members=frozenset(current.reported),
    )
    return remembered, Increments(remove_loads(loads, current.reported), revoked, delay_ms)


def _find(memory: LeaderMemory, current: Round) -> _Differences:
    """Return what was deleted, lost and created, as far as the memory holds for this round."""
    active = union(current.reported)
    previous = memory.assignment if memory.generation == current.completed else NOTHING
    if memory.revocation & active:
        # The last assignment did not arrive: what it took away is still there.
        previous = active
    return _Differences(
        deleted=previous - current.configured,
        lost=(previous & current.configured) - active,
        created=current.configured - previous - active,
    )


def _revoke(reported: Loads, deleted: Resources) -> dict[str, tuple[Resource, ...]]:
    """Return the resources that no worker may keep: deleted ones, and all copies of duplicates."""
    copies = Counter(resource for load in reported.values() for resource in frozenset(load))
    return {
        worker: tuple(each for each in load if each in deleted or copies[each] > 1)
        for worker, load in reported.items()
    }


@dataclass(frozen=True, slots=True)
class LostWork:
    """The decision about lost work: it waits, is assigned like new work, or goes to candidates."""

    wait: DelayedRebalance
    revoked: bool
    """What to remember as `revoked` from now on."""
    delay_ms: int = 0
    """For how long it waits; 0: it does not."""
    as_new: Resources = NOTHING
    handed: Loads = field(default_factory=dict[str, Sequence[Resource]])


def handle_lost(memory: LeaderMemory, lost: Resources, loads: Loads, clock: RoundTime) -> LostWork:
    """Decide about lost work, given each worker's kept resources; the order of the tests counts.

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
    """Start or continue the delay; a worker without resources becomes a candidate."""
    wait, (now_ms, delay_ms) = memory.wait, clock
    if wait.due_ms is not None:
        delay_ms = min(wait.due_ms - now_ms, delay_ms)
    empty = (worker for worker in sorted(loads) if not loads[worker])
    candidates = tuple(dict.fromkeys((*wait.candidates, *empty)))
    return LostWork(DelayedRebalance(candidates, now_ms + delay_ms), memory.revoked, delay_ms)


def _deal(lost: Resources, takers: Sequence[str]) -> Loads:
    """Assign connectors to the takers in turns, then tasks in turns from the first taker on."""
    handed: dict[str, list[Resource]] = {taker: [] for taker in takers}
    for tasks in KINDS:
        for turn, resource in enumerate(of_kind(sorted(lost), tasks=tasks)):
            handed[takers[turn % len(takers)]].append(resource)
    return handed


def _level(
    memory: LeaderMemory, handled: LostWork, current: Round, loads: Loads
) -> tuple[LeaderMemory, int, Loads]:
    """Return the leader's memory, the delay, and what each worker must revoke for level loads.

    A round that revokes right after one that did is put off, longer every time; and while
    anything waits, nothing is taken at all.
    """
    memory = replace(memory, wait=handled.wait, revoked=handled.revoked)
    if handled.delay_ms:
        return replace(memory, revoked=False), handled.delay_ms, {}
    over = find_surplus(current.configured, loads)
    if not memory.revoked:
        return replace(memory, revoked=bool(over)), 0, over
    if not over:
        return replace(memory, revoked=False, streak=0), 0, {}
    now_ms, max_delay_ms = current.clock
    streak = memory.streak + 1
    delay_ms = backoff_ms(streak, max_delay_ms)
    if not delay_ms:
        return replace(memory, streak=streak), 0, over
    wait = DelayedRebalance(handled.wait.candidates, now_ms + delay_ms)
    return replace(memory, streak=streak, wait=wait), delay_ms, {}


def backoff_ms(attempt: int, max_delay_ms: int) -> int:
    """Return how many milliseconds to wait at this attempt, the first being 1.

    Connect's `ExponentialBackoff` with 1 ms to begin with, 40 as the multiplier and no jitter.
    The longest wait is computed through logarithms, as there: it may fall 1 ms short. The last
    bit of a logarithm is not the same in Java: of ten thousand longest delays there may be one
    whose wait is 1 ms another than there.
    """
    if max_delay_ms <= INITIAL_MS:
        return max_delay_ms
    longest = math.log(max_delay_ms / INITIAL_MS) / math.log(MULTIPLIER)
    return min(int(INITIAL_MS * math.pow(MULTIPLIER, min(attempt, longest))), max_delay_ms)
