"""Describes the records of a group's log, each in one line, in the terms of the protocol.

A `Narrator` reads a log in order and notes each member that occurs, so that a later record, which
has only the member's id, is told with the name of the worker or of the Kafka client. `TELL` has one
function for each type of record; a test fails if a type has none. Records of groups of Kafka's
clients (generations, subscriptions, their offsets) stand beside those of groups of workers.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .....events import records
from .....events.commits import (
    Committed,
    ConsumerOffset,
    Document,
    Offset,
    PendingOffset,
    TaskProgress,
    identity,
)
from .....events.model import Cause, ClassicMember, Resource, Scope
from .....events.records import (
    ConnectorConfig,
    ConsumerSubscription,
    OffsetsAltered,
    Record,
    SubscribedTopics,
    TargetState,
    TaskConfigs,
    TaskStatus,
)
from ...replies.building.clients import read_shares
from ..output.member_names import MemberNames
from ..output.phrases import (
    SHORT_ID,
    format_cause,
    format_resource_set,
    format_time,
    shorten_worker,
)


class Narrator:
    """Describes records; it keeps the name of each member that has occurred."""

    def __init__(self, seen: Iterable[Record | None] = ()) -> None:
        self.names = MemberNames()
        for record in seen:
            self.names.note(record)

    def tell(self, record: Record) -> str:
        """Describe the content of a record, without its offset, time and type."""
        self.names.note(record)
        return TELL[type(record)](self, record)

    def who(self, member_id: str) -> str:
        """Return `w1(1b9d6bcd)`: a member by its worker's name or client id, and its id's start."""
        return self.names.short_name(member_id)


def _because(narrator: Narrator, cause: Cause) -> str:
    return narrator.names.format_cause(cause.why.value, cause.subject)


def _bump(narrator: Narrator, record: records.GroupMetadata) -> str:
    asked = f" (asked by {record.actor})" if record.actor else ""
    return f"group epoch {record.group_epoch}: {_because(narrator, record.cause)}{asked}"


def _configured(_: Narrator, record: records.ConnectorsTasksMetadata) -> str:
    return f"configured: {_in_parts(record.parts) or format_resource_set(record.configured)}"


def _in_parts(count: int) -> str:
    """Return in how many further records the resources of a large one are; "" for a small one."""
    return f"what {count} shards say by now" if count else ""


def _configured_part(_: Narrator, record: records.ConfiguredPart) -> str:
    return f"shard {record.number}: {format_resource_set(record.configured)}"


def _member(narrator: Narrator, record: records.MemberMetadata) -> str:
    assignors = ", ".join(each.name for each in record.assignors)
    facts = (
        f"joined for epoch {record.joined_epoch}",
        record.url and f"at {record.url}",
        assignors and f"assignors {assignors}",
        f"speaks the classic protocol, {record.classic.protocol}" if record.classic else "",
        f"rebalance timeout {record.rebalance_timeout_ms} ms",
    )
    return f"{narrator.who(record.member_id)} {', '.join(filter(None, facts))}"


def _shares(narrator: Narrator, record: records.TargetAssignment | records.TargetPart) -> str:
    shares = "; ".join(
        f"{narrator.who(member_id)} = {format_resource_set(record.members[member_id])}"
        for member_id in sorted(record.members)
    )
    left_out = (
        f"; unplaceable: {format_resource_set(record.unplaceable)}" if record.unplaceable else ""
    )
    return f"{shares or 'nobody'}{left_out}"


def _target_part(narrator: Narrator, record: records.TargetPart) -> str:
    return f"shard {record.number}: {_shares(narrator, record)}"


def _target(narrator: Narrator, record: records.TargetAssignment) -> str:
    if record.error:
        return (
            f"assignment epoch {record.assignment_epoch} keeps the old target: attempt"
            f" {record.failures} failed, {record.error}"
        )
    by = f" by {record.assignor}" if record.assignor else ""
    shares = _in_parts(record.parts) or _shares(narrator, record)
    return f"assignment epoch {record.assignment_epoch}{by}: {shares}"


def _step(narrator: Narrator, record: records.CurrentAssignment) -> str:
    return (
        f"{narrator.who(record.member_id)} epoch {record.previous_epoch} -> {record.member_epoch}"
        f" {record.state.name}: holds {_in_parts(record.parts) or _grants(record)}"
    )


def _current_part(narrator: Narrator, record: records.CurrentPart) -> str:
    return f"{narrator.who(record.member_id)} shard {record.number}: holds {_grants(record)}"


def _grants(record: records.CurrentAssignment | records.CurrentPart) -> str:
    gives_up = f", gives up {format_resource_set(record.pending)}" if record.pending else ""
    return f"{format_resource_set(record.assigned)}{gives_up}"


def _settings(_: Narrator, record: records.GroupConfiguration) -> str:
    return ", ".join(f"{name}={record.configs[name]}" for name in sorted(record.configs)) or "none"


def _order(_: Narrator, record: records.Operator) -> str:
    is_worker = record.scope is Scope.WORKER
    subject = shorten_worker(record.name) if is_worker else Resource(record.name, record.task)
    facts: list[str] = []
    if record.cordoned:
        facts.append("cordoned")
    if record.draining:
        facts.append("to be drained")
    if record.expected_back_ms:
        facts.append(f"expected back by {format_time(record.expected_back_ms)}")
    if record.removing:
        how = "" if record.gently else " by force"
        facts.append(f"member {record.removing[:SHORT_ID]} to be removed{how}")
    if record.weight != 1:
        facts.append(f"weighs {record.weight}")
    if record.pins:
        facts.append(f"only on {', '.join(map(shorten_worker, record.pins))}")
    asked = f" (asked by {record.actor})" if record.actor else ""
    return f"{record.scope.value} {subject}: {', '.join(facts) or 'no order'}{asked}"


def _deletion(_: Narrator, record: records.GroupDeletion) -> str:
    asked = f" (asked by {record.actor})" if record.actor else ""
    return f"the group was deleted at group epoch {record.group_epoch}{asked}"


def _owner(_: Narrator, record: records.OwnerBegan) -> str:
    silence = f", after {record.silence_ms / 1_000:.1f} s of silence" if record.silence_ms else ""
    where = f" at {record.address}" if record.address else ""
    ran = f", with fairlead {record.version}" if record.version else ""
    return f"node {record.node}{where} owns the group as owner {record.epoch}{silence}{ran}"


def _resigned(_: Narrator, record: records.OwnerResigned) -> str:
    taker = f"node {record.to}" if record.to else "any other"
    return f"node {record.node}, owner {record.epoch}, gives the group up to {taker}"


def _connector(_: Narrator, record: ConnectorConfig) -> str:
    made_by = record.config.get("connector.class", "").rpartition(".")[2]
    facts = f"version {record.version}, {made_by or 'no class'}, {len(record.config)} keys"
    ending = ", is being deleted" if record.deleting else ""
    kept = ", its source is to remove what it keeps outside" if record.to_forget else ""
    lost = f", {record.given_up} unpublished batches are given up" if record.given_up else ""
    return f"{record.connector} {facts}{ending}{kept}{lost}"


def _split(_: Narrator, record: TaskConfigs) -> str:
    return f"{record.connector} generation {record.generation}: {len(record.tasks)} tasks"


def _wanted(_: Narrator, record: TargetState) -> str:
    if record.is_complete:
        return f"{record.connector} is stopped: all that counts is published"
    asked = f" (asked by {record.actor})" if record.actor else ""
    return f"{record.connector} is to be {record.state.value}{asked}"


def _offsets_altered(_: Narrator, record: OffsetsAltered) -> str:
    asked = f" (asked by {record.actor})" if record.actor else ""
    return f"{record.connector} offsets {record.how}: {record.partitions} partitions{asked}"


def _status(_: Narrator, record: TaskStatus) -> str:
    why = f": {record.reason.strip().partition(chr(10))[0]}" if record.reason else ""
    return (
        f"{record.resource} {record.state.value} at {shorten_worker(record.worker)},"
        f" token {record.token}{why}"
    )


def _schedule(_: Narrator, record: records.ScheduledRebalance) -> str:
    waiting = {each: due for each, due in record.parked.items() if each not in record.fired}
    more = f", fired: {format_resource_set(record.fired)}" if record.fired else ""
    more += f", more moves at {format_time(record.again_at_ms)}" if record.again_at_ms else ""
    if not waiting:
        return f"nothing is parked{more}"
    first = format_time(min(waiting.values()))
    return f"parked: {format_resource_set(waiting)}, the first until {first}{more}"


def _loss(narrator: Narrator, record: records.Loss) -> str:
    return (
        f"{narrator.who(record.member_id)} lost {format_resource_set(record.resources)}:"
        f" {format_cause(record.cause)}, parked at most until {format_time(record.deadline_ms)}"
    )


def _generation(narrator: Narrator, record: records.ClassicGroup) -> str:
    cause = _because(narrator, record.cause)
    subject = f"classic generation {record.generation}: {cause}"
    if not record.members:
        return f"{subject}; nobody is in it"
    content = ", ".join(sorted(_name_in_generation(narrator, each) for each in record.members))
    if record.is_synced and (by_member := read_shares(record)) is not None:
        shares = (
            f"{_name_in_generation(narrator, each)} = {format_resource_set(share)}"
            for each in record.members
            for share in [by_member[each.member_id]]
        )
        content = "; ".join(sorted(shares))
    phase = "assigned" if record.is_synced else "to be assigned"
    led = f"led by {narrator.names.full_name(record.leader)}"
    return f"{subject}; {record.protocol_type} {record.protocol}, {led}, {phase}: {content}"


def _name_in_generation(narrator: Narrator, member: ClassicMember) -> str:
    name = narrator.names.full_name(member.member_id)
    return name if name != member.member_id else member.instance_id or name


def _topics(_: Narrator, record: SubscribedTopics) -> str:
    told = (
        f"{name} ({'given up' if each.is_released else each.partitions})"
        for name, each in sorted(record.topics.items())
    )
    return f"topics, with their partitions: {', '.join(told) or 'none'}"


def _subscription(narrator: Narrator, record: ConsumerSubscription) -> str:
    pattern = f", {record.pattern!r}: {', '.join(record.matched)}" if record.pattern else ""
    by_name = ", ".join(record.names) or "no topic by name"
    return f"{narrator.who(record.member_id)} subscribes to {by_name}{pattern}"


def _read_offset(_: Narrator, record: ConsumerOffset) -> str:
    note = f", {record.metadata!r}" if record.metadata else ""
    return f"{record.topic}-{record.partition} is read up to {record.offset}{note}"


def _pending_offset(narrator: Narrator, record: PendingOffset) -> str:
    return f"{_read_offset(narrator, record.offset)}, once {record.transactional_id} commits"


def _offset(_: Narrator, record: Offset) -> str:
    return f"{record.connector} {identity(record.partition)}: {_flat(record.offset)}"


def _committed(_: Narrator, record: Committed) -> str:
    commit_id, manifest = record.commit.commit_id, record.commit.manifest
    return (
        f"{Resource(commit_id.connector, commit_id.task)} batch {commit_id.batch},"
        f" token {commit_id.token}: {record.commit.rows_in} rows in, {manifest.rows} rows out,"
        f" {manifest.bytes} bytes in {manifest.files} files"
        + (f", {record.commit.skipped} bad rows left out" if record.commit.skipped else "")
    )


def _progress(_: Narrator, record: TaskProgress) -> str:
    return (
        f"{Resource(record.last.connector, record.last.task)} in all: {record.batches} batches,"
        f" {record.rows_in} rows in, {record.rows_out} rows out, {record.bytes_out} bytes"
        + (f", {record.skipped} bad rows left out" if record.skipped else "")
        + (f", {record.lag.bytes} bytes still to read" if record.lag else "")
    )


def _tombstone(narrator: Narrator, record: records.Tombstone) -> str:
    by_member = {
        *(records.MemberMetadata, records.CurrentAssignment, records.Loss, ConsumerSubscription)
    }
    if record.kind in by_member and record.key:
        return f"gone: {narrator.who(str(record.key[0]))}"
    if record.kind is records.CurrentPart:
        return f"gone: {narrator.who(str(record.key[0]))} shard {record.key[1]}"
    if record.kind is records.Operator:
        scope, name, task = record.key
        is_worker = scope == Scope.WORKER.value
        subject = shorten_worker(str(name)) if is_worker else Resource(str(name), int(task))
        return f"gone: {scope} {subject}"
    return f"gone: {' '.join(map(str, record.key)) or 'it'}"


def _flat(document: Document) -> str:
    return ", ".join(f"{key}={document[key]!r}" for key in sorted(document))


TELL: Mapping[type, Callable[[Narrator, Any], str]] = {
    records.GroupMetadata: _bump,
    records.ConnectorsTasksMetadata: _configured,
    records.MemberMetadata: _member,
    records.TargetAssignment: _target,
    records.CurrentAssignment: _step,
    records.ConfiguredPart: _configured_part,
    records.TargetPart: _target_part,
    records.CurrentPart: _current_part,
    records.GroupConfiguration: _settings,
    records.Operator: _order,
    records.GroupDeletion: _deletion,
    records.OwnerBegan: _owner,
    records.OwnerResigned: _resigned,
    records.ClassicGroup: _generation,
    SubscribedTopics: _topics,
    ConsumerSubscription: _subscription,
    ConsumerOffset: _read_offset,
    PendingOffset: _pending_offset,
    ConnectorConfig: _connector,
    TaskConfigs: _split,
    TargetState: _wanted,
    OffsetsAltered: _offsets_altered,
    TaskStatus: _status,
    records.ScheduledRebalance: _schedule,
    records.Loss: _loss,
    Offset: _offset,
    Committed: _committed,
    TaskProgress: _progress,
    records.Tombstone: _tombstone,
}
