"""Orders of operators: which workers are given work, and what runs where (PROTOCOL §2).

An order is a record (Operator, key type 22). If it changes what a target would be, and there are
members, it raises the epoch with a cause of its own and with who asked; if it changes nothing,
nothing is written. `workers` says under which name an order is kept, and for how long.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ....events.group import Group
from ....events.model import Resource, Scope, Why
from ....events.placement import HEAVIEST, MOST_ITEMS
from ....events.records import MemberMetadata, Operator, Record
from ...messages.errors import Error
from ...messages.orders import Cordon, Rebalance, ReleaseSeats, SetPlacement, Uncordon
from ..members.depart import bury, end_seats
from ..state.soft_state import Decision, SoftState, accept, bump, refuse
from ..state.validate import flaw_in_name, show_number
from ..state.workers import (
    bounded_ms,
    expected_back_ms,
    find_worker,
    find_workers,
    order_for,
    replace_order,
)


def cordon(group: Group, soft: SoftState, command: Cordon, now_ms: int) -> Decision:
    """Cordon a worker: it is assigned no new work. With `drain` its work is revoked as well.

    A worker that is draining stays so if it is only cordoned again: `uncordon` ends both.
    """
    found = find_worker(group, command.worker)
    if found.message:
        return refuse(soft, Error.UNKNOWN_MEMBER_ID, found.message)
    old = order_for(group, found.name)
    new = replace(old, cordoned=True, draining=old.draining or command.drain)
    why = Why.WORKER_DRAINED if command.drain else Why.WORKER_CORDONED
    return put_order(group, soft, replace(new, time_ms=now_ms, actor=command.principal), why)


def uncordon(group: Group, soft: SoftState, command: Uncordon, now_ms: int) -> Decision:
    """End a worker's cordon or drain: it may be assigned work again."""
    found = find_worker(group, command.worker)
    if found.message:
        return refuse(soft, Error.UNKNOWN_MEMBER_ID, found.message)
    new = replace(order_for(group, found.name), cordoned=False, draining=False)
    new = replace(new, time_ms=now_ms, actor=command.principal)
    return put_order(group, soft, new, Why.WORKER_UNCORDONED)


def place(group: Group, soft: SoftState, command: SetPlacement, now_ms: int) -> Decision:
    """Set the weight of a connector's work or of a task, and which workers may run it.

    An order for a task that does not exist any more can still be taken back: it changes no target.
    """
    resource = command.resource
    old = group.resource_orders.get(resource) or Operator(Scope.RESOURCE, *resource)
    weight = old.weight if command.weight is None else command.weight
    is_there = resource in group.configured
    ends_order = resource in group.resource_orders and (weight, command.pins) == (1, ())
    if not is_there and not ends_order:
        message = f"{resource} is neither a connector of this group nor a task of one"
        return refuse(soft, Error.UNKNOWN_CONNECTOR, message)
    if not 1 <= weight <= HEAVIEST:
        message = f"weight = {show_number(weight)}: allowed is a whole number, from 1 to {HEAVIEST}"
        return refuse(soft, Error.INVALID_REQUEST, message)
    pins = old.pins if command.pins is None else _pins(group, command.pins)
    if isinstance(pins, _Refused):
        return refuse(soft, *pins)
    new = replace(old, weight=weight, pins=pins, time_ms=now_ms, actor=command.principal)
    return put_order(group, soft, new, Why.PLACEMENT_CHANGED if is_there else None)


def rebalance(group: Group, soft: SoftState, command: Rebalance, now_ms: int) -> Decision:
    """Request a new target; a group without members has none to compute.

    Members that are away are removed, so that the present ones get their work; but not those that
    operators expect back, and none if no member is present.
    """
    if not group.members:
        return accept(group, soft, [])
    away = group.members_away() if len(group.away) < len(group.members) else []
    unexpected = (each for each in away if expected_back_ms(group, each.metadata, now_ms) is None)
    records = bury(group, unexpected)
    bumped = bump(group, Why.REBALANCE_REQUESTED, group.group_id, now_ms, command.principal)
    return accept(group, soft, [*records, bumped])


def release_seats(group: Group, soft: SoftState, command: ReleaseSeats, now_ms: int) -> Decision:
    """Remove the members of a node that it no longer names; their work may go to others.

    Only members that are away, and that ran on this very node, are removed.
    """
    former = [
        each
        for each in group.members_away()
        if _was_of(command, each.metadata) and each.metadata.instance_id not in command.instance_ids
    ]
    return end_seats(group, soft, former if command.node else [], Why.MEMBER_LEFT, now_ms)


class _Refused(NamedTuple):
    error: Error
    message: str


def _pins(group: Group, names: Sequence[str]) -> tuple[str, ...] | _Refused:
    """Return the names of these workers in orders; each given name must mean exactly one."""
    called = tuple(dict.fromkeys(names))
    if len(called) > MOST_ITEMS:
        message = f"there are {len(called)} workers to pin to: at most {MOST_ITEMS} can be named"
        return _Refused(Error.INVALID_REQUEST, message)
    workers = tuple(find_workers(group, called))
    if unknown := next((each.message for each in workers if each.message), ""):
        return _Refused(Error.UNKNOWN_MEMBER_ID, unknown)
    return tuple(sorted({each.name for each in workers}))


def _was_of(command: ReleaseSeats, seat: MemberMetadata) -> bool:
    if seat.node:
        return seat.node == command.node
    return bool(command.place) and seat.url.startswith(f"{command.place}/")


def put_order(group: Group, soft: SoftState, new: Operator, why: Why | None) -> Decision:
    """Write an order if it changes anything; raise the epoch if there is a cause."""
    if found := flaw_in_name(new.name, "the worker's name"):
        return refuse(soft, Error.INVALID_REQUEST, f"{found}, so no order can name it")
    if new.scope is Scope.WORKER:
        old = group.worker_orders.get(new.name)
    else:
        old = group.resource_orders.get(Resource(new.name, new.task))
    if old is not None and new.expected_back_ms:
        new = replace(new, expected_back_ms=bounded_ms(old, new.time_ms))
    records: list[Record] = replace_order(old, new)
    if records and why is not None and group.members:
        subject = new.name if new.scope is Scope.WORKER else str(Resource(new.name, new.task))
        records.append(bump(group, why, subject, new.time_ms, new.actor))
    return accept(group, soft, records)
