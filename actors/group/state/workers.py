"""Which worker an operator means by a name, and which of the operators' orders are for it.

A worker is named by its member id, its instance id or its url; if no worker has such a name, by its
client id or the last part of its url, which several workers may have in common.

An order is kept under the worker's name, not under a member id: a worker that comes back is a new
member, and its orders are still in force. So a cordon outlives the worker until it is taken back;
an order for a worker that never returns is one record, which stays. A worker with neither an
instance id nor a url returns under no known name.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ....events.catalogue import key_of
from ....events.group import Group, Member
from ....events.model import Scope
from ....events.placement import (
    LONGEST_CALL,
    Directory,
    WorkerNames,
    directory_of,
    last_part,
    names_of,
    worker_name,
    workers_in,
)
from ....events.records import Loss, MemberMetadata, Operator, Record, Tombstone
from ...messages.errors import listing


@dataclass(frozen=True, slots=True)
class WorkerMatch:
    """The full name of the one worker that a given name matches, or an error message."""

    name: str = ""
    message: str = ""


def find_worker(group: Group, called: str) -> WorkerMatch:
    """Return the one worker that a name matches."""
    return next(find_workers(group, [called]))


def find_workers(group: Group, names: Iterable[str]) -> Iterator[WorkerMatch]:
    """Yield the one worker that each name matches."""
    directory = _directory(group)
    for called in names:
        yield _only(called, directory.find(called), directory.everybody)


def find_member(group: Group, called: str) -> Member | str:
    """Return the one member that a name matches, or an error message."""
    members = group.members
    if called in members:
        return members[called]
    names = {member_id: names_of(member.metadata) for member_id, member in members.items()}
    exactly = {member_id for member_id, (strong, _) in names.items() if called in strong}
    loosely = {member_id for member_id, (_, weak) in names.items() if called in weak}
    found = _only(called, exactly or loosely, set(members))
    return members[found.name] if found.name else found.message


def _directory(group: Group) -> Directory:
    """Return the workers that the group knows: its members, lost ones, and those in orders.

    Pins count as orders: a worker that was allowed to run something may be named again.
    """
    return directory_of((*workers_in(group), *_workers_in_orders(group)))


def _workers_in_orders(group: Group) -> Iterator[WorkerNames]:
    """Yield the workers that orders name, members or not."""
    pinned = {name for each in group.resource_orders.values() for name in each.pins}
    for name in pinned.union(group.worker_orders):
        yield WorkerNames(name, {name}, {last_part(name)} - {""})


def _only(called: str, matches: set[str], everybody: set[str]) -> WorkerMatch:
    shown = f"{called[:LONGEST_CALL]!a}"
    if len(matches) == 1:
        return WorkerMatch(next(iter(matches)))
    if matches:
        return WorkerMatch(message=f"{shown} could be any of {listing(matches)}: name one of these")
    if not everybody:
        return WorkerMatch(message=f"there is no worker {shown}: the group has none")
    return WorkerMatch(message=f"there is no worker {shown}: there are {listing(everybody)}")


def order_for(group: Group, name: str) -> Operator:
    """Return the order for a worker, or an empty one."""
    return group.worker_orders.get(name) or Operator(Scope.WORKER, name)


def replace_order(old: Operator | None, new: Operator) -> list[Record]:
    """Return the record that replaces an order by another; none if both ask for the same.

    An order that asks for nothing is buried. It makes no difference who asked, or when.
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

    An order whose time has passed is void. If the clock was set back since, it is valid for no
    longer than was ordered.
    """
    order = group.worker_orders.get(worker_name(metadata))
    if order is None or order.expected_back_ms <= now_ms:
        return None
    return bounded_ms(order, now_ms)


def bounded_ms(order: Operator, now_ms: int) -> int:
    """Return until when a worker is expected: never longer from now than was ordered."""
    return min(order.expected_back_ms, now_ms + order.expected_back_ms - order.time_ms)


def is_by_order(group: Group, loss: Loss) -> bool:
    """Return whether an operator set the deadline of a loss."""
    order = group.worker_orders.get(worker_name(loss))
    return order is not None and order.expected_back_ms == loss.deadline_ms


def welcome(group: Group, newcomer: MemberMetadata, seat: Member | None) -> list[Record]:
    """Return the record that ends the wait for a worker that is back.

    An order to remove the member that had the `seat` before ends as well: that member is gone.
    """
    order = group.worker_orders.get(worker_name(newcomer))
    if order is None:
        return []
    after = replace(order, expected_back_ms=0)
    if seat is not None and order.removing == seat.member_id:
        after = replace(after, removing="", gently=False)
    return replace_order(order, after)


def removal_of(group: Group, member: Member) -> Operator | None:
    """Return the order to remove a member, gracefully or by force, if there is one."""
    order = group.worker_orders.get(worker_name(member.metadata))
    return order if order and order.removing == member.member_id else None


def is_silenced(group: Group, member_id: str) -> bool:
    """Return whether a member must not be answered: it is being removed by force.

    It fences itself once its session has passed without an answer. Only its leave is still taken,
    since it says that nothing runs any more.
    """
    if not group.worker_orders:
        return False
    member = group.members.get(member_id)
    order = None if member is None else removal_of(group, member)
    return order is not None and not order.gently


def end_removal(group: Group, member: Member) -> list[Record]:
    """Return the record that ends the order to remove a member, since it leaves."""
    order = removal_of(group, member)
    return replace_order(order, replace(order, removing="", gently=False)) if order else []
