"""A worker is expected back: its work waits for it, and no longer (PROTOCOL §7).

For a worker that is lost already the deadlines move: that of its loss, and of what is parked
for it. Work whose deadline has fired stays where it went. For a worker that is present the order
waits, and counts if it is lost before the time that the order names; the order ends when the worker
joins again. The seat of one that left for a while ends at once where it is to be waited for no
longer.
"""

from collections.abc import Iterator
from dataclasses import replace

from ....events.group import Group, Member
from ....events.model import GroupState, Why
from ....events.orders import worker_name
from ....events.records import Loss, Record
from ...messages.commands import CommandReply
from ...messages.errors import Error
from ...messages.orders import Expect
from ...messages.timers import EndExpectation
from ..members.depart import bury, forget_losses
from ..state.in_force import order_for, replace_order
from ..state.soft_state import Decision, SoftState, bump
from ..state.validate import LARGEST_NUMBER, flaw_in_name, show_number
from .operate import refuse
from .whereabouts import find_worker


def expect(group: Group, soft: SoftState, command: Expect, now_ms: int) -> Decision:
    """Wait for a worker until a moment from now; 0 milliseconds: wait no longer."""
    within_ms = command.within_ms
    if not 0 <= within_ms <= LARGEST_NUMBER:
        allowed = f"a whole number of milliseconds, from 0 to {LARGEST_NUMBER}"
        message = f"within_ms = {show_number(within_ms)}: allowed is {allowed}"
        return refuse(soft, Error.INVALID_REQUEST, message)
    found = find_worker(group, command.worker)
    if flaw := found.message or flaw_in_name(found.name, "the worker's name"):
        error = Error.UNKNOWN_MEMBER_ID if found.message else Error.INVALID_REQUEST
        return refuse(soft, error, flaw)
    deadline_ms = now_ms + within_ms
    order = order_for(group, found.name)
    expected = replace(order, expected_back_ms=deadline_ms if within_ms else 0)
    expected = replace(expected, time_ms=now_ms, actor=command.principal)
    records = replace_order(group.worker_orders.get(found.name), expected)
    moved = [*_moved(group, found.name, deadline_ms)]
    records += moved
    seats = [] if within_ms else _away(group, found.name)
    records += bury(group, seats)
    if len(seats) == len(group.members):
        records += forget_losses(group)
    if seats or (moved and _must_compute(group, found.name)):
        records.append(bump(group, Why.WORKER_EXPECTED, found.name, now_ms, command.principal))
    reply = CommandReply(Error.NONE, log_offset=group.end + len(records))
    return Decision(soft, tuple(records), reply)


def end_expectation(
    group: Group, soft: SoftState, command: EndExpectation, now_ms: int
) -> Decision:
    """Take back an order to wait for a worker whose time has passed, whatever the clock says."""
    order = group.worker_orders.get(command.worker)
    if order is None or order.expected_back_ms != command.until_ms:
        return Decision(soft)
    ended = replace(order, expected_back_ms=0, time_ms=now_ms)
    return Decision(soft, tuple(replace_order(order, ended)))


def _away(group: Group, name: str) -> list[Member]:
    """Return the seats of a worker that left for a while: they wait for it no longer."""
    return [each for each in group.members_away() if worker_name(each.metadata) == name]


def _losses(group: Group, name: str) -> list[Loss]:
    return [loss for loss in group.losses.values() if worker_name(loss) == name]


def _moved(group: Group, name: str, deadline_ms: int) -> Iterator[Record]:
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
    """Tell whether only a new computation makes the order good.

    One is needed for lost work that is neither parked nor with somebody else, as after an
    attempt that failed, unless one is due anyway: what is installed goes by the new deadline.
    """
    lost = frozenset(each for loss in _losses(group, name) for each in loss.resources)
    adrift = lost - group.schedule.parked.keys() - group.target_owner.keys()
    at_rest = group.members and group.state is not GroupState.ASSIGNING
    return bool(at_rest and adrift & group.configured)
