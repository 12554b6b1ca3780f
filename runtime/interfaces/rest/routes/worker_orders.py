"""What operators order of workers: cordon, uncordon, drain, expect, and remove.

Each answer tells the order that is in force, once it is in the log (202): what the group makes
of it follows. A worker is named as `/workers` tells it, or by its member, instance or client id.

A worker that is removed leaves its group, and its process on this node ends for good. The group is
told first, so that its log knows who asked; then the supervisor, which would else start the process
again. Either may be told twice without harm.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated

from fastapi import Depends, Query
from msgspec.structs import asdict
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from .....actors.group.state.workers import find_member, find_worker, order_for
from .....actors.messages.errors import Error
from .....actors.messages.orders import Cordon, Expect, RemoveMember, Uncordon
from .....events.group import Group, Member
from .....events.orders import worker_name
from ....cluster.messages import ProcessView
from ....config.kinds import INT32_MAX
from ...replies.node import GroupWorkerOrder, WorkerRemoval, worker_order
from ..backend.schema import Routes
from ..backend.service import (
    ORDER_ERRORS,
    Principal,
    Served,
    Service,
    carry_out,
    refuse,
    require_group,
)

routes = Routes("operators")
ACCEPTED = HTTPStatus.ACCEPTED
Force = Annotated[
    bool,
    Query(description="Do not wait until it has given up what it has: end its process at once."),
]


async def _group_of_worker(
    service: Served,
    group: Annotated[
        str | None, Query(description="The worker's group; by default Connect's.")
    ] = None,
) -> str:
    return group or service.group_id


GroupOfWorker = Annotated[str, Depends(_group_of_worker)]
"""The group of a worker, as a parameter of a route."""


class Expectation(BaseModel):
    """When a worker is expected back."""

    model_config = ConfigDict(extra="forbid", strict=True)

    within_ms: int = Field(ge=0, le=INT32_MAX, description="From now. 0: wait no longer.")


@routes.add("PUT /workers/{worker:path}/cordon", status=ACCEPTED, errors=ORDER_ERRORS)
async def cordon(
    service: Served, principal: Principal, worker: str, group: GroupOfWorker
) -> GroupWorkerOrder:
    """Give a worker nothing more; what it has it keeps."""
    return await _order(service, Cordon(group, worker, principal=principal))


@routes.add("PUT /workers/{worker:path}/drain", status=ACCEPTED, errors=ORDER_ERRORS)
async def drain(
    service: Served, principal: Principal, worker: str, group: GroupOfWorker
) -> GroupWorkerOrder:
    """Give a worker nothing more, and have it give up what it has."""
    return await _order(service, Cordon(group, worker, drain=True, principal=principal))


@routes.add("PUT /workers/{worker:path}/uncordon", status=ACCEPTED, errors=ORDER_ERRORS)
async def uncordon(
    service: Served, principal: Principal, worker: str, group: GroupOfWorker
) -> GroupWorkerOrder:
    """Let a worker be given work again: ends a cordon, and a drain."""
    return await _order(service, Uncordon(group, worker, principal))


@routes.add(
    "PUT /workers/{worker:path}/expect",
    status=ACCEPTED,
    errors=ORDER_ERRORS,
    takes_json=True,
)
async def expect(
    service: Served, principal: Principal, worker: str, body: Expectation, group: GroupOfWorker
) -> GroupWorkerOrder:
    """Have a worker's work wait for its return, or, with 0, wait no longer."""
    command = Expect(group, worker, body.within_ms, principal)
    return await _order(service, command)


@routes.add("DELETE /workers/{worker:path}", status=HTTPStatus.ACCEPTED, errors=ORDER_ERRORS)
async def remove_worker(
    service: Served,
    principal: Principal,
    worker: str,
    group_id: GroupOfWorker,
    force: Force = False,  # noqa: FBT002  # a parameter of the query
) -> WorkerRemoval:
    """Remove a worker: it gives up what it has, leaves, and its process is not started again.

    Nothing of its work is parked. Of a worker that is away or lost already, only the wait for it
    ends. `message` tells what is to be expected.
    """
    await run_in_threadpool(require_group, service, group_id)
    node = await service.commands.describe_node()
    found = await run_in_threadpool(_find, service, group_id, worker)
    process = _process_of(found, node.workers) if group_id == service.group_id else None
    command = RemoveMember(group_id, worker, force=force, principal=principal)
    outcome = await service.commands.carry_out(command)
    is_gone = process is not None or (outcome.repeated and found.is_known)
    if outcome.reply.error is not Error.UNKNOWN_MEMBER_ID or not is_gone:
        refuse(outcome.reply)
    if process is not None:
        await service.commands.let_go(process.name, force=force)
    return _describe_removal(group_id, found, process, forced=force)


async def _order(service: Service, command: Cordon | Uncordon | Expect) -> GroupWorkerOrder:
    """Have an order carried out, and return the one that is in force then.

    A worker that is not known any more goes by what it was called.
    """

    def read(group: Group) -> GroupWorkerOrder:
        name = find_worker(group, command.worker).name or command.worker
        return GroupWorkerOrder(group.group_id, **asdict(worker_order(order_for(group, name))))

    return await carry_out(service, command, read)


@dataclass(frozen=True, slots=True)
class _NamedWorker:
    """Whom a name means before the removal, as the log tells it."""

    called: str
    name: str
    """By which orders know the worker; empty where the group knows none."""
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
    """Tell whether nobody is left that runs anything once this member is gone."""
    others = group.members.keys() - group.away - {member.member_id if member else ""}
    return member is not None and not others


def _process_of(found: _NamedWorker, processes: Sequence[ProcessView]) -> ProcessView | None:
    """Return the process of this node that is the worker, None if there is none.

    A member that is there and another process than the worker is now, is the only one to go.
    """
    member = found.member
    if member is None:
        names = {found.called, found.name}
        return next((each for each in processes if names & {each.name, each.url}), None)
    urls = {member.metadata.url} - {""}
    process = next((each for each in processes if each.url in urls), None)
    is_other = process is not None and process.member_id not in {"", member.member_id}
    return None if is_other and not member.is_away else process


def _describe_removal(
    group_id: str, found: _NamedWorker, process: ProcessView | None, *, forced: bool
) -> WorkerRemoval:
    return WorkerRemoval(
        group_id,
        found.name or (process.url if process else found.called),
        found.member.member_id if found.member else None,
        process.name if process else None,
        "; ".join(_sentences(found, process, forced=forced)),
    )


def _sentences(found: _NamedWorker, process: ProcessView | None, *, forced: bool) -> Iterator[str]:
    """Yield what is to be expected, a sentence for each thing."""
    member = found.member
    if member is not None:
        yield _becomes_of(member, process, forced=forced)
    elif found.is_known:
        yield "it is no member any more, and its work is waited for no longer"
    else:
        yield "it is no member"
    if process is not None:
        yield "its process ends, and is not started again before the node is"
    elif member is not None and not member.is_away:
        yield "it is no process of this node: if it lives on, it joins again"
    if found.is_last:
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
