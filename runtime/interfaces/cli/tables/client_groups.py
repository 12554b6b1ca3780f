"""Tables of groups of Kafka's clients: who is in them, who has what, and how far it was read."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ...replies.groups import (
    CommittedOffset,
    GenerationDescription,
    GroupDescription,
    GroupSummary,
    SubscriptionDescription,
    TopicDescription,
)
from ...replies.node import MemberDescription
from ..output.layout import TableLayout
from ..output.phrases import format_ids, format_time
from ..output.printing import FactList, Section, Table

if TYPE_CHECKING:  # a group's records and their causes: a list of groups does without them
    from ..output.member_names import MemberNames


class StateCount(NamedTuple):
    """How many groups of a type are in a state, with how many members in all."""

    type: str
    state: str
    groups: int
    members: int


def _name_protocol(group: GroupSummary) -> str:
    """Return what members do together; KIP-848 is for consumers alone."""
    return group.type if group.type == "consumer" else group.protocol_type


CLIENT_GROUPS: Final = TableLayout(
    GroupSummary,
    "GROUP: group_id, TYPE: type, PROTOCOL, STATE: state, EPOCH: group_epoch, MEMBERS: members, "
    "PARTITIONS, ASSIGNOR: assignor",
    {
        "PROTOCOL": _name_protocol,
        "PARTITIONS": lambda it: f"{it.assigned}/{it.configured}" if it.configured else it.assigned,
    },
    title="Groups of Kafka's clients",
)
STATES: Final = TableLayout(
    StateCount,
    "TYPE: type, STATE: state, GROUPS: groups, MEMBERS: members",
    title="Groups of Kafka's clients",
)
TOPICS: Final = TableLayout(
    TopicDescription,
    "TOPIC: name, PARTITIONS, TOPIC ID: topic_id",
    {"PARTITIONS": lambda it: f"{it.partitions}{', given up' if it.is_released else ''}"},
    title="Topics",
)


def count_client_groups(groups: Sequence[GroupSummary]) -> list[Section]:
    """Lay out how many groups of Kafka's clients are in each state, with how many members."""
    members: dict[tuple[str, str], list[int]] = {}
    for each in groups:
        if each.shard is not None:
            members.setdefault((each.type, each.state), []).append(each.members)
    return STATES.lay_out_any(
        StateCount(*state, len(counts), sum(counts)) for state, counts in sorted(members.items())
    )


def tabulate_client_group(group: GroupDescription) -> list[Section]:
    """Lay out one group of Kafka's clients: who has what, and how far it was read."""
    names = map_member_names(group.members)
    return [
        FactList(list(_group_facts(group, names))),
        _lay_out_members(names, group.members),
        *tabulate_subscriptions(group, names),
        *_lay_out_offsets(names, group),
    ]


def tabulate_subscriptions(group: GroupDescription, names: "MemberNames") -> list[Section]:
    """Lay out what consumers share out, and what each wants to read."""
    subscriptions = TableLayout(
        SubscriptionDescription,
        "MEMBER: member_id, SUBSCRIBES TO: names, PATTERN: pattern, WHICH MATCHES: matched",
        {"MEMBER": names.full_name, "SUBSCRIBES TO": ", ".join, "WHICH MATCHES": ", ".join},
        title="Subscriptions",
    )
    topics = TOPICS.lay_out_any(group.topics)
    return [*topics, *subscriptions.lay_out_any(group.subscriptions)]


def map_member_names(members: Sequence[MemberDescription]) -> "MemberNames":
    """Return the names of Kafka's clients."""
    from .....projections.explain.causes.clients import KafkaClient  # noqa: PLC0415
    from ..output.member_names import MemberNames  # noqa: PLC0415

    clients = {
        each.member_id: KafkaClient(each.client_id, each.client_host, each.instance_id)
        for each in members
    }
    return MemberNames(clients)


def _group_facts(group: GroupDescription, names: "MemberNames") -> Iterator[tuple[str, str]]:
    yield "Group", group.group_id
    yield "Type", group.type
    yield "State", group.state
    if group.generation is not None:
        yield from _generation_facts(group.generation, names)
    else:
        yield "Group epoch", str(group.group_epoch or "")
        yield "Assignment epoch", str(group.assignment_epoch or "")
        yield "Assignor", group.target.assignor
        if (last := group.last_rebalance) is not None:
            cause = names.format_cause(last.cause, last.subject)
            yield "Last rebalance", f"{cause}, {format_time(last.time_ms)}"
    yield "Nobody has", format_ids(group.unassigned)
    yield "Kept for who is away", format_ids(group.awaited)
    yield "Shard", str(group.shard)
    yield "Unknown records", str(group.unknown_records or "")
    yield "Warning", group.warning


def _generation_facts(
    last: GenerationDescription, names: "MemberNames"
) -> Iterator[tuple[str, str]]:
    yield "Generation", str(last.generation)
    if last.members:
        yield "Protocol", f"{last.protocol_type} {last.protocol}"
        yield "Led by", names.full_name(last.leader)
    cause = names.format_cause(last.cause, last.subject)
    yield "Last rebalance", f"{cause}, {format_time(last.time_ms)}"


def _lay_out_members(names: "MemberNames", members: Sequence[MemberDescription]) -> Table:
    """Lay out members, with the columns that say something of anybody."""
    protocols = {each.protocol for each in members}
    layout = TableLayout(
        MemberDescription,
        "MEMBER: member_id, STATE: state, EPOCH: member_epoch, PROTOCOL: protocol, HAS: assigned, "
        "GIVES UP: pending_revocation, IS TO HAVE, CLIENT ID: client_id, "
        "INSTANCE ID: instance_id, HOST: client_host, MEMBER ID: member_id",
        {
            "MEMBER": names.full_name,
            "HAS": format_ids,
            "GIVES UP": format_ids,
            "IS TO HAVE": _format_missing,
            "HOST": lambda host: host.removeprefix("/"),
        },
        shown_if={
            "PROTOCOL": lambda _: len(protocols) > 1,
            **dict.fromkeys(("GIVES UP", "IS TO HAVE", "CLIENT ID", "INSTANCE ID", "HOST"), any),
        },
        empty="no members",
        folded=("HAS", "GIVES UP", "IS TO HAVE", "MEMBER ID"),
    )
    return layout.lay_out(members)


def _format_missing(member: MemberDescription) -> str:
    """Return the target of a member; "" if it has just that."""
    if {each.id for each in member.assigned} == {each.id for each in member.target}:
        return ""
    return format_ids(member.target) or "nothing"


def _lay_out_offsets(names: "MemberNames", group: GroupDescription) -> list[Section]:
    """Lay out how far a group has read, and who has what it has read of now."""
    owners = {one.id: each.member_id for each in group.members for one in each.assigned}

    def name_owner(offset: CommittedOffset) -> str:
        owner = owners.get(f"{offset.topic}-{offset.partition}")
        return names.full_name(owner) if owner else ""

    layout = TableLayout(
        CommittedOffset,
        "TOPIC: topic, PARTITION: partition, OFFSET: offset, COMMITTED: time_ms, MEMBER, "
        "METADATA: metadata",
        {"COMMITTED": format_time, "MEMBER": name_owner},
        shown_if={"METADATA": any},
        title="Committed offsets",
    )
    return layout.lay_out_any(group.committed)
