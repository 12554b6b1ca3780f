"""Caches the replies to heartbeats that changed nothing, while their group does not change.

A running consumer repeats the same heartbeat for hours. As long as nothing is written to the log of
its group, the reply is the same too, and only the member's session has to be extended.
"""

from dataclasses import replace
from typing import Final, NamedTuple

from ...events.group import Group
from ..messages.consumers import ConsumerGroupHeartbeat, ConsumerGroupHeartbeatReply
from ..messages.errors import Error
from ..messages.members import JOIN_EPOCH

UNCHANGED_MS: Final = -1

_Key = tuple[str, int, str, str]
"""The only fields of a cacheable heartbeat: member id and epoch, client id and host."""


class _CachedReply(NamedTuple):
    """A heartbeat that changed nothing, and its reply."""

    request: ConsumerGroupHeartbeat
    reply: ConsumerGroupHeartbeatReply


class HeartbeatCache:
    """The cached replies of one group."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._end = group.end
        """The end of the group's log for which they are valid: any record changes the group."""
        self._replies: dict[_Key, _CachedReply] = {}

    def reply_to(self, request: ConsumerGroupHeartbeat) -> ConsumerGroupHeartbeatReply | None:
        """Return the reply to a heartbeat; None: it is not cached, and has to be decided."""
        if self._end != self._group.end:
            self._replies.clear()
            self._end = self._group.end
        key = _key_of(request)
        cached = self._replies.get(key)
        if cached is None or not (cached.request is request or _is_bare(request)):
            return None
        if cached.request.number != request.number:
            reply = replace(cached.reply, number=request.number)
            cached = self._replies[key] = _CachedReply(request, reply)
        return cached.reply

    def add(
        self, request: ConsumerGroupHeartbeat, end: int, reply: ConsumerGroupHeartbeatReply
    ) -> None:
        """Cache a reply, unless records were written since the log ended at `end`."""
        has_news = reply.error is not Error.NONE or reply.assignment is not None
        if end == self._end == self._group.end and not has_news and _is_bare(request):
            self._replies[_key_of(request)] = _CachedReply(request, reply)


def _key_of(request: ConsumerGroupHeartbeat) -> _Key:
    return request.member_id, request.member_epoch, request.client_id, request.client_host


def _is_bare(request: ConsumerGroupHeartbeat) -> bool:
    """Return whether a heartbeat has no fields but those in its key."""
    return (
        request.member_epoch > JOIN_EPOCH
        and request.topic_partitions is None
        and request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and request.rebalance_timeout_ms == UNCHANGED_MS
        and request.server_assignor is None
        and request.client_assignors is None
        and request.instance_id is None
        and request.rack_id is None
    )
