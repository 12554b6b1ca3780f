"""Heartbeats that led to nothing: the same once more leads to nothing either.

A consumer that runs says hour after hour that it is there. As long as its group is as it was, what
was answered to that is the answer, and nothing is left to do but to begin its session anew.
"""

from dataclasses import replace
from typing import Final, NamedTuple

from ...events.group import Group
from ..messages.consumers import ConsumerGroupHeartbeat, ConsumerGroupHeartbeatReply
from ..messages.errors import Error
from ..messages.members import JOIN_EPOCH

UNCHANGED_MS: Final = -1

Said = tuple[str, int, str, str]
"""What a heartbeat says that says nothing new: who is at which epoch, and which client is where."""


class Noted(NamedTuple):
    """A heartbeat that led to nothing, and its answer."""

    request: ConsumerGroupHeartbeat
    reply: ConsumerGroupHeartbeatReply


class RepeatedHeartbeats:
    """The answers to those of one group's members that may be given again."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._end = group.end
        """Where the group's log ended when these were given: anything written changes the group."""
        self._noted: dict[Said, Noted] = {}

    def reply_to(self, request: ConsumerGroupHeartbeat) -> ConsumerGroupHeartbeatReply | None:
        """Return what was answered to the same in the group as it is; None: it is to be decided."""
        if self._end != self._group.end:
            self._noted.clear()
            self._end = self._group.end
        said = _said(request)
        noted = self._noted.get(said)
        if noted is None or not (noted.request is request or _is_bare(request)):
            return None
        if noted.request.number != request.number:
            reply = replace(noted.reply, number=request.number)
            noted = self._noted[said] = Noted(request, reply)
        return noted.reply

    def note(
        self, request: ConsumerGroupHeartbeat, end: int, reply: ConsumerGroupHeartbeatReply
    ) -> None:
        """Take note of an answer, unless anything was written since the log ended at `end`."""
        has_news = reply.error is not Error.NONE or reply.assignment is not None
        if end == self._end == self._group.end and not has_news and _is_bare(request):
            self._noted[_said(request)] = Noted(request, reply)


def _said(request: ConsumerGroupHeartbeat) -> Said:
    return request.member_id, request.member_epoch, request.client_id, request.client_host


def _is_bare(request: ConsumerGroupHeartbeat) -> bool:
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
