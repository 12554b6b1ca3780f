"""Orders about departures: a worker is expected back, or a member is removed (PROTOCOL §7, §8).

*Expect*: the work of a worker waits for it until a time. If the worker is lost already, the
deadlines of its loss and of its parked work move to that time; work whose deadline has fired stays
where it is. If it is present, the order is used if the worker is lost before that time; the order
ends when the worker joins again. If it is away and not expected any more, its seat ends at once.

*Remove*: a member gives up what it has, and its seat ends. By default (gently) it is drained first,
and removed once it holds nothing, or leaves. By force it is not answered any more, and is removed
when its session has passed or its process was seen to end: until then it may still run what it
holds. In both cases it is not expected back, so none of its work is parked. Only the seat ends: a
worker whose process goes on joins again.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from ....events.group import Group, Member
from ....events.model import GroupState, Why
from ....events.placement import worker_name
from ....events.records import Loss, Record
from ...messages.commands import EndExpectation
from ...messages.errors import Error
from ...messages.orders import Expect, RemoveMember
from ..members.depart import Departure, close_seats, depart
from ..state.soft_state import Decision, SoftState, accept, bump, refuse
from ..state.validate import LARGEST_NUMBER, flaw_in_name, show_number
from ..state.workers import find_member, find_worker, order_for, removal_of, replace_order
from .operate import put_order


def expect(group: Group, soft: SoftState, command: Expect, now_ms: int) -> Decision:
    """Set for how long a lost worker's work is kept for it; 0 milliseconds ends that."""
    within_ms = command.within_ms
    if not 0 <= within_ms <= LARGEST_NUMBER:
        allowed = f"a whole number of milliseconds, from 0 to {LARGEST_NUMBER}"
        message = f"within_ms = {show_number(within_ms)}: allowed is {allowed}"
        return refuse(soft, Error.INVALID_REQUEST, message)
    worker = find_worker(group, command.worker)
    if flaw := worker.message or flaw_in_name(worker.name, "the worker's name"):
        error = Error.UNKNOWN_MEMBER_ID if worker.message else Error.INVALID_REQUEST
        return refuse(soft, error, flaw)
    deadline_ms = now_ms + within_ms
    order = order_for(group, worker.name)
    expected = replace(order, expected_back_ms=deadline_ms if within_ms else 0)
    expected = replace(expected, time_ms=now_ms, actor=command.principal)
    records = replace_order(group.worker_orders.get(worker.name), expected)
    moved = [*_move_deadlines(group, worker.name, deadline_ms)]
    records += moved
    seats = [] if within_ms else _away(group, worker.name)
    records += close_seats(group, seats)
    if seats or (moved and _must_compute(group, worker.name)):
        records.append(bump(group, Why.WORKER_EXPECTED, worker.name, now_ms, command.principal))
    return accept(group, soft, records)


def end_expectation(
    group: Group, soft: SoftState, command: EndExpectation, now_ms: int
) -> Decision:
    """End an order to keep a worker's work, whose time has passed."""
    order = group.worker_orders.get(command.worker)
    if order is None or order.expected_back_ms != command.until_ms:
        return Decision(soft)
    ended = replace(order, expected_back_ms=0, time_ms=now_ms)
    return Decision(soft, tuple(replace_order(order, ended)))


def _away(group: Group, name: str) -> list[Member]:
    """Return the seats of a worker that left for a while."""
    return [each for each in group.members_away() if worker_name(each.metadata) == name]


def _losses(group: Group, name: str) -> list[Loss]:
    return [loss for loss in group.losses.values() if worker_name(loss) == name]


def _move_deadlines(group: Group, name: str, deadline_ms: int) -> Iterator[Record]:
    """Yield the worker's losses and the parked work with the new deadline."""
    waiting = frozenset[object]()
    for loss in _losses(group, name):
        waiting |= loss.resources
        if loss.deadline_ms != deadline_ms:
            yield replace(loss, deadline_ms=deadline_ms)
    schedule = group.schedule
    parked = {
        resource: deadline_ms if resource in waiting - schedule.fired else due_ms
        for resource, due_ms in schedule.parked.items()
    }
    if parked != schedule.parked:
        yield replace(schedule, parked=parked)


def _must_compute(group: Group, name: str) -> bool:
    """Return whether the order needs a new computation.

    One is needed for lost work that is neither parked nor in another member's target, as after a
    failed attempt, unless one is due anyway: what is installed then has the new deadline.
    """
    lost = frozenset(each for loss in _losses(group, name) for each in loss.resources)
    adrift = lost - group.schedule.parked.keys() - group.target_owner.keys()
    at_rest = group.members and group.state is not GroupState.ASSIGNING
    return bool(at_rest and adrift & group.configured)


GOODBYE_MS: Final = 1_000
"""How long a member that holds nothing may take to leave by itself; if removed, it rejoins."""


def remove_member(group: Group, soft: SoftState, command: RemoveMember, now_ms: int) -> Decision:
    """Remove a member: at once if it runs nothing; end the wait for a lost worker."""
    member = find_member(group, command.worker)
    if isinstance(member, str):
        return _give_up_lost(group, soft, command, now_ms)
    order = removal_of(group, member)
    if member.is_away or (_holds_nothing(member) and (order or command.force)):
        departure = Departure(member, Why.MEMBER_REMOVED, principal=command.principal)
        return accept(group, soft, depart(group, soft, departure, now_ms).records)
    old = order_for(group, worker_name(member.metadata))
    gently = not command.force and (order is None or order.gently)
    new = replace(old, removing=member.member_id, gently=gently)
    new = replace(new, time_ms=now_ms, actor=command.principal)
    has_work = not _holds_nothing(member) or bool(group.share_of(member.member_id))
    return put_order(group, soft, new, Why.WORKER_DRAINED if gently and has_work else None)


def due_removals(group: Group, now_ms: int) -> Iterator[RemoveMember]:
    """Yield the removals of members that hold nothing any more and did not leave by themselves.

    `now_ms` is wall clock; one that was set back delays nothing.
    """
    for order in group.worker_orders.values():
        member = group.members.get(order.removing) if order.gently else None
        if member is None or 0 <= now_ms - order.time_ms < GOODBYE_MS:
            continue
        if member.is_away or _holds_nothing(member):
            yield RemoveMember(group.group_id, member.member_id, principal=order.actor)


def _holds_nothing(member: Member) -> bool:
    return not member.current.assigned and not member.current.pending


def _give_up_lost(group: Group, soft: SoftState, command: RemoveMember, now_ms: int) -> Decision:
    """Stop waiting for a worker that is lost; refuse an unknown name."""
    worker = find_worker(group, command.worker)
    if worker.message:  # it names workers, where that of the members would name their ids
        return refuse(soft, Error.UNKNOWN_MEMBER_ID, worker.message)
    if not any(worker_name(loss) == worker.name for loss in group.losses.values()):
        message = f"worker {worker.name} is no member, and nothing waits for it: there is only an"
        message += " order that names it"
        return refuse(soft, Error.UNKNOWN_MEMBER_ID, message)
    return expect(group, soft, Expect(group.group_id, worker.name, 0, command.principal), now_ms)
