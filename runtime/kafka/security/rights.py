"""The rights that each call of groups needs, and the answers to clients that do not have them.

A call without the right for its group is answered with GROUP_AUTHORIZATION_FAILED, and no group is
asked. In calls about offsets each topic needs a right as well: those without it are taken out of
the call, and answered for themselves with TOPIC_AUTHORIZATION_FAILED. Lists are filtered.
"""
# pyright: basic

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

from ....actors.messages.consumers import ConsumerGroupHeartbeat
from ....actors.messages.errors import Error
from ....actors.messages.groups import (
    AlterGroupConfigs,
    DescribeConnectGroup,
    DescribeConsumerGroup,
    DescribeConsumerGroupReply,
    DescribeGroup,
    DescribeGroupConfigs,
    HostCall,
    ListGroups,
    ListGroupsReply,
    RemoveGroup,
)
from ....actors.messages.offsets import (
    OffsetCommit,
    OffsetCommitReply,
    OffsetDelete,
    OffsetDeleteReply,
    OffsetFetch,
    OffsetFetchReply,
    PartitionVerdict,
)
from ....actors.shards.refusals import refuse_host_call
from .acls import CLUSTER, AclClient, AclOperation, Authorizer, ResourceKind

NO_RIGHT: Final = "the client has no right to {} this group"
OF_GROUP: Final = {
    DescribeGroup: AclOperation.DESCRIBE,
    DescribeConsumerGroup: AclOperation.DESCRIBE,
    DescribeConnectGroup: AclOperation.DESCRIBE,
    OffsetFetch: AclOperation.DESCRIBE,
    RemoveGroup: AclOperation.DELETE,
    OffsetDelete: AclOperation.DELETE,
    DescribeGroupConfigs: AclOperation.DESCRIBE_CONFIGS,
    AlterGroupConfigs: AclOperation.ALTER_CONFIGS,
}
"""The right for its group that a call needs; all others need that to read."""

SHOWN: Final = 80
"""The number of characters of a name that a log line has."""

Ask = Callable[[Sequence[HostCall]], Awaitable[Sequence[Any]]]
"""Sends calls, and returns their replies."""
Finish = Callable[[Any], Any]
"""Completes the reply of a group for the client."""


class Ruling(NamedTuple):
    """The decision about one call."""

    call: HostCall | None
    """The call that may be sent; None: nothing is."""
    finish: Finish
    """Completes the reply; without a call it gets None."""
    missing: str = ""
    """The rights that the client does not have; "": it has all."""


def _keep(reply: Any) -> Any:  # a reply of any kind
    return reply


class Rights:
    """The rights of one client."""

    def __init__(self, authorizer: Authorizer, client: AclClient) -> None:
        self._authorizer, self._client = authorizer, client

    def has(self, operation: AclOperation, kind: ResourceKind, name: str) -> bool:
        """Return whether the client has a right."""
        return self._authorizer.allows(self._client, operation, kind, name)

    def may_describe_cluster(self) -> bool:
        """Return whether the client may see all groups."""
        return self.has(AclOperation.DESCRIBE, ResourceKind.CLUSTER, CLUSTER)

    def may_have_secrets(self, group_id: str) -> bool:
        """Return whether the client may have the secrets of the connectors that it runs."""
        return self.has(AclOperation.WRITE, ResourceKind.GROUP, group_id)

    def add_to(self, call: HostCall) -> HostCall:
        """Return a call with the rights that its group has to know."""
        if not isinstance(call, ConsumerGroupHeartbeat):
            return call
        return replace(call, topic_rights=self._authorizer.describable_topics(self._client))

    def rule(self, call: Any) -> Ruling:
        """Decide about a call of a client."""
        if isinstance(call, ListGroups):
            return Ruling(call, self._filter_groups)
        group_id, operation = call.group_id, OF_GROUP.get(type(call), AclOperation.READ)
        if not self.has(operation, ResourceKind.GROUP, group_id):
            text = NO_RIGHT.format(operation)
            reply = refuse_host_call(call, Error.GROUP_AUTHORIZATION_FAILED, text)
            return Ruling(None, lambda _: reply, f"{operation} group {group_id[:SHOWN]!a}")
        return self._rule_topics(call)

    def _rule_topics(self, call: HostCall) -> Ruling:
        if isinstance(call, OffsetCommit):
            return self._rule_commit(call)
        if isinstance(call, OffsetDelete):
            return self._rule_delete(call)
        if isinstance(call, OffsetFetch):
            return self._rule_fetch(call)
        if isinstance(call, DescribeConsumerGroup):
            return Ruling(call, self._hide_members)
        if isinstance(call, ConsumerGroupHeartbeat):
            hidden = self._without(AclOperation.DESCRIBE, call.subscribed_topic_names or ())
            if hidden:
                text = f"the client has no right to describe {len(hidden)} of these topics"
                reply = refuse_host_call(call, Error.TOPIC_AUTHORIZATION_FAILED, text)
                return Ruling(None, lambda _: reply, _name(AclOperation.DESCRIBE, hidden))
        return Ruling(call, _keep)

    def _without(self, operation: AclOperation, topics: Iterable[str]) -> frozenset[str]:
        """Return the topics for which the client does not have this right."""
        return frozenset(
            each for each in {*topics} if not self.has(operation, ResourceKind.TOPIC, each)
        )

    # -- offsets

    def _rule_commit(self, call: OffsetCommit) -> Ruling:
        if (transaction := call.transaction) is not None:
            name = transaction.transactional_id
            if not self.has(AclOperation.WRITE, ResourceKind.TRANSACTIONAL_ID, name):
                text = "the client has no right to write with this transactional id"
                error = Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
                reply = refuse_host_call(call, error, text)
                missing = f"{AclOperation.WRITE} transactional id {name[:SHOWN]!a}"
                return Ruling(None, lambda _: reply, missing)
        hidden = self._without(AclOperation.READ, (each.topic for each in call.offsets))
        if not hidden:
            return Ruling(call, _keep)
        permitted = tuple(each for each in call.offsets if each.topic not in hidden)
        denied = _deny(
            (each.topic, each.partition) for each in call.offsets if each.topic in hidden
        )
        finish = partial(_add_verdicts, OffsetCommitReply(()), denied)
        rest = replace(call, offsets=permitted) if permitted else None
        return Ruling(rest, finish, _name(AclOperation.READ, hidden))

    def _rule_delete(self, call: OffsetDelete) -> Ruling:
        hidden = self._without(AclOperation.READ, call.partitions)
        if not hidden:
            return Ruling(call, _keep)
        parts = call.partitions.items()
        permitted = {topic: numbers for topic, numbers in parts if topic not in hidden}
        denied = _deny((topic, each) for topic in hidden for each in call.partitions[topic])
        finish = partial(_add_verdicts, OffsetDeleteReply(Error.NONE), denied)
        rest = replace(call, partitions=permitted) if permitted else None
        return Ruling(rest, finish, _name(AclOperation.READ, hidden))

    def _rule_fetch(self, call: OffsetFetch) -> Ruling:
        if call.partitions is None:
            return Ruling(call, self._filter_offsets)
        hidden = self._without(AclOperation.DESCRIBE, call.partitions)
        if not hidden:
            return Ruling(call, _keep)
        parts = call.partitions.items()
        permitted = {topic: numbers for topic, numbers in parts if topic not in hidden}
        denied = {topic: numbers for topic, numbers in parts if topic in hidden}

        def finish(reply: OffsetFetchReply | None) -> OffsetFetchReply:
            return replace(reply or OffsetFetchReply(Error.NONE), denied=denied)

        rest = replace(call, partitions=permitted) if permitted else None
        return Ruling(rest, finish, _name(AclOperation.DESCRIBE, hidden))

    def _filter_offsets(self, reply: OffsetFetchReply) -> OffsetFetchReply:
        hidden = self._without(AclOperation.DESCRIBE, (each.topic for each in reply.offsets))
        shown = tuple(each for each in reply.offsets if each.topic not in hidden)
        return replace(reply, offsets=shown)

    # -- descriptions and lists

    def _hide_members(self, reply: DescribeConsumerGroupReply) -> DescribeConsumerGroupReply:
        if not self._without(AclOperation.DESCRIBE, reply.topics):
            return reply
        text = "the group has topics that the client has no right to describe"
        return DescribeConsumerGroupReply(Error.TOPIC_AUTHORIZATION_FAILED, message=text)

    def _filter_groups(self, reply: ListGroupsReply) -> ListGroupsReply:
        if self.may_describe_cluster():
            return reply

        def may_see(group_id: str) -> bool:
            return self.has(AclOperation.DESCRIBE, ResourceKind.GROUP, group_id)

        shown = tuple(each for each in reply.groups if may_see(each.group_id))
        return replace(reply, groups=shown, configured=tuple(filter(may_see, reply.configured)))


async def ask_with_rights(
    rights: Rights, calls: Sequence[HostCall], ask: Ask
) -> tuple[Sequence[Any], str]:
    """Return the replies to calls, and the rights that are missing for some of them; "": none."""
    rulings = [rights.rule(each) for each in calls]
    replies = await ask([each.call for each in rulings if each.call is not None])
    if len(rulings) == 1 and isinstance(calls[0], ListGroups):
        return [rulings[0].finish(each) for each in replies], ""
    answers = iter(replies)
    finished = [each.finish(next(answers) if each.call is not None else None) for each in rulings]
    return finished, next((each.missing for each in rulings if each.missing), "")


def _name(operation: AclOperation, topics: frozenset[str]) -> str:
    first, *others = sorted(topics)
    more = f" and {len(others)} more" if others else ""
    return f"{operation} topic {first[:SHOWN]!a}{more}"


def _deny(partitions: Iterable[tuple[str, int]]) -> tuple[PartitionVerdict, ...]:
    error = Error.TOPIC_AUTHORIZATION_FAILED
    return tuple(PartitionVerdict(topic, number, error) for topic, number in partitions)


def _add_verdicts(
    empty: OffsetCommitReply | OffsetDeleteReply,
    denied: Sequence[PartitionVerdict],
    reply: OffsetCommitReply | OffsetDeleteReply | None,
) -> OffsetCommitReply | OffsetDeleteReply:
    reply = reply or empty
    return replace(reply, verdicts=(*reply.verdicts, *denied))
