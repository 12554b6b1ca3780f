"""A worker is removed: it gives up what it has, and its seat ends (PROTOCOL §8).

Gently it is drained first, and goes once it holds nothing or says goodbye. By force it is
answered no more, and goes when its session has passed, or its process was seen to end: until then
it may still run what it holds. Either way it is not expected back, so nothing of its work is
parked. Only the seat is ended here: a worker whose process lives on joins again.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from ....events.group import Group, Member
from ....events.model import Why
from ....events.orders import worker_name
from ...messages.commands import CommandReply
from ...messages.errors import Error
from ...messages.orders import Expect, RemoveMember
from ..members.depart import Departure, depart
from ..state.in_force import order_for, removal_of
from ..state.soft_state import Decision, SoftState
from .expect import expect
from .operate import put_order, refuse
from .whereabouts import find_member, find_worker

GOODBYE_MS: Final = 1_000
"""How long a member that holds nothing may take to leave by itself: it would else join again."""


def remove_member(group: Group, soft: SoftState, command: RemoveMember, now_ms: int) -> Decision:
    """End a member's seat, at once where it runs nothing; a lost worker is waited for no longer."""
    member = find_member(group, command.worker)
    if isinstance(member, str):
        return _give_up_lost(group, soft, command, now_ms)
    order = removal_of(group, member)
    if member.is_away or (_holds_nothing(member) and (order or command.force)):
        departure = Departure(member, Why.MEMBER_REMOVED, principal=command.principal)
        decision = depart(group, soft, departure, now_ms)
        log_offset = group.end + len(decision.records)
        return replace(decision, reply=CommandReply(Error.NONE, log_offset=log_offset))
    old = order_for(group, worker_name(member.metadata))
    gently = not command.force and (order is None or order.gently)
    new = replace(old, removing=member.member_id, gently=gently)
    new = replace(new, time_ms=now_ms, actor=command.principal)
    has_work = not _holds_nothing(member) or bool(group.share_of(member.member_id))
    return put_order(group, soft, new, Why.WORKER_DRAINED if gently and has_work else None)


def due_removals(group: Group, now_ms: int) -> Iterator[RemoveMember]:
    """Yield again the removals of members that hold nothing, and did not leave by themselves.

    `now_ms` is wall clock; one that was set back puts nothing off.
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
    """Wait no longer for a worker that is lost; refuse a name that nobody has."""
    found = find_worker(group, command.worker)
    if found.message:  # it tells workers, where that of the members would tell their ids
        return refuse(soft, Error.UNKNOWN_MEMBER_ID, found.message)
    if not any(worker_name(loss) == found.name for loss in group.losses.values()):
        message = f"worker {found.name} is no member, and nothing waits for it: there is only an"
        message += " order that names it"
        return refuse(soft, Error.UNKNOWN_MEMBER_ID, message)
    return expect(group, soft, Expect(group.group_id, found.name, 0, command.principal), now_ms)
