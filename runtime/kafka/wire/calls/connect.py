"""Translates the proposals' three APIs of connect groups, for members that use Kafka's wire.

The requests become the same messages as those of the node's own workers.
"""
# pyright: basic

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from .....actors.messages.computing import (
    Assignment,
    Install,
    MemberView,
    Prepare,
    PrepareReply,
    Snapshot,
)
from .....actors.messages.errors import MEANINGS
from .....actors.messages.groups import ConnectCall, ConnectReply, Outlook
from .....actors.messages.members import JOIN_EPOCH, Heartbeat, HeartbeatReply, ReadConfigs
from .....events.model import CONNECTOR, AssignorData, ClientAssignor, Grants, Resource
from .. import connect_messages as wire
from ..bounds import FrameRefused
from ..frames import Request

LARGEST_INT16: Final = (1 << 15) - 1
LARGEST_INT8: Final = (1 << 7) - 1
NO_TASK: Final = CONNECTOR - 1
"""Replaces negative task numbers: an invalid task, which is refused later, not a connector."""


def ask_connect_heartbeat(request: Request, client_host: str) -> Sequence[ConnectCall]:
    """Translate a ConnectGroupHeartbeat request; a join has the client's address as well."""
    message, is_join = request.message, request.message.member_epoch == JOIN_EPOCH
    assignors, owned = message.client_assignors, message.connectors_and_tasks
    heartbeat = Heartbeat(
        message.group_id,
        message.member_id,
        message.member_epoch,
        message.incarnation,
        message.sequence,
        message.instance_id,
        message.rack_id,
        message.url,
        request.client_id or None if is_join else None,
        client_host if is_join else None,
        message.rebalance_timeout_ms,
        message.session_timeout_ms,
        None if assignors is None else tuple(map(_assignor, assignors)),
        message.server_assignor,
        None if owned is None else tuple(_resources(owned)),
        coordinator_epoch=message.coordinator_epoch,
        configs=_read_configs(message),
    )
    return [ConnectCall(heartbeat)]


def _read_configs(message: Any) -> ReadConfigs | None:
    """Return what the member has read of configs in another log; None: it does not say."""
    if message.config_offset < 0:
        return None
    return ReadConfigs(frozenset(_resources(message.configured)), message.config_offset)


def _assignor(assignor: Any) -> ClientAssignor:
    versions = assignor.minimum_version, assignor.maximum_version, assignor.version
    return ClientAssignor(assignor.name, *versions, assignor.reason, assignor.metadata)


def _resources(asked: Any) -> Iterator[Resource]:
    yield from map(Resource, asked.connectors)
    for each in asked.tasks:
        for number in each.tasks:
            yield Resource(each.connector, number if number >= 0 else NO_TASK)


def ask_to_prepare(request: Request, _: str) -> Sequence[ConnectCall]:
    """Translate a ConnectGroupPrepareAssignment request."""
    asked = request.message
    return [ConnectCall(Prepare(asked.group_id, asked.member_id, asked.member_epoch))]


def ask_to_install(request: Request, _: str) -> Sequence[ConnectCall]:
    """Translate a ConnectGroupInstallAssignment request."""
    message = request.message
    install = Install(
        message.group_id,
        message.member_id,
        message.member_epoch,
        message.group_epoch,
        None if message.error else _assignment(message),
        f"the member's assignor failed with code {message.error}" if message.error else "",
        message.snapshot_id,
        message.error,
    )
    return [ConnectCall(install)]


def _assignment(install: Any) -> Assignment:
    shares: dict[str, set[Resource]] = {}
    for each in install.members:
        shares.setdefault(each.member_id, set()).update(_resources(each.connectors_and_tasks))
    return Assignment(
        {member_id: frozenset(share) for member_id, share in shares.items()},
        dict(_by_resource(install.parked, "deadline_ms")),
        dict(_by_resource(install.unplaceable, "reason")),
        install.version,
        install.metadata,
        install.again_at_ms,
        {each.member_id: AssignorData(each.version, each.metadata) for each in install.members},
    )


def _by_resource(groups: Iterable[Any], attribute: str) -> Iterator[tuple[Resource, Any]]:
    for group in groups:
        for resource in _resources(group.connectors_and_tasks):
            yield resource, getattr(group, attribute)


def answer_connect(_: Request, kind: Any, replies: Sequence[ConnectReply]) -> Any:
    """Build the response to any of these requests; raises `FrameRefused` if there is none."""
    reply = replies[0].reply
    if reply is None:
        raise FrameRefused("superseded", "the group has left it unanswered: ask anew")
    error = {"error_code": MEANINGS[reply.error].code, "error_message": reply.message or None}
    if isinstance(reply, HeartbeatReply):
        return kind(**error, **_heartbeat_fields(reply, replies[0].outlook))
    if isinstance(reply, PrepareReply) and reply.snapshot is not None:
        return kind(**error, **_snapshot_fields(reply.snapshot))
    return kind(**error)


def _heartbeat_fields(reply: HeartbeatReply, outlook: Outlook | None) -> Mapping[str, Any]:
    assignment = None
    if reply.assignment is not None:
        assignment = wire.AssignedWork(
            error=max(-LARGEST_INT8, min(reply.error_code, LARGEST_INT8)),
            connectors_and_tasks=to_wire(reply.assignment),
            version=max(-LARGEST_INT16, min(reply.data.version, LARGEST_INT16)),
            metadata=reply.data.metadata,
        )
    return {
        "throttle_time_ms": reply.throttle_time_ms,
        "member_id": reply.member_id,
        "member_epoch": reply.member_epoch,
        "heartbeat_interval_ms": reply.heartbeat_interval_ms,
        "assignment": assignment,
        "incarnation": reply.incarnation,
        "sequence": reply.sequence,
        "session_timeout_ms": reply.session_timeout_ms,
        "log_offset": reply.log_offset,
        "coordinator_epoch": reply.coordinator_epoch,
        "config_offset": reply.config_offset,
        **(_outlook_fields(outlook) if outlook else {}),
    }


def _outlook_fields(outlook: Outlook) -> Mapping[str, Any]:
    return {
        "parked": tuple(_deadlines(outlook.parked)),
        "again_at_ms": outlook.again_at_ms,
        "awaited": to_wire(outlook.awaited),
        "pending": to_wire(outlook.pending),
        "reason": outlook.reason,
    }


def _deadlines(parked: Grants) -> Iterator[wire.Deadline]:
    """Yield parked resources by their deadlines, which many share."""
    by_time: dict[int, list[Resource]] = {}
    for resource, until_ms in parked.items():
        by_time.setdefault(until_ms, []).append(resource)
    for until_ms, resources in sorted(by_time.items()):
        yield wire.Deadline(deadline_ms=until_ms, connectors_and_tasks=to_wire(resources))


def to_wire(resources: Iterable[Resource]) -> wire.ConnectorsAndTasks:
    """Return resources as the messages have them."""
    tasks: dict[str, list[int]] = {}
    connectors: list[str] = []
    for each in sorted(resources):
        if each.is_task:
            tasks.setdefault(each.connector, []).append(each.task)
        else:
            connectors.append(each.connector)
    return wire.ConnectorsAndTasks(
        connectors=tuple(connectors),
        tasks=tuple(
            wire.ConnectorTasks(connector=name, tasks=tuple(numbers))
            for name, numbers in tasks.items()
        ),
    )


def _snapshot_fields(snapshot: Snapshot) -> Mapping[str, Any]:
    return {
        "group_epoch": snapshot.group_epoch,
        "assignor_name": snapshot.assignor,
        "members": tuple(map(_member, snapshot.members.values())),
        "configured": to_wire(snapshot.configured),
        "snapshot_id": snapshot.snapshot_id,
        "assignment_epoch": snapshot.assignment_epoch,
        "now_ms": snapshot.now_ms,
        "metadata": snapshot.assignor_metadata,
        "losses": tuple(
            wire.ParkableLoss(
                member_id=each.member_id,
                instance_id=each.instance_id,
                url=each.url,
                deadline_ms=each.deadline_ms,
                connectors_and_tasks=to_wire(each.resources),
            )
            for each in snapshot.losses
        ),
        "parked": tuple(
            wire.Deadline(deadline_ms=until_ms, connectors_and_tasks=to_wire([resource]))
            for resource, until_ms in sorted(snapshot.parked.items())
        ),
        "fired": to_wire(snapshot.fired),
        "demands": tuple(_demands(snapshot)),
    }


def _member(member: MemberView) -> wire.PreparedMember:
    version = max(-1, min(member.version, LARGEST_INT16))
    state = wire.AssignorState(
        version=version, reason=min(member.reason, LARGEST_INT8), metadata=member.metadata
    )
    return wire.PreparedMember(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        instance_id=member.instance_id,
        assignor=state,
        connectors_and_tasks=to_wire(member.target),
        owned=to_wire(member.owned),
        url=member.url,
        rack_id=member.rack,
        cordoned=member.cordoned,
        draining=member.draining,
        worker=member.worker,
    )


def _demands(snapshot: Snapshot) -> Iterator[wire.WorkDemand]:
    """Yield the demands of each resource that has any."""
    for each in sorted(snapshot.configured):
        weight, workers = snapshot.weights.get(each, 1), snapshot.pins.get(each, ())
        needs = snapshot.needs.get(each.connector)
        if weight != 1 or workers or needs:
            yield wire.WorkDemand(
                connector=each.connector,
                task=each.task,
                weight=weight,
                workers=workers,
                zones=tuple(sorted(needs.zones)) if needs else (),
                tags=tuple(sorted(needs.tags)) if needs else (),
                any_work=needs.any_work if needs else False,
            )
