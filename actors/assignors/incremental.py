"""Incremental resolution of imbalance: what the deferred assignor wants, a few moves at a time.

Only so much of what runs may move in a round. The rest stays where it is until the next one,
which the coordinator has begin after an interval, and the next, until all is as level as the
deferred assignor has it at once, and with no more moves. The first to move are those from the
fullest worker to the emptiest, of one kind, since they do most for the balance. While a member
is away whose return would leave moves to be made, rounds go on until it is back or gone.

The budget is for moves that could as well be made later. Work that is lost, new or unplaced,
and work that has to leave (its worker is drained, not warm, or dying, or does not meet what it
demands) goes at once, however much it is: held back, it would stand still or break an order.
How the budget is spent over several rounds: see `pacing`. See Design III of "Incremental
Cooperative Rebalancing: Support and Policies".
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from ...events.model import NOTHING, Resource, Resources
from ..messages.computing import SHORTEST_WAIT_MS, Assignment, MemberView, Snapshot
from . import deferred
from .demands import demand_of
from .eligibility import eligible
from .pacing import Spent, spent

NAME = "incremental"
VERSION = 0

MOVES_PER_ROUND: Final = 10
MOVES_INTERVAL_MS: Final = 30_000


class Move(NamedTuple):
    """What runs at one member is to run at another."""

    resource: Resource
    giver: str
    taker: str


Loads = Counter[tuple[str, bool]]
"""How many connectors (False) and tasks (True) each member has, by its id."""


def assign(
    snapshot: Snapshot, moves: int = MOVES_PER_ROUND, interval_ms: int = MOVES_INTERVAL_MS
) -> Assignment:
    """Return where everything is to go for now, and when the rest of the moves is due.

    No interval has more than `moves` moves of what could stay; see `deferred` and `pacing`.
    """
    goal = deferred.assign(snapshot)
    before = spent(snapshot.assignor_metadata, snapshot.now_ms, interval_ms)
    wanted = [*_optional_moves(snapshot, goal)]
    made = _steepest(wanted, _held_back(goal, wanted), moves - before.moves)
    after = Spent(before.moves + len(made), snapshot.now_ms) if made else before
    left = {*wanted}.difference(made)
    result = replace(
        goal, members=_undone(goal.members, left), version=VERSION, metadata=after.written()
    )
    again_at_ms = 0
    if left:
        again_at_ms = max(after.at_ms + interval_ms, snapshot.now_ms + SHORTEST_WAIT_MS)
    elif _is_for_now(snapshot, result):
        again_at_ms = snapshot.now_ms + max(interval_ms, SHORTEST_WAIT_MS)
    return replace(result, again_at_ms=again_at_ms)


def _is_for_now(snapshot: Snapshot, made: Assignment) -> bool:
    """Tell whether moves would be left if those who are away were back.

    Nothing else asks for them: a return changes no target. Who is away returns or is removed
    in the end, so it is not asked for ever.
    """
    if all(member.member_epoch >= 0 for member in snapshot.members.values()):
        return False
    members: dict[str, MemberView] = {
        member_id: replace(
            member,
            member_epoch=max(0, member.member_epoch),
            target=made.members.get(member_id, NOTHING),
        )
        for member_id, member in snapshot.members.items()
    }
    back = replace(snapshot, members=members)
    return any(_optional_moves(back, deferred.assign(back)))


def _optional_moves(snapshot: Snapshot, goal: Assignment) -> Iterable[Move]:
    """Yield what the goal takes from members that could go on running it."""
    arrivals = {
        resource: taker
        for taker, share in goal.members.items()
        for resource in share - snapshot.members[taker].target
    }
    for resource, giver in _givers(snapshot, arrivals).items():
        may_stay = demand_of(snapshot, resource).is_met(snapshot.members[giver])
        if may_stay and giver != arrivals[resource]:
            yield Move(resource, giver, arrivals[resource])


def _givers(snapshot: Snapshot, arrivals: Mapping[Resource, str]) -> Mapping[Resource, str]:
    """Return which of those that take work has what arrives elsewhere.

    That is whose target it is, or else who runs it, as it counts for the goal.
    """
    takers = eligible(snapshot.members).takers
    found: dict[Resource, str] = {}
    for taker in reversed(takers):  # backwards, so that the lowest member id is what stays
        found.update(dict.fromkeys(arrivals.keys() & taker.owned, taker.member_id))
    for taker in takers:
        found.update(dict.fromkeys(arrivals.keys() & taker.target, taker.member_id))
    return found


def _held_back(goal: Assignment, moves: Iterable[Move]) -> Loads:
    """Return what each member has of each kind if none of these moves is made."""
    loads = Loads()
    for member_id, share in goal.members.items():
        tasks = sum(resource.is_task for resource in share)
        loads[member_id, True], loads[member_id, False] = tasks, len(share) - tasks
    for resource, giver, taker in moves:
        loads[giver, resource.is_task] += 1
        loads[taker, resource.is_task] -= 1
    return loads


def _steepest(moves: Iterable[Move], loads: Loads, room: int) -> Sequence[Move]:
    """Return the moves to begin with, no more than there is room for; `loads` follows them.

    A move waits in the heap under the difference that it had when it was last looked at.
    """

    def difference(move: Move) -> int:
        is_task = move.resource.is_task
        return loads[move.giver, is_task] - loads[move.taker, is_task]

    queue = [(-difference(move), move) for move in moves]
    heapq.heapify(queue)
    made: list[Move] = []
    while queue and len(made) < room:
        known, move = queue[0]
        if -known > (now := difference(move)):
            heapq.heapreplace(queue, (-now, move))
            continue
        heapq.heappop(queue)
        made.append(move)
        loads[move.giver, move.resource.is_task] -= 1
        loads[move.taker, move.resource.is_task] += 1
    return made


def _undone(members: Mapping[str, Resources], moves: Iterable[Move]) -> Mapping[str, Resources]:
    """Return the members' shares without these moves."""
    back: dict[str, set[Resource]] = {}
    gone: dict[str, set[Resource]] = {}
    for resource, giver, taker in moves:
        back.setdefault(giver, set()).add(resource)
        gone.setdefault(taker, set()).add(resource)
    return {
        member_id: (share - gone.get(member_id, NOTHING)) | back.get(member_id, NOTHING)
        for member_id, share in members.items()
    }
