"""Incremental resolution of imbalance: what the deferred assignor wants, a few moves at a time.

Only so much of what runs may move in a round. The rest stays where it is until the next one,
which the coordinator has begin after an interval, and the next, until all is as level as the
deferred assignor has it at once, and with no more moves. The first to move are those from the
fullest worker to the emptiest, of one kind, since they do most for the balance. While a member
is away whose return would leave moves to be made, rounds go on until it is back or gone.

The budget is for moves that could as well be made later. Work that is lost, new or unplaced,
and work that has to leave (its worker is not warm, or dying, or does not meet what it demands)
goes at once, however much it is: held back, it would stand still. So does the work of a drained
worker, since that is an order, unless `assignor.moves.drain=paced`: then it takes the budget first.

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
from ....events.placement import is_warm
from ...messages.computing import SHORTEST_WAIT_MS, Assignment, MemberView, Snapshot
from ..demands import demand_of
from ..eligibility import eligible
from . import counting

NAME = "incremental"

MOVES_PER_ROUND: Final = 10
MOVES_INTERVAL_MS: Final = 30_000
"""The defaults of `assignor.moves.per.round` and `assignor.moves.interval.ms`."""

AT_ONCE: Final = "at-once"
PACED: Final = "paced"
DRAINS: Final = (AT_ONCE, PACED)
"""The values of `assignor.moves.drain`."""


@dataclass(frozen=True, slots=True)
class SpentMoves:
    """The part of the move budget that is spent: moves, and the time of the last one."""

    moves: int = 0
    """The number of moves so far."""
    at_ms: int = 0
    """Wall clock."""

    def to_metadata(self) -> bytes:
        """Return the assignor's metadata; empty where no move was made."""
        document = {"moves": self.moves, "at_ms": self.at_ms}
        return json.dumps(document, separators=(",", ":")).encode() if self.moves else b""


NOTHING_SPENT = SpentMoves()


class OptionalMove(NamedTuple):
    """A move from a giver that could as well keep the resource."""

    resource: Resource
    giver: str
    taker: str
    is_ordered: bool = False
    """Whether the giver is drained: such moves come before all others."""


Loads = Counter[tuple[str, bool]]
"""How many connectors (False) and tasks (True) each member has, by its id."""


def assign(
    snapshot: Snapshot,
    moves: int = MOVES_PER_ROUND,
    interval_ms: int = MOVES_INTERVAL_MS,
    *,
    paces_drains: bool = False,
) -> Assignment:
    """Return the assignment for now, and the time at which the remaining moves are due.

    No interval has more than `moves` moves of what could stay; see `deferred`. With `paces_drains`
    the work of drained members could.
    """
    goal = counting.assign_deferred(snapshot)
    before = read_spent(snapshot.assignor_metadata, snapshot.now_ms, interval_ms)
    wanted = [*_optional_moves(snapshot, goal, paces_drains=paces_drains)]
    made = _pick_steepest(wanted, _count_without(goal, wanted), moves - before.moves)
    after = SpentMoves(before.moves + len(made), snapshot.now_ms) if made else before
    left = {*wanted}.difference(made)
    result = replace(goal, members=_undo(goal.members, left), metadata=after.to_metadata())
    again_at_ms = 0
    if left:
        again_at_ms = max(after.at_ms + interval_ms, snapshot.now_ms + SHORTEST_WAIT_MS)
    elif _is_for_now(snapshot, result):
        again_at_ms = snapshot.now_ms + max(interval_ms, SHORTEST_WAIT_MS)
    return replace(result, again_at_ms=again_at_ms)


def _is_for_now(snapshot: Snapshot, assignment: Assignment) -> bool:
    """Tell whether moves would be left if the members that are away were back.

    Nothing else asks for these moves: a return changes no target. It does not ask for ever, since a
    member that is away returns or is removed in the end.
    """
    if all(member.member_epoch >= 0 for member in snapshot.members.values()):
        return False
    members: dict[str, MemberView] = {
        member_id: replace(
            member,
            member_epoch=max(0, member.member_epoch),
            target=assignment.members.get(member_id, NOTHING),
        )
        for member_id, member in snapshot.members.items()
    }
    back = replace(snapshot, members=members)
    return any(_optional_moves(back, counting.assign_deferred(back)))


def _optional_moves(
    snapshot: Snapshot, goal: Assignment, *, paces_drains: bool = False
) -> Iterable[OptionalMove]:
    """Yield the moves towards the goal whose resource could stay on its present worker."""
    arrivals = {
        resource: taker
        for taker, share in goal.members.items()
        for resource in share - snapshot.members[taker].target
    }
    givers = [*eligible(snapshot.members).takers]
    if paces_drains:
        givers += [each for each in snapshot.members.values() if _is_drained_and_runs(each)]
    for resource, giver in _find_givers(givers, arrivals).items():
        member, taker = snapshot.members[giver], arrivals[resource]
        if giver != taker and demand_of(snapshot, resource).is_met(member):
            yield OptionalMove(resource, giver, taker, member.draining)


def _is_drained_and_runs(member: MemberView) -> bool:
    """Return whether a drained member still runs its work, until that is moved."""
    return member.draining and member.member_epoch >= 0 and is_warm(member.metadata)


def _find_givers(
    givers: Sequence[MemberView], arrivals: Mapping[Resource, str]
) -> Mapping[Resource, str]:
    """Return the giver that has each resource that arrives elsewhere.

    That is the one in whose target it is, or else the one that runs it, as `deferred` counts.
    """
    found: dict[Resource, str] = {}
    for giver in reversed(givers):  # backwards: the lowest member id wins
        found.update(dict.fromkeys(arrivals.keys() & giver.owned, giver.member_id))
    for giver in givers:
        found.update(dict.fromkeys(arrivals.keys() & giver.target, giver.member_id))
    return found


def _count_without(goal: Assignment, moves: Iterable[OptionalMove]) -> Loads:
    """Return each member's number of resources of each kind if none of these moves is made."""
    loads = Loads()
    for member_id, share in goal.members.items():
        tasks = sum(resource.is_task for resource in share)
        loads[member_id, True], loads[member_id, False] = tasks, len(share) - tasks
    for resource, giver, taker, _ in moves:
        loads[giver, resource.is_task] += 1
        loads[taker, resource.is_task] -= 1
    return loads


def _pick_steepest(
    moves: Iterable[OptionalMove], loads: Loads, room: int
) -> Sequence[OptionalMove]:
    """Return at most `room` moves, the ordered ones and the steepest first; it changes `loads`.

    A move waits in a heap by the difference of loads that it had when it was last looked at.
    """
    all_loads = loads.total()

    def difference(move: OptionalMove) -> int:
        is_task = move.resource.is_task
        ordered = 2 * all_loads if move.is_ordered else 0  # more than any other has
        return ordered + loads[move.giver, is_task] - loads[move.taker, is_task]

    queue = [(-difference(move), move) for move in moves]
    heapq.heapify(queue)
    picked: list[OptionalMove] = []
    while queue and len(picked) < room:
        queued, move = queue[0]
        if -queued > (now := difference(move)):
            heapq.heapreplace(queue, (-now, move))
            continue
        heapq.heappop(queue)
        picked.append(move)
        loads[move.giver, move.resource.is_task] -= 1
        loads[move.taker, move.resource.is_task] += 1
    return picked


def _undo(
    members: Mapping[str, Resources], moves: Iterable[OptionalMove]
) -> Mapping[str, Resources]:
    """Return the members' shares if these moves are not made."""
    back: dict[str, set[Resource]] = {}
    gone: dict[str, set[Resource]] = {}
    for resource, giver, taker, _ in moves:
        back.setdefault(giver, set()).add(resource)
        gone.setdefault(taker, set()).add(resource)
    return {
        member_id: (share - gone.get(member_id, NOTHING)) | back.get(member_id, NOTHING)
        for member_id, share in members.items()
    }


def read_spent(metadata: bytes, now_ms: int, interval_ms: int) -> SpentMoves:
    """Return how much of the budget is spent at `now_ms`; metadata of another form means none.

    A time of the last move that lies ahead, because the clock was set back, counts as now; one that
    lies ahead by an interval or more counts as long past, so that no move waits for it.
    """
    try:
        document: object = json.loads(metadata) if metadata else None
    except (ValueError, RecursionError):  # not JSON, not UTF-8, or nested beyond reason
        return NOTHING_SPENT
    if not isinstance(document, dict):
        return NOTHING_SPENT
    fields = cast("dict[str, object]", document)
    moves, at_ms = fields.get("moves"), fields.get("at_ms")
    if type(moves) is not int or type(at_ms) is not int or moves <= 0:
        return NOTHING_SPENT
    is_near = abs(now_ms - at_ms) < interval_ms
    return SpentMoves(moves, min(at_ms, now_ms)) if is_near else NOTHING_SPENT
