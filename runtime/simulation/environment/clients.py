"""Clients of Kafka's own protocols: they say nothing of their process.

Such a client has no member id until the group gives it one, no incarnation, no sequence, and it
does not know of coordinator epochs. It speaks through a connection, one request at a time, so it
knows which request an answer answers. Otherwise it does what every member does.
"""

from collections.abc import Callable
from dataclasses import replace

from ....actors.messages.members import (
    NO_COORDINATOR_EPOCH,
    CommitOffsets,
    Heartbeat,
    HeartbeatReply,
    PutTaskConfigs,
    ReportStatus,
)
from ....events.group import Group
from ....events.model import Resources
from ....projections.follow.member import MemberFollower
from ...node.worker.core.contract import GroupMessage


class ForeignClient:
    """Removes fields that such a client does not send, and adds them to its replies."""

    def __init__(self) -> None:
        self.member_id = ""

    def says(self, message: GroupMessage) -> GroupMessage:
        """Return the message as such a client would send it."""
        match message:
            case Heartbeat():
                return replace(
                    message,
                    member_id=self.member_id,
                    incarnation="",
                    sequence=0,
                    coordinator_epoch=NO_COORDINATOR_EPOCH,
                )
            case PutTaskConfigs() | ReportStatus() | CommitOffsets():
                return replace(message, member_id=self.member_id)
            case _:
                return message

    def hears(self, request: object, reply: object) -> object:
        """Return the reply in the form of one to the original message."""
        if not isinstance(request, Heartbeat) or not isinstance(reply, HeartbeatReply):
            return reply
        self.member_id = reply.member_id
        return replace(
            reply,
            member_id=request.member_id,
            incarnation=request.incarnation,
            sequence=request.sequence,
            coordinator_epoch=NO_COORDINATOR_EPOCH,
        )


class ForeignLog:
    """The log of a foreign client's member, under the id that the group gave it last."""

    def __init__(self, follow: Callable[[str], MemberFollower], client: ForeignClient) -> None:
        self._follow, self._client = follow, client
        self._follower = follow("")

    @property
    def member_id(self) -> str:
        """The member id; empty before the group has given one."""
        return self._client.member_id

    @property
    def group(self) -> Group:
        """The member's part of the group, as of the last `catch_up`."""
        return self._follower.group

    def rename(self, member_id: str) -> None:
        """Do nothing: the log is followed under the client's own member id."""

    def watch(self, reported: Resources) -> None:
        """Include the status of these in the next `catch_up`."""
        if self._follower.member_id != self.member_id:
            self._follower = self._follow(self.member_id)
        self._follower.watch(reported)

    def catch_up(self) -> Group:
        """Read new entries, and return the member's part of the group."""
        return self._follower.catch_up()

    def take_changed(self) -> Resources:
        """Return the member's resources with any change since the last call."""
        return self._follower.take_changed()
