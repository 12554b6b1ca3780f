"""The incremental cooperative assignor: in one round revoke, in the next give out.

What workers run stays with them, except what was deleted, what two of them run, and what one
has above its share. That is revoked first; when they have stopped it and rejoined, it is
nobody's, and is given out as if new. Work that is lost with its worker waits, see `lost`.

Connect's class keeps its memory in fields; here it goes in and comes out, so that the same
memory and the same round always lead to the same result. Workers, and candidates that came in
the same round, are gone through in the order of their ids, where Connect takes that of a hash
map; names are in the order of their code points, where Java compares UTF-16. See KIP-415, and
`IncrementalCooperativeAssignor` (`performTaskAssignment`) of Connect.
"""

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import NamedTuple

from ....events.model import NOTHING, Resource, Resources
from .loads import Loads, add_loads, find_surplus, hand_out, remove_loads, union
from .lost import DelayedRebalance, LeaderMemory, LostWork, RoundTime, handle_lost

INITIAL_MS = 1
MULTIPLIER = 40


@dataclass(frozen=True, slots=True)
class Round:
    """What one rebalance starts from: what is configured, and what each worker reports to run."""

    configured: Resources
    reported: Loads
    generation: int
    """The generation to be assigned."""
    completed: int
    """The last generation that the leader went through."""
    clock: RoundTime


@dataclass(frozen=True, slots=True)
class Increments:
    """What each worker takes over and gives up, and in how many ms all rejoin (0: never)."""

    assigned: Loads
    revoked: Loads
    delay_ms: int


class _Differences(NamedTuple):
    """What has changed since the last round."""

    deleted: Resources
    lost: Resources
    created: Resources


def assign(memory: LeaderMemory, given: Round) -> tuple[LeaderMemory, Increments]:
    """Return what to remember, and the increments of every worker that takes part."""
    found = _find(memory, given)
    revoked = _revoke(given.reported, found.deleted)
    kept = remove_loads(given.reported, revoked)
    handled = handle_lost(memory, found.lost, kept, given.clock)
    loads = add_loads(kept, handled.handed)
    memory, delay_ms, over = _level(memory, handled, given, loads)
    loads = remove_loads(loads, over)
    revoked = {worker: (*gone, *over.get(worker, ())) for worker, gone in revoked.items()}
    loads = add_loads(loads, hand_out([*sorted(found.created), *sorted(handled.as_new)], loads))
    remembered = replace(
        memory,
        assignment=(union(loads) - union(revoked)) | found.lost,
        revocation=union(revoked),
        generation=given.generation,
        members=frozenset(given.reported),
    )
    return remembered, Increments(remove_loads(loads, given.reported), revoked, delay_ms)


def _find(memory: LeaderMemory, given: Round) -> _Differences:
    """Return what was deleted, lost and created, as far as the memory holds for this round."""
    active = union(given.reported)
    previous = memory.assignment if memory.generation == given.completed else NOTHING
    if memory.revocation & active:
        # The last assignment did not arrive: what it took away is still there.
        previous = active
    return _Differences(
        deleted=previous - given.configured,
        lost=(previous & given.configured) - active,
        created=given.configured - previous - active,
    )


def _revoke(reported: Loads, deleted: Resources) -> dict[str, tuple[Resource, ...]]:
    """Return what no worker may keep: what was deleted, and every copy of what several run."""
    copies = Counter(resource for load in reported.values() for resource in frozenset(load))
    return {
        worker: tuple(each for each in load if each in deleted or copies[each] > 1)
        for worker, load in reported.items()
    }


def _level(
    memory: LeaderMemory, handled: LostWork, given: Round, loads: Loads
) -> tuple[LeaderMemory, int, Loads]:
    """Return what to remember, the delay, and what each worker has to give up for level loads.

    A round that revokes right after one that did is put off, longer every time; and while
    anything waits, nothing is taken at all.
    """
    memory = replace(memory, wait=handled.wait, revoked=handled.revoked)
    if handled.delay_ms:
        return replace(memory, revoked=False), handled.delay_ms, {}
    over = find_surplus(given.configured, loads)
    if not memory.revoked:
        return replace(memory, revoked=bool(over)), 0, over
    if not over:
        return replace(memory, revoked=False, streak=0), 0, {}
    now_ms, max_delay_ms = given.clock
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
