"""Changes, as what the rehearsed group is asked and told because of them.

A connector comes in two epochs, as it really does: it is placed first, and whoever has it
then splits it into its tasks.
"""

from collections.abc import Iterator
from itertools import count

from ...events.group import token_of
from ...events.model import Resource
from ..group.orders.remove import GOODBYE_MS, removed_by_now
from ..messages.commands import Command, CommandReply
from ..messages.errors import Error
from ..messages.heartbeat import HeartbeatReply
from ..messages.orders import Cordon, RemoveMember
from ..messages.work import DeleteConnector as Delete
from ..messages.work import PutConnector as Put
from ..messages.work import PutTaskConfigs
from .changes import (
    AddWorkers,
    Change,
    DeleteConnector,
    DrainWorker,
    PutConnector,
    RemoveWorker,
    Scale,
)
from .newcomers import newcomer
from .rehearsal import CannotPlan, Rehearsal, Step


def rehearse(rehearsal: Rehearsal, change: Change) -> Iterator[Step]:
    """Make a change, and yield each target that it leads to once the group has it.

    Raises `CannotPlan` if the group refuses the change, or can not compute a target.
    """
    match change:
        case AddWorkers():
            yield from _add(rehearsal, change)
        case RemoveWorker():
            yield from _remove(rehearsal, change.worker)
        case DrainWorker():
            _command(rehearsal, Cordon(rehearsal.group.group_id, change.worker, drain=True))
        case PutConnector():
            put = Put(rehearsal.group.group_id, change.connector, change.config)
            _command(rehearsal, put)
            yield from rehearsal.rest()
            _split(rehearsal, change.connector, change.tasks)
        case Scale():
            _existing(rehearsal, change.connector)
            _split(rehearsal, change.connector, change.tasks)
        case DeleteConnector():
            _existing(rehearsal, change.connector)
            _command(rehearsal, Delete(rehearsal.group.group_id, change.connector))
    yield from rehearsal.rest()


def _add(rehearsal: Rehearsal, change: AddWorkers) -> Iterator[Step]:
    for _ in range(change.count):
        names = map("new-{}".format, count(len(rehearsal.newcomers) + 1))
        member_id = next(name for name in names if name not in rehearsal.group.members)
        join = newcomer(rehearsal.group, member_id, change, rehearsal.assignors)
        _heard(rehearsal.carry_out(join))
        rehearsal.newcomers[join.url or member_id] = member_id
        yield from rehearsal.rest()


def _remove(rehearsal: Rehearsal, worker: str) -> Iterator[Step]:
    """Remove a worker as an operator does: it is drained, and goes once it holds nothing."""
    _command(rehearsal, RemoveMember(rehearsal.group.group_id, worker))
    yield from rehearsal.rest()
    for again in [*removed_by_now(rehearsal.group, rehearsal.now_ms + GOODBYE_MS)]:
        _command(rehearsal, again)


def _split(rehearsal: Rehearsal, connector: str, tasks: int) -> None:
    """Have whoever runs a connector split it; one that nobody runs stays as it is."""
    group = rehearsal.group
    holder = group.owner.get(Resource(connector))
    token = token_of(group, holder, Resource(connector)) if holder is not None else None
    if holder is None or token is None:
        return
    before = group.task_configs.get(connector)
    kept = tuple(task.config for task in before.tasks[:tasks]) if before else ()
    configs = (*kept, *({"task": str(number)} for number in range(len(kept), tasks)))
    _command(rehearsal, PutTaskConfigs(group.group_id, holder, connector, token, configs))


def _existing(rehearsal: Rehearsal, connector: str) -> None:
    found = rehearsal.group.connectors.get(connector)
    if found is None or found.deleting:
        there = sorted(
            name for name, each in rehearsal.group.connectors.items() if not each.deleting
        )
        known = f"there are {', '.join(there)}" if there else "the group has none"
        raise CannotPlan(Error.UNKNOWN_CONNECTOR, f"there is no connector {connector}: {known}")


def _command(rehearsal: Rehearsal, command: Command) -> None:
    reply = rehearsal.carry_out(command)
    if isinstance(reply, CommandReply) and reply.error is not Error.NONE:
        raise CannotPlan(reply.error, reply.message)


def _heard(reply: object) -> None:
    if not isinstance(reply, HeartbeatReply):
        raise TypeError(f"a heartbeat was answered by {reply}")
    if reply.error not in {Error.NONE, Error.COMPUTE_ASSIGNMENT}:
        raise CannotPlan(reply.error, reply.message)
