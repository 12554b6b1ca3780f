"""The routes of operator orders for workers: cordon, uncordon, drain, expect, and remove.

Each response (202) has the order in force, once it is in the log; the group acts on it later. A
worker is named by its name in `/workers`, or by its member, instance or client id.

A removed worker leaves its group, and its process on this node is not restarted. The group gets the
order first, so that its log has the principal; then the supervisor, which would otherwise restart
the process. Both orders are idempotent.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import asdict
from starlette.concurrency import run_in_threadpool

from ......actors.group.state.workers import find_member, find_worker, order_for
from ......actors.messages.errors import Error
from ......actors.messages.orders import Cordon, Expect, RemoveMember, Uncordon
from ......events.group import Group, Member
from ......events.placement import worker_name
from .....cluster.messages import ProcessView
from .....config.node_keys.kinds import INT32_MAX
from .....security.rights import Right
from ....replies.building.node import worker_order
from ....replies.node import GroupWorkerOrder, WorkerRemoval
from ...commands.service import (
    ORDER_ERRORS,
    PrincipalName,
    Served,
    Service,
    carry_out,
    refuse,
    require_group,
)
from ...server.routing import Routes

routes = Routes("operators")
ACCEPTED = HTTPStatus.ACCEPTED
Force = Annotated[
    bool,
    Meta(description="End its process at once, without waiting until it has given up its work."),
]


GroupOfWorker = Annotated[str | None, Meta(description="The worker's group; by default Connect's.")]


class Expectation(Struct, frozen=True, forbid_unknown_fields=True):
    """The time when a worker is expected back."""

    within_ms: Annotated[int, Meta(ge=0, le=INT32_MAX)]
    """From now. 0 ends the wait."""


@routes.add(
    "PUT /workers/{worker:path}/cordon", Right.OPERATE, status=ACCEPTED, errors=ORDER_ERRORS
)
async def cordon(
    service: Served, principal: PrincipalName, worker: str, group: GroupOfWorker = None
) -> GroupWorkerOrder:
    """Assign no more work to a worker; it keeps what it has."""
    return await _order(service, Cordon(group or service.group_id, worker, principal=principal))


@routes.add("PUT /workers/{worker:path}/drain", Right.OPERATE, status=ACCEPTED, errors=ORDER_ERRORS)
async def drain(
    service: Served, principal: PrincipalName, worker: str, group: GroupOfWorker = None
) -> GroupWorkerOrder:
    """Assign no more work to a worker, and revoke what it has."""
    return await _order(
        service, Cordon(group or service.group_id, worker, drain=True, principal=principal)
    )


@routes.add(
    "PUT /workers/{worker:path}/uncordon", Right.OPERATE, status=ACCEPTED, errors=ORDER_ERRORS
)
async def uncordon(
    service: Served, principal: PrincipalName, worker: str, group: GroupOfWorker = None
) -> GroupWorkerOrder:
    """Allow work for a worker again: ends a cordon or a drain."""
    return await _order(service, Uncordon(group or service.group_id, worker, principal))


@routes.add(
    "PUT /workers/{worker:path}/expect",
    Right.OPERATE,
    status=ACCEPTED,
    errors=ORDER_ERRORS,
)
async def expect(
    service: Served,
    principal: PrincipalName,
    worker: str,
    body: Expectation,
    group: GroupOfWorker = None,
) -> GroupWorkerOrder:
    """Reserve a worker's work for its return; 0 ends the wait."""
    command = Expect(group or service.group_id, worker, body.within_ms, principal)
    return await _order(service, command)


@routes.add(
    "DELETE /workers/{worker:path}", Right.OPERATE, status=HTTPStatus.ACCEPTED, errors=ORDER_ERRORS
)
async def remove_worker(
    service: Served,
    principal: PrincipalName,
    worker: str,
    group: GroupOfWorker = None,
    force: Force = False,  # noqa: FBT002  # a parameter of the query
) -> WorkerRemoval:
    """Remove a worker: it gives up its work, leaves, and its process is not restarted.

    Its work is not parked. For a worker that is away or lost, only the wait for its return ends.
    `message` describes what happens next.
    """
    group_id = group or service.group_id
    await run_in_threadpool(require_group, service, group_id)
    node = await service.commands.describe_node()
    named = await run_in_threadpool(_find, service, group_id, worker)
    process = _process_of(named, node.workers) if group_id == service.group_id else None
    command = RemoveMember(group_id, worker, force=force, principal=principal)
    outcome = await service.commands.carry_out(command)
    is_gone = process is not None or (outcome.repeated and named.is_known)
    if outcome.reply.error is not Error.UNKNOWN_MEMBER_ID or not is_gone:
        refuse(outcome.reply)
    if process is not None:
        await service.commands.stop_worker(process.name, force=force)
    return _describe_removal(group_id, named, process, forced=force)


async def _order(service: Service, command: Cordon | Uncordon | Expect) -> GroupWorkerOrder:
    """Execute an order, and return the order in force; an unknown worker keeps the given name."""

    def read(group: Group) -> GroupWorkerOrder:
        name = find_worker(group, command.worker).name or command.worker
        return GroupWorkerOrder(group.group_id, **asdict(worker_order(order_for(group, name))))

    return await carry_out(service, command, read)


@dataclass(frozen=True, slots=True)
class _NamedWorker:
    """The worker that a name refers to, before its removal."""

    called: str
    name: str
    """The worker's name in orders; empty if the group does not know it."""
    member: Member | None
    is_last: bool

    @property
    def is_known(self) -> bool:
        return bool(self.name)


def _find(service: Service, group_id: str, worker: str) -> _NamedWorker:
    with service.logs.reading(group_id) as logs:
        found = find_member(logs.group, worker)
        member = None if isinstance(found, str) else found
        name = worker_name(member.metadata) if member else find_worker(logs.group, worker).name
        return _NamedWorker(worker, name, member, _is_last(logs.group, member))


def _is_last(group: Group, member: Member | None) -> bool:
    """Return whether no other member can run work after the removal."""
    others = group.members.keys() - group.away - {member.member_id if member else ""}
    return member is not None and not others


def _process_of(named: _NamedWorker, processes: Sequence[ProcessView]) -> ProcessView | None:
    """Return the process of the worker on this node, None if there is none.

    If the member is present but the worker's current process is another one, that is not stopped.
    """
    member = named.member
    if member is None:
        names = {named.called, named.name}
        return next((each for each in processes if names & {each.name, each.url}), None)
    urls = {member.metadata.url} - {""}
    process = next((each for each in processes if each.url in urls), None)
    is_other = process is not None and process.member_id not in {"", member.member_id}
    return None if is_other and not member.is_away else process


def _describe_removal(
    group_id: str, named: _NamedWorker, process: ProcessView | None, *, forced: bool
) -> WorkerRemoval:
    return WorkerRemoval(
        group_id,
        named.name or (process.url if process else named.called),
        named.member.member_id if named.member else None,
        process.name if process else None,
        "; ".join(_sentences(named, process, forced=forced)),
    )


def _sentences(named: _NamedWorker, process: ProcessView | None, *, forced: bool) -> Iterator[str]:
    """Yield sentences about what happens next."""
    member = named.member
    if member is not None:
        yield _becomes_of(member, process, forced=forced)
    elif named.is_known:
        yield "it is no member any more, and its work is waited for no longer"
    else:
        yield "it is no member"
    if process is not None:
        yield "its process ends, and is not started again before the node is"
    elif member is not None and not member.is_away:
        yield "it is no process of this node: if it lives on, it joins again"
    if named.is_last:
        yield "it was the last worker: nothing runs until another one joins"


def _becomes_of(member: Member, process: ProcessView | None, *, forced: bool) -> str:
    if member.is_away:
        return "the place that was kept for its return is given up"
    if not member.current.assigned and not member.current.pending:
        return "it holds nothing, and leaves the group"
    if not forced:
        return "it gives up what it has, and leaves the group"
    if process is None:
        return "it is answered no more, and its work goes to others once its session has passed"
    return "what it runs ends at once, and goes to others"
