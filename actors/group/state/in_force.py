"""Which operators' orders stand for a worker, and how they come to an end.

An order is kept under the worker's name, not under a member id: a worker that comes back is
a new member, and finds the orders that stand for it. So a cordon outlives the worker until
somebody takes it back; an order for a worker that never returns costs one record and stays.
A worker that has neither an instance id nor a url returns under no known name.
"""

from dataclasses import replace

from ....events.catalogue import key_of
from ....events.group import Group, Member
from ....events.model import Scope
from ....events.orders import worker_name
from ....events.records import Loss, MemberMetadata, Operator, Record, Tombstone
from ...messages.heartbeat import LEAVE_EPOCH, Heartbeat


def order_for(group: Group, name: str) -> Operator:
    """Return the order that stands for a worker, or one that asks for nothing."""
    return group.worker_orders.get(name) or Operator(Scope.WORKER, name)


def replace_order(old: Operator | None, new: Operator) -> list[Record]:
    """Return what takes an order to another: nothing if both ask the same.

    An order that asks for nothing is not kept. It makes no difference who asked, or when.
    """
    blank = Operator(new.scope, new.name, new.task)
    asked = replace(new, time_ms=0, actor=None)
    if asked == replace(old or blank, time_ms=0, actor=None):
        return []
    if asked == blank:
        return [Tombstone(Operator, key_of(new))]
    return [new]


def expected_back_ms(group: Group, metadata: MemberMetadata, now_ms: int) -> int | None:
    """Return until when operators expect a worker back, wall clock; None if they do not.

    An order whose time has passed is void. Where the clock was set back since, it holds for no
    longer than it was to.
    """
    order = group.worker_orders.get(worker_name(metadata))
    if order is None or order.expected_back_ms <= now_ms:
        return None
    return bounded_ms(order, now_ms)


def bounded_ms(order: Operator, now_ms: int) -> int:
    """Return until when a worker is expected, which is not in longer than it was when ordered."""
    return min(order.expected_back_ms, now_ms + order.expected_back_ms - order.time_ms)


def has_shared_deadline(group: Group, loss: Loss) -> bool:
    """Tell whether a later loss shares this one's deadline: not one that operators set."""
    order = group.worker_orders.get(worker_name(loss))
    return order is None or order.expected_back_ms != loss.deadline_ms


def welcome(group: Group, newcomer: MemberMetadata) -> list[Record]:
    """Return what ends the expectation of a worker that is back."""
    order = group.worker_orders.get(worker_name(newcomer))
    return replace_order(order, replace(order, expected_back_ms=0)) if order else []


def removal_of(group: Group, member: Member) -> Operator | None:
    """Return the order that ends the member's seat, gently or by force, if there is one."""
    order = group.worker_orders.get(worker_name(member.metadata))
    return order if order and order.removing == member.member_id else None


def is_silenced(group: Group, request: Heartbeat) -> bool:
    """Tell whether a request must not be answered: its seat is being ended by force.

    The member fences itself once its session has passed without an answer. Only its goodbye
    is still heard, since it says that nothing runs any more.
    """
    if not group.worker_orders or request.member_epoch == LEAVE_EPOCH:
        return False
    member = group.members.get(request.member_id)
    order = None if member is None else removal_of(group, member)
    return order is not None and not order.gently


def end_removal(group: Group, member: Member) -> list[Record]:
    """Return what takes back the order to remove a member, since it goes."""
    order = removal_of(group, member)
    return replace_order(order, replace(order, removing="", gently=False)) if order else []
