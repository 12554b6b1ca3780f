"""Groups of Kafka's clients as tables: who is in them, who has what, and how far it was read."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...replies.clients import GenerationDescription, SubscriptionDescription, TopicDescription
from ...replies.groups import GroupDescription, GroupSummary
from ...replies.node import MemberDescription
from ..output.phrases import format_ids, format_time
from ..output.printing import FactList, Section, Table

if TYPE_CHECKING:  # a group's records and their causes: a list of groups does without them
    from ..output.member_names import MemberNames


def groups(reply: Sequence[GroupSummary]) -> list[Section]:
    """Return the table of those among the groups of `/groups`; nothing where there are none."""
    columns = ("GROUP", "TYPE", "PROTOCOL", "STATE", "EPOCH", "MEMBERS", "PARTITIONS", "ASSIGNOR")
    rows = [
        (
            each.group_id,
            each.type,
            _protocol_type(each),
            each.state,
            str(each.group_epoch),
            str(each.members),
            f"{each.assigned}/{each.configured}" if each.configured else str(each.assigned),
            each.assignor,
        )
        for each in reply
        if each.shard is not None
    ]
    return [Table(columns, rows, title="Groups of Kafka's clients")] if rows else []


def counts(reply: Sequence[GroupSummary]) -> list[Section]:
    """Return how many of them are in each state, with how many members."""
    of_clients = [each for each in reply if each.shard is not None]
    found = Counter((each.type, each.state) for each in of_clients)
    members = Counter[tuple[str, str]]()
    for each in of_clients:
        members[each.type, each.state] += each.members
    rows = [(*each, str(found[each]), str(members[each])) for each in sorted(found)]
    title = "Groups of Kafka's clients"
    return [Table(("TYPE", "STATE", "GROUPS", "MEMBERS"), rows, title=title)] if rows else []


def group(reply: GroupDescription) -> list[Section]:
    """Return one of them."""
    names = map_member_names(reply.members)
    return [
        FactList(list(_facts(reply, names))),
        _members(reply.members, names),
        *topics_and_subscriptions(reply, names),
        *_offsets(reply, names),
    ]


def topics_and_subscriptions(reply: GroupDescription, names: "MemberNames") -> Iterator[Section]:
    """Yield what consumers share out, and what each wants to read."""
    if topics := [_topic_row(each) for each in reply.topics]:
        yield Table(("TOPIC", "PARTITIONS", "TOPIC ID"), topics, title="Topics")
    if wanted := [_subscription_row(each, names) for each in reply.subscriptions]:
        headings = ("MEMBER", "SUBSCRIBES TO", "PATTERN", "WHICH MATCHES")
        yield Table(headings, wanted, title="Subscriptions")


def map_member_names(members: Sequence[MemberDescription]) -> "MemberNames":
    """Return the names of Kafka's clients."""
    from .....projections.explain.causes.clients import KafkaClient  # noqa: PLC0415
    from ..output.member_names import MemberNames  # noqa: PLC0415

    clients = {
        each.member_id: KafkaClient(each.client_id, each.client_host, each.instance_id)
        for each in members
    }
    return MemberNames(clients)


def _protocol_type(each: GroupSummary) -> str:
    """Return what members do together; KIP-848 is for consumers alone."""
    return each.type if each.type == "consumer" else each.protocol_type


def _facts(reply: GroupDescription, names: "MemberNames") -> Iterator[tuple[str, str]]:
    yield "Group", reply.group_id
    yield "Type", reply.type
    yield "State", reply.state
    if reply.generation is not None:
        yield from _generation(reply.generation, names)
    else:
        yield "Group epoch", str(reply.group_epoch or "")
        yield "Assignment epoch", str(reply.assignment_epoch or "")
        yield "Assignor", reply.target.assignor
        if (last := reply.last_rebalance) is not None:
            cause = names.cause(last.cause, last.subject)
            yield "Last rebalance", f"{cause}, {format_time(last.time_ms)}"
    yield "Nobody has", format_ids(reply.unassigned)
    yield "Kept for who is away", format_ids(reply.awaited)
    yield "Shard", str(reply.shard)
    yield "Unknown records", str(reply.unknown_records or "")
    yield "Warning", reply.warning


def _generation(last: GenerationDescription, names: "MemberNames") -> Iterator[tuple[str, str]]:
    yield "Generation", str(last.generation)
    if last.members:
        yield "Protocol", f"{last.protocol_type} {last.protocol}"
        yield "Led by", names.full_name(last.leader)
    cause = names.cause(last.cause, last.subject)
    yield "Last rebalance", f"{cause}, {format_time(last.time_ms)}"


def _members(members: Sequence[MemberDescription], names: "MemberNames") -> Table:
    """Return who is there, with what is told of anybody."""
    protocols = {each.protocol for each in members}
    columns: dict[str, list[str]] = {
        "MEMBER": [names.full_name(each.member_id) for each in members],
        "STATE": [each.state for each in members],
        "EPOCH": [str(each.member_epoch) for each in members],
        "PROTOCOL": [each.protocol if len(protocols) > 1 else "" for each in members],
        "HAS": [format_ids(each.assigned) for each in members],
        "GIVES UP": [format_ids(each.pending_revocation) for each in members],
        "IS TO HAVE": [_rest(each) for each in members],
        "CLIENT ID": [each.client_id for each in members],
        "INSTANCE ID": [each.instance_id or "" for each in members],
        "HOST": [each.client_host.removeprefix("/") for each in members],
        "MEMBER ID": [each.member_id for each in members],
    }
    shown = {name: cells for name, cells in columns.items() if any(cells) or name == "HAS"}
    rows = [tuple(cells[row] for cells in shown.values()) for row in range(len(members))]
    folded = {"HAS", "GIVES UP", "IS TO HAVE", "MEMBER ID"}
    return Table(tuple(shown), rows, "no members", folded=folded & shown.keys())


def _rest(member: MemberDescription) -> str:
    """Return what a member is to have, where it does not have just that."""
    if {each.id for each in member.assigned} == {each.id for each in member.target}:
        return ""
    return format_ids(member.target) or "nothing"


def _offsets(reply: GroupDescription, names: "MemberNames") -> Iterator[Section]:
    """Yield how far the group has read, and who has what it has read of now."""
    owner = {one.id: each for each in reply.members for one in each.assigned}
    rows: list[tuple[str, ...]] = []
    for each in reply.committed:
        reader = owner.get(f"{each.topic}-{each.partition}")
        name = names.full_name(reader.member_id) if reader else ""
        position = each.topic, str(each.partition), str(each.offset)
        rows.append((*position, format_time(each.time_ms), name, each.metadata))
    if rows:
        columns = ("TOPIC", "PARTITION", "OFFSET", "COMMITTED", "MEMBER", "METADATA")
        shown = len(columns) if any(row[-1] for row in rows) else -1
        title = "Committed offsets"
        yield Table(columns[:shown], [row[:shown] for row in rows], title=title)


def _topic_row(topic: TopicDescription) -> tuple[str, str, str]:
    partitions = f"{topic.partitions}, given up" if topic.is_released else str(topic.partitions)
    return topic.name, partitions, topic.topic_id


def _subscription_row(
    told: SubscriptionDescription, names: "MemberNames"
) -> tuple[str, str, str, str]:
    read = ", ".join(told.names), told.pattern, ", ".join(told.matched)
    return names.full_name(told.member_id), *read
