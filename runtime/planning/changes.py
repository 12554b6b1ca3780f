"""The changes of a plan, and their execution in a dry run.

Each change stands for a command, or for a join or leave of a worker. New connectors take an epoch
together, and each one more, as in the real group: first they are assigned, then the worker of each
reports its tasks.

An added worker joins like the worker that joined last, with the same assignors or the same server
assignor. Its url is that of the next worker of this node, since names break ties in assignments,
and operator orders apply by name.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count

from ...actors.assignors.built_in import balanced
from ...actors.assignors.sdk import plain_metadata
from ...actors.group.orders.departures import GOODBYE_MS, due_removals
from ...actors.messages.assignors import Worker
from ...actors.messages.commands import Command, CommandReply
from ...actors.messages.errors import Error
from ...actors.messages.members import JOIN_EPOCH, Heartbeat, HeartbeatReply, PutTaskConfigs
from ...actors.messages.orders import Cordon, DeleteConnector, PutConnectors, RemoveMember
from ...events.group import Group, token_of
from ...events.model import ClientAssignor, Resource
from ...events.placement import ORDINARY, Abilities, work_in
from ...events.records import MemberMetadata
from .dry_run import DryRun, DryRunAssignor, PlanError, Step


@dataclass(frozen=True, slots=True)
class WorkersJoined:
    """`count` workers join, one after another, with warm engines."""

    count: int
    zone: str | None = None
    abilities: Abilities = ORDINARY


@dataclass(frozen=True, slots=True)
class WorkerRemoved:
    """A worker is drained and leaves permanently; nothing is parked."""

    worker: str


@dataclass(frozen=True, slots=True)
class WorkerDrained:
    """A worker gives up its work and gets no more, but stays a member."""

    worker: str


@dataclass(frozen=True, slots=True)
class PlannedConfig:
    """The config of a connector, and its number of tasks if it is new or will be changed by it."""

    connector: str
    config: Mapping[str, str]
    tasks: int


@dataclass(frozen=True, slots=True)
class ConnectorsPut:
    """Connectors are created, or get new configs, in one epoch."""

    connectors: tuple[PlannedConfig, ...]


@dataclass(frozen=True, slots=True)
class ConnectorScaled:
    """An existing connector gets another number of tasks."""

    connector: str
    tasks: int


@dataclass(frozen=True, slots=True)
class ConnectorDeleted:
    """A connector is deleted with all its tasks."""

    connector: str


Change = (
    WorkersJoined
    | WorkerRemoved
    | WorkerDrained
    | ConnectorsPut
    | ConnectorScaled
    | ConnectorDeleted
)
"""Workers and connectors have the same names as in the commands."""


FIRST = MemberMetadata(
    "",
    rebalance_timeout_ms=60_000,
    assignors=(ClientAssignor(balanced.NAME),),
)
"""The metadata of the first worker of a group."""


def make_change(dry_run: DryRun, change: Change) -> Iterator[Step]:
    """Execute a change, and yield each target that results, once the group has it.

    Raises `PlanError` if the group refuses the change, or cannot compute a target.
    """
    match change:
        case WorkersJoined():
            yield from _add(dry_run, change)
        case WorkerRemoved():
            yield from _remove(dry_run, change.worker)
        case WorkerDrained():
            _command(dry_run, Cordon(dry_run.group.group_id, change.worker, drain=True))
        case ConnectorsPut(connectors):
            configs = {each.connector: each.config for each in connectors}
            split = [each for each in connectors if not _keeps_tasks(dry_run.group, each)]
            _command(dry_run, PutConnectors(dry_run.group.group_id, configs))
            for each in split:
                yield from dry_run.settle()
                _split(dry_run, each.connector, each.tasks)
        case ConnectorScaled():
            _check_exists(dry_run, change.connector)
            _split(dry_run, change.connector, change.tasks)
        case ConnectorDeleted():
            _check_exists(dry_run, change.connector)
            _command(dry_run, DeleteConnector(dry_run.group.group_id, change.connector))
    yield from dry_run.settle()


def _add(dry_run: DryRun, change: WorkersJoined) -> Iterator[Step]:
    for _ in range(change.count):
        names = map("new-{}".format, count(len(dry_run.joiners) + 1))
        member_id = next(name for name in names if name not in dry_run.group.members)
        join = _join_heartbeat(dry_run, member_id, change)
        _check_heartbeat(dry_run.carry_out(join))
        dry_run.joiners[join.url or member_id] = member_id
        yield from dry_run.settle()


def _join_heartbeat(dry_run: DryRun, member_id: str, change: WorkersJoined) -> Heartbeat:
    """Return the heartbeat with which a worker joins, with the metadata of its assignors.

    Raises `PlanError` if the worker has a capacity or tags, and no assignor that reports them.
    """
    group, able = dry_run.group, change.abilities
    members = (member.metadata for member in group.members.values())
    like = max(members, key=lambda each: (each.joined_epoch, each.member_id), default=FIRST)
    url = _free_url(group, like)
    worker = Worker(url.rpartition("/")[2], change.zone, able.tags, able.capacity)
    named = tuple(
        _describe(each, dry_run.assignors.get(each.name), worker) for each in like.assignors
    )
    if not named and able != ORDINARY:
        text = "the group computes for the workers that are added: they have no tags or capacity"
        raise PlanError(Error.INVALID_REQUEST, text)
    return Heartbeat(
        group.group_id,
        member_id,
        JOIN_EPOCH,
        incarnation=member_id,
        rack=change.zone,
        url=url,
        rebalance_timeout_ms=like.rebalance_timeout_ms,
        assignors=named or None,
        server_assignor=like.server_assignor,
        owned=(),
    )


def _describe(
    like: ClientAssignor, assignor: DryRunAssignor | None, worker: Worker
) -> ClientAssignor:
    if assignor is None:
        return replace(like, reason=0, metadata=plain_metadata(worker).content)
    metadata = assignor.metadata(worker)
    return replace(
        like, version=metadata.version, reason=metadata.reason, metadata=metadata.content
    )


def _free_url(group: Group, like: MemberMetadata) -> str:
    place = like.url.rpartition("/")[0]
    taken = {member.metadata.url for member in group.members.values()}
    taken |= {loss.url for loss in group.losses.values()}  # lost workers may return
    number = 1
    while f"{place}/w{number}" in taken:
        number += 1
    return f"{place}/w{number}"


def _remove(dry_run: DryRun, worker: str) -> Iterator[Step]:
    """Remove a worker as an operator does: it is drained, then leaves."""
    _command(dry_run, RemoveMember(dry_run.group.group_id, worker))
    yield from dry_run.settle()
    for again in [*due_removals(dry_run.group, dry_run.now_ms + GOODBYE_MS)]:
        _command(dry_run, again)


def _keeps_tasks(group: Group, put: PlannedConfig) -> bool:
    """Return whether a connector, which has its tasks, will not notice the config it is given."""
    before = group.connectors.get(put.connector)
    is_same = before is not None and work_in(before.config) == work_in(put.config)
    return is_same and put.connector in group.task_configs


def _split(dry_run: DryRun, connector: str, tasks: int) -> None:
    """Report new tasks of a connector from its worker; without a worker nothing changes."""
    group = dry_run.group
    holder = group.owner.get(Resource(connector))
    token = token_of(group, holder, Resource(connector)) if holder is not None else None
    if holder is None or token is None:
        return
    before = group.task_configs.get(connector)
    kept = tuple(task.config for task in before.tasks[:tasks]) if before else ()
    configs = (*kept, *({"task": str(number)} for number in range(len(kept), tasks)))
    _command(dry_run, PutTaskConfigs(group.group_id, holder, connector, token, configs))


def _check_exists(dry_run: DryRun, connector: str) -> None:
    found = dry_run.group.connectors.get(connector)
    if found is None or found.deleting:
        there = sorted(name for name, each in dry_run.group.connectors.items() if not each.deleting)
        known = f"there are {', '.join(there)}" if there else "the group has none"
        raise PlanError(Error.UNKNOWN_CONNECTOR, f"there is no connector {connector}: {known}")


def _command(dry_run: DryRun, command: Command) -> None:
    reply = dry_run.carry_out(command)
    if isinstance(reply, CommandReply) and reply.error is not Error.NONE:
        raise PlanError(reply.error, reply.message)


def _check_heartbeat(reply: object) -> None:
    if not isinstance(reply, HeartbeatReply):
        raise TypeError(f"a heartbeat was answered by {reply}")
    if reply.error not in {Error.NONE, Error.COMPUTE_ASSIGNMENT}:
        raise PlanError(reply.error, reply.message)
