"""Groups of Kafka's clients as tables: who is in them, who has what, and how far it was read."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ...replies.clients import (
    CommittedOffset,
    GenerationDescription,
    SubscriptionDescription,
    TopicDescription,
)
from ...replies.groups import GroupDescription, GroupSummary
from ...replies.node import MemberDescription
from ..output.layout import TableLayout
from ..output.phrases import format_ids, format_time
from ..output.printing import FactList, Section

if TYPE_CHECKING:  # a group's records and their causes: a list of groups does without them
    from ..output.member_names import MemberNames


CLIENT_GROUPS: Final = TableLayout[GroupSummary](
    {
        "GROUP": lambda it: it.group_id,
        "TYPE": lambda it: it.type,
        # KIP-848 is for consumers alone: its groups have no type of their members' own.
        "PROTOCOL": lambda it: it.type if it.type == "consumer" else it.protocol_type,
        "STATE": lambda it: it.state,
        "EPOCH": lambda it: it.group_epoch,
        "MEMBERS": lambda it: it.members,
        "PARTITIONS": lambda it: f"{it.assigned}/{it.configured}" if it.configured else it.assigned,
        "ASSIGNOR": lambda it: it.assignor,
    },
    title="Groups of Kafka's clients",
)
STATES: Final = TableLayout[tuple[tuple[str, str], list[GroupSummary]]](
    {
        "TYPE": lambda it: it[0][0],
        "STATE": lambda it: it[0][1],
        "GROUPS": lambda it: len(it[1]),
        "MEMBERS": lambda it: sum(each.members for each in it[1]),
    },
    title="Groups of Kafka's clients",
)
TOPICS: Final = TableLayout[TopicDescription](
    {
        "TOPIC": lambda it: it.name,
        "PARTITIONS": lambda it: f"{it.partitions}{', given up' if it.is_released else ''}",
        "TOPIC ID": lambda it: it.topic_id,
    },
    title="Topics",
)


def count_client_groups(groups: Sequence[GroupSummary]) -> list[Section]:
    """Lay out how many groups of Kafka's clients are in each state, with how many members."""
    by_state: dict[tuple[str, str], list[GroupSummary]] = {}
    for each in groups:
        if each.shard is not None:
            by_state.setdefault((each.type, each.state), []).append(each)
    return STATES.lay_out_any(sorted(by_state.items()))


def tabulate_client_group(group: GroupDescription) -> list[Section]:
    """Lay out one group of Kafka's clients: who has what, and how far it was read."""
    names = map_member_names(group.members)
    owners = {one.id: each.member_id for each in group.members for one in each.assigned}
    return [
        FactList(list(_group_facts(group, names))),
        _member_columns(names, group.members).lay_out(group.members),
        *tabulate_subscriptions(group, names),
        *_offset_columns(names, owners).lay_out_any(group.committed),
    ]


def tabulate_subscriptions(group: GroupDescription, names: "MemberNames") -> list[Section]:
    """Lay out what consumers share out, and what each wants to read."""
    subscriptions = TableLayout[SubscriptionDescription](
        {
            "MEMBER": lambda it: names.full_name(it.member_id),
            "SUBSCRIBES TO": lambda it: ", ".join(it.names),
            "PATTERN": lambda it: it.pattern,
            "WHICH MATCHES": lambda it: ", ".join(it.matched),
        },
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


def _member_columns(
    names: "MemberNames", members: Sequence[MemberDescription]
) -> TableLayout[MemberDescription]:
    """Return the columns of members, of which those are shown that say something of anybody."""
    protocols = {each.protocol for each in members}
    return TableLayout(
        {
            "MEMBER": lambda it: names.full_name(it.member_id),
            "STATE": lambda it: it.state,
            "EPOCH": lambda it: it.member_epoch,
            "PROTOCOL": lambda it: it.protocol,
            "HAS": lambda it: format_ids(it.assigned),
            "GIVES UP": lambda it: format_ids(it.pending_revocation),
            "IS TO HAVE": _format_missing,
            "CLIENT ID": lambda it: it.client_id,
            "INSTANCE ID": lambda it: it.instance_id,
            "HOST": lambda it: it.client_host.removeprefix("/"),
            "MEMBER ID": lambda it: it.member_id,
        },
        shown_if={
            "PROTOCOL": lambda _: len(protocols) > 1,
            **dict.fromkeys(("GIVES UP", "IS TO HAVE", "CLIENT ID", "INSTANCE ID", "HOST"), any),
        },
        empty="no members",
        folded=("HAS", "GIVES UP", "IS TO HAVE", "MEMBER ID"),
    )


def _format_missing(member: MemberDescription) -> str:
    """Return the target of a member; "" if it has just that."""
    if {each.id for each in member.assigned} == {each.id for each in member.target}:
        return ""
    return format_ids(member.target) or "nothing"


def _offset_columns(
    names: "MemberNames", owners: Mapping[str, str]
) -> TableLayout[CommittedOffset]:
    """Return the columns of committed offsets; `owners` are the ids of members by partition."""

    def name_owner(offset: CommittedOffset) -> str:
        owner = owners.get(f"{offset.topic}-{offset.partition}")
        return names.full_name(owner) if owner else ""

    return TableLayout(
        {
            "TOPIC": lambda it: it.topic,
            "PARTITION": lambda it: it.partition,
            "OFFSET": lambda it: it.offset,
            "COMMITTED": lambda it: format_time(it.time_ms),
            "MEMBER": name_owner,
            "METADATA": lambda it: it.metadata,
        },
        shown_if={"METADATA": any},
        title="Committed offsets",
    )
