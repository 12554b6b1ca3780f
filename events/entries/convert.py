"""Records to their wire values and back; one pair of functions for each that differs."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from .. import records
from ..model import (
    Advance,
    Cause,
    ClientAssignor,
    Commit,
    CommitId,
    Lag,
    Manifest,
    MemberState,
    Part,
    Resource,
    RunState,
    Scope,
    Succession,
    TaskConfig,
    Token,
    Why,
)
from . import wire
from .resource_lists import (
    by_connector,
    from_connectors,
    grants_by_connector,
    grants_from_connectors,
    lift_grants,
    lift_resources,
    lower_grants,
    lower_resources,
)

STATES = {state.value: state for state in MemberState}
CAUSES = {why.value: why for why in Why}
RUN_STATES = {state.value: state for state in RunState}


def lower(record: records.Record) -> msgspec.Struct:
    """Return the record's wire value."""
    return LOWER[type(record)](record)


def lift(value: msgspec.Struct) -> records.Record:
    """Return the record that a wire value tells of."""
    return LIFT[type(value)](value)


def _lower_current(record: records.CurrentAssignment) -> wire.CurrentAssignmentWire:
    assigned, assigned_epochs = lower_grants(record.assigned)
    pending, pending_epochs = lower_grants(record.pending)
    return wire.CurrentAssignmentWire(
        record.member_id,
        record.member_epoch,
        record.previous_epoch,
        int(record.state),
        assigned,
        pending,
        assigned_epochs,
        pending_epochs,
        record.assignor_error,
        record.shards,
    )


def _lift_current(value: wire.CurrentAssignmentWire) -> records.CurrentAssignment:
    return records.CurrentAssignment(
        value.member_id,
        value.member_epoch,
        value.previous_epoch,
        STATES.get(value.state, MemberState.UNKNOWN),
        lift_grants(value.assigned, value.assigned_epochs),
        lift_grants(value.pending, value.pending_epochs),
        value.assignor_error,
        value.shards,
    )


def _lower_current_shard(record: records.CurrentShard) -> wire.CurrentShardWire:
    assigned, pending = grants_by_connector(record.assigned), grants_by_connector(record.pending)
    return wire.CurrentShardWire(record.member_id, record.number, assigned, pending)


def _lift_current_shard(value: wire.CurrentShardWire) -> records.CurrentShard:
    return records.CurrentShard(
        value.member_id,
        value.number,
        grants_from_connectors(value.assigned),
        grants_from_connectors(value.pending),
    )


def _lower_cause(cause: Cause) -> wire.CauseWire:
    return wire.CauseWire(cause.why.value, cause.subject)


def _lift_cause(value: wire.CauseWire) -> Cause:
    why = CAUSES.get(value.why)
    return (
        Cause(Why.UNKNOWN, f"{value.why} {value.subject}")
        if why is None
        else Cause(why, value.subject)
    )


def _lower_group(record: records.GroupMetadata) -> wire.GroupMetadataWire:
    cause = _lower_cause(record.cause)
    return wire.GroupMetadataWire(
        record.group_epoch, cause, record.time_ms, record.actor, record.since_ms
    )


def _lift_group(value: wire.GroupMetadataWire) -> records.GroupMetadata:
    cause = _lift_cause(value.cause)
    return records.GroupMetadata(
        value.group_epoch, cause, value.time_ms, value.actor, value.since_ms
    )


def _lower_member(record: records.MemberMetadata) -> wire.MemberMetadataWire:
    fields = _fields(record)
    fields["assignors"] = [wire.AssignorWire(**_fields(each)) for each in record.assignors]
    if record.succession is not None:
        fields["succession"] = wire.SuccessionWire(*record.succession)
    return wire.MemberMetadataWire(**fields)


def _lift_member(value: wire.MemberMetadataWire) -> records.MemberMetadata:
    fields = msgspec.structs.asdict(value)
    assignors = (ClientAssignor(**msgspec.structs.asdict(each)) for each in value.assignors)
    fields["assignors"] = tuple(assignors)
    if value.succession is not None:
        fields["succession"] = Succession(*msgspec.structs.astuple(value.succession))
    return records.MemberMetadata(**fields)


def _lower_target(record: records.TargetAssignment) -> wire.TargetAssignmentWire:
    fields = _fields(record)
    fields["members"] = [
        wire.ShareWire(member_id, lower_resources(share))
        for member_id, share in sorted(record.members.items())
    ]
    fields["unplaceable"] = _lower_reasons(record.unplaceable)
    return wire.TargetAssignmentWire(**fields)


def _lift_target(value: wire.TargetAssignmentWire) -> records.TargetAssignment:
    fields = msgspec.structs.asdict(value)
    fields["members"] = {
        share.member_id: frozenset(lift_resources(share.resources)) for share in value.members
    }
    fields["unplaceable"] = _lift_reasons(value.unplaceable)
    return records.TargetAssignment(**fields)


def _lower_target_shard(record: records.TargetShard) -> wire.TargetShardWire:
    members = {
        member_id: by_connector(share) for member_id, share in sorted(record.members.items())
    }
    return wire.TargetShardWire(record.number, members, _lower_reasons(record.unplaceable))


def _lift_target_shard(value: wire.TargetShardWire) -> records.TargetShard:
    members = {member_id: from_connectors(share) for member_id, share in value.members.items()}
    return records.TargetShard(value.number, members, _lift_reasons(value.unplaceable))


def _lower_reasons(reasons: Mapping[Resource, str]) -> list[wire.ReasonWire]:
    return [wire.ReasonWire(*resource, reason) for resource, reason in sorted(reasons.items())]


def _lift_reasons(values: Iterable[wire.ReasonWire]) -> dict[Resource, str]:
    return {Resource(each.connector, each.task): each.reason for each in values}


def _lower_task_configs(record: records.TaskConfigs) -> wire.TaskConfigsWire:
    tasks = [wire.TaskConfigWire(dict(each.config), each.generation) for each in record.tasks]
    return wire.TaskConfigsWire(record.connector, record.generation, tasks)


def _lift_task_configs(value: wire.TaskConfigsWire) -> records.TaskConfigs:
    tasks = tuple(TaskConfig(each.config, each.generation) for each in value.tasks)
    return records.TaskConfigs(value.connector, value.generation, tasks)


def _lower_status(record: records.TaskStatus) -> wire.TaskStatusWire:
    return wire.TaskStatusWire(
        *record.resource,
        record.state.value,
        record.worker,
        *record.token,
        record.time_ms,
        record.reason,
    )


def _lift_status(value: wire.TaskStatusWire) -> records.TaskStatus:
    return records.TaskStatus(
        Resource(value.connector, value.task),
        RUN_STATES.get(value.state, RunState.UNASSIGNED),
        value.worker,
        Token(value.grant_epoch, value.generation),
        value.time_ms,
        value.reason,
    )


def _lower_schedule(record: records.ScheduledRebalance) -> wire.ScheduledRebalanceWire:
    by_deadline: dict[int, list[Resource]] = {}
    for resource, deadline_ms in record.parked.items():
        by_deadline.setdefault(deadline_ms, []).append(resource)
    parked = [
        wire.DeadlineWire(deadline_ms, lower_resources(resources))
        for deadline_ms, resources in sorted(by_deadline.items())
    ]
    return wire.ScheduledRebalanceWire(parked, lower_resources(record.fired), record.again_at_ms)


def _lift_schedule(value: wire.ScheduledRebalanceWire) -> records.ScheduledRebalance:
    parked = {
        resource: each.deadline_ms
        for each in value.parked
        for resource in lift_resources(each.resources)
    }
    fired = frozenset(lift_resources(value.fired))
    return records.ScheduledRebalance(parked, fired, value.again_at_ms)


def _lower_operator(record: records.Operator) -> wire.OperatorWire:
    fields = _fields(record)
    fields["scope"] = record.scope.value
    fields["pins"] = list(record.pins)
    return wire.OperatorWire(**fields)


def _lift_operator(value: wire.OperatorWire) -> records.Operator:
    fields = msgspec.structs.asdict(value)
    fields["scope"] = Scope(value.scope)
    fields["pins"] = tuple(value.pins)
    return records.Operator(**fields)


def _lower_loss(record: records.Loss) -> wire.LossWire:
    fields = _fields(record)
    fields["resources"] = lower_resources(record.resources)
    fields["cause"] = _lower_cause(record.cause)
    return wire.LossWire(**fields)


def _lift_loss(value: wire.LossWire) -> records.Loss:
    fields = msgspec.structs.asdict(value)
    fields["resources"] = frozenset(lift_resources(value.resources))
    fields["cause"] = _lift_cause(value.cause)
    return records.Loss(**fields)


def _lower_commit_id(value: CommitId) -> wire.CommitIdWire:
    return wire.CommitIdWire(value.connector, value.task, *value.token, value.batch)


def _lift_commit_id(value: wire.CommitIdWire) -> CommitId:
    token = Token(value.grant_epoch, value.generation)
    return CommitId(value.connector, value.task, token, value.batch)


def _lower_committed(record: records.Committed) -> wire.CommittedWire:
    commit = record.commit
    advances = [
        wire.AdvanceWire(dict(each.partition), _maybe(each.start), _maybe(each.end))
        for each in commit.advances
    ]
    manifest = _lower_manifest(commit.manifest)
    commit_id = _lower_commit_id(commit.commit_id)
    return wire.CommittedWire(
        commit_id, advances, manifest, commit.rows_in, record.time_ms, _lower_lag(commit.lag)
    )


def _lift_committed(value: wire.CommittedWire) -> records.Committed:
    advances = tuple(Advance(each.partition, each.start, each.end) for each in value.advances)
    manifest = _lift_manifest(value.manifest)
    commit_id, lag = _lift_commit_id(value.commit_id), _lift_lag(value.lag)
    return records.Committed(
        Commit(commit_id, advances, manifest, value.rows_in, lag), value.time_ms
    )


def _lower_manifest(manifest: Manifest) -> wire.ManifestWire:
    fields = _fields(manifest)
    fields["parts"] = [wire.PartWire(*each) for each in manifest.parts]
    return wire.ManifestWire(**fields)


def _lift_manifest(value: wire.ManifestWire) -> Manifest:
    fields = msgspec.structs.asdict(value)
    fields["parts"] = tuple(Part(each.path, each.bytes, each.rows) for each in value.parts)
    return Manifest(**fields)


def _lower_progress(record: records.TaskProgress) -> wire.TaskProgressWire:
    fields = _fields(record)
    fields["last"] = _lower_commit_id(record.last)
    fields["filled"] = None if record.filled is None else _lower_commit_id(record.filled)
    fields["lag"] = _lower_lag(record.lag)
    return wire.TaskProgressWire(**fields)


def _lift_progress(value: wire.TaskProgressWire) -> records.TaskProgress:
    fields = msgspec.structs.asdict(value)
    fields["last"] = _lift_commit_id(value.last)
    fields["lag"] = _lift_lag(value.lag)
    fields["filled"] = None if value.filled is None else _lift_commit_id(value.filled)
    return records.TaskProgress(**fields)


def _lower_lag(lag: Lag | None) -> wire.LagWire | None:
    return None if lag is None else wire.LagWire(lag.ranges, lag.bytes)


def _lift_lag(value: wire.LagWire | None) -> Lag | None:
    return None if value is None else Lag(value.ranges, value.bytes)


def _maybe(document: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if document is None else dict(document)


def _fields(value: Any) -> dict[str, Any]:
    """Return a slotted dataclass's own fields, not those of the values in it."""
    return {name: getattr(value, name) for name in value.__slots__}


LOWER: dict[type, Callable[[Any], msgspec.Struct]] = {
    records.GroupMetadata: _lower_group,
    records.ConnectorsTasksMetadata: lambda record: wire.ConnectorsTasksMetadataWire(
        lower_resources(record.configured), record.shards
    ),
    records.MemberMetadata: _lower_member,
    records.TargetAssignment: _lower_target,
    records.CurrentAssignment: _lower_current,
    records.ConnectorConfig: lambda record: wire.ConnectorConfigWire(**_fields(record)),
    records.TaskConfigs: _lower_task_configs,
    records.TaskStatus: _lower_status,
    records.ScheduledRebalance: _lower_schedule,
    records.GroupConfiguration: lambda record: wire.GroupConfigurationWire(dict(record.configs)),
    records.Operator: _lower_operator,
    records.Loss: _lower_loss,
    records.GroupDeletion: lambda record: wire.GroupDeletionWire(**_fields(record)),
    records.Offset: lambda record: wire.OffsetWire(**_fields(record)),
    records.Committed: _lower_committed,
    records.TaskProgress: _lower_progress,
    records.ConfiguredShard: lambda record: wire.ConfiguredShardWire(
        record.number, by_connector(record.configured)
    ),
    records.TargetShard: _lower_target_shard,
    records.CurrentShard: _lower_current_shard,
}
LIFT: dict[type, Callable[[Any], records.Record]] = {
    wire.GroupMetadataWire: _lift_group,
    wire.ConnectorsTasksMetadataWire: lambda value: records.ConnectorsTasksMetadata(
        frozenset(lift_resources(value.configured)), value.shards
    ),
    wire.MemberMetadataWire: _lift_member,
    wire.TargetAssignmentWire: _lift_target,
    wire.CurrentAssignmentWire: _lift_current,
    wire.ConnectorConfigWire: lambda value: records.ConnectorConfig(
        **msgspec.structs.asdict(value)
    ),
    wire.TaskConfigsWire: _lift_task_configs,
    wire.TaskStatusWire: _lift_status,
    wire.ScheduledRebalanceWire: _lift_schedule,
    wire.GroupConfigurationWire: lambda value: records.GroupConfiguration(value.configs),
    wire.OperatorWire: _lift_operator,
    wire.LossWire: _lift_loss,
    wire.GroupDeletionWire: lambda value: records.GroupDeletion(**msgspec.structs.asdict(value)),
    wire.OffsetWire: lambda value: records.Offset(**msgspec.structs.asdict(value)),
    wire.CommittedWire: _lift_committed,
    wire.TaskProgressWire: _lift_progress,
    wire.ConfiguredShardWire: lambda value: records.ConfiguredShard(
        value.number, from_connectors(value.configured)
    ),
    wire.TargetShardWire: _lift_target_shard,
    wire.CurrentShardWire: _lift_current_shard,
}
