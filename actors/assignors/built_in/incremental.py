"""Incremental resolution of imbalance: what the deferred assignor wants, a few moves at a time.

Only so much of what runs may move in a round. The rest stays where it is until the next one,
which the coordinator has begin after an interval, and the next, until all is as level as the
deferred assignor has it at once, and with no more moves. The first to move are those from the
fullest worker to the emptiest, of one kind, since they do most for the balance. While a member
is away whose return would leave moves to be made, rounds go on until it is back or gone.

The budget is for moves that could as well be made later. Work that is lost, new or unplaced,
and work that has to leave (its worker is drained, not warm, or dying, or does not meet what it
demands) goes at once, however much it is: held back, it would stand still or break an order.

No interval has more moves than the budget, whatever else calls for a target in between. What
was spent goes with the target as the assignor's metadata, and comes back with the next snapshot:
`{"moves":7,"at_ms":1700000000000}`. It counts until a whole interval has passed since the last
move. So a worker that comes while moves are still to be made finds the rest of the budget, not a
new one. Each round puts off the next only by moving something: all that is left is moved in the
end. See Design III of "Incremental Cooperative Rebalancing: Support and Policies".
"""

import heapq
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, cast

from ....events.model import NOTHING, Resource, Resources
from ...messages.computing import SHORTEST_WAIT_MS, Assignment, MemberView, Snapshot
from ..demands import demand_of
from ..eligibility import eligible
from . import deferred

NAME = "incremental"

MOVES_PER_ROUND: Final = 10
MOVES_INTERVAL_MS: Final = 30_000


@dataclass(frozen=True, slots=True)
class SpentMoves:
    """So many moves were made, the last of them then (wall clock, in milliseconds)."""

    moves: int = 0
    at_ms: int = 0

    def written(self) -> bytes:
        """Return it as metadata; nothing where nothing was spent."""
        document = {"moves": self.moves, "at_ms": self.at_ms}
        return json.dumps(document, separators=(",", ":")).encode() if self.moves else b""


NOTHING_SPENT = SpentMoves()


class OptionalMove(NamedTuple):
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

    No interval has more than `moves` moves of what could stay; see `deferred`.
    """
    goal = deferred.assign(snapshot)
    before = read_spent(snapshot.assignor_metadata, snapshot.now_ms, interval_ms)
    wanted = [*_optional_moves(snapshot, goal)]
    made = _steepest(wanted, _held_back(goal, wanted), moves - before.moves)
    after = SpentMoves(before.moves + len(made), snapshot.now_ms) if made else before
    left = {*wanted}.difference(made)
    result = replace(goal, members=_undone(goal.members, left), metadata=after.written())
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


def _optional_moves(snapshot: Snapshot, goal: Assignment) -> Iterable[OptionalMove]:
    """Yield what the goal takes from members that could go on running it."""
    arrivals = {
        resource: taker
        for taker, share in goal.members.items()
        for resource in share - snapshot.members[taker].target
    }
    for resource, giver in _givers(snapshot, arrivals).items():
        may_stay = demand_of(snapshot, resource).is_met(snapshot.members[giver])
        if may_stay and giver != arrivals[resource]:
            yield OptionalMove(resource, giver, arrivals[resource])


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


def _held_back(goal: Assignment, moves: Iterable[OptionalMove]) -> Loads:
    """Return what each member has of each kind if none of these moves is made."""
    loads = Loads()
    for member_id, share in goal.members.items():
        tasks = sum(resource.is_task for resource in share)
        loads[member_id, True], loads[member_id, False] = tasks, len(share) - tasks
    for resource, giver, taker in moves:
        loads[giver, resource.is_task] += 1
        loads[taker, resource.is_task] -= 1
    return loads


def _steepest(moves: Iterable[OptionalMove], loads: Loads, room: int) -> Sequence[OptionalMove]:
    """Return the moves to begin with, no more than there is room for; `loads` follows them.

    A move waits in the heap under the difference that it had when it was last looked at.
    """

    def difference(move: OptionalMove) -> int:
        is_task = move.resource.is_task
        return loads[move.giver, is_task] - loads[move.taker, is_task]

    queue = [(-difference(move), move) for move in moves]
    heapq.heapify(queue)
    made: list[OptionalMove] = []
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


def _undone(
    members: Mapping[str, Resources], moves: Iterable[OptionalMove]
) -> Mapping[str, Resources]:
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


def read_spent(metadata: bytes, now_ms: int, interval_ms: int) -> SpentMoves:
    """Return what of the budget is spent now; metadata that nobody wrote here says nothing.

    A clock that was set back a little makes it no older than now; set back by an interval or
    more, it makes it a thing of the past, so that nothing waits for that time to come again.
    """
    try:
        document: object = json.loads(metadata) if metadata else None
    except (ValueError, RecursionError):  # not JSON, not UTF-8, or nested beyond reason
        return NOTHING_SPENT
    if not isinstance(document, dict):
        return NOTHING_SPENT
    said = cast("dict[str, object]", document)
    moves, at_ms = said.get("moves"), said.get("at_ms")
    if type(moves) is not int or type(at_ms) is not int or moves <= 0:
        return NOTHING_SPENT
    is_near = abs(now_ms - at_ms) < interval_ms
    return SpentMoves(moves, min(at_ms, now_ms)) if is_near else NOTHING_SPENT
