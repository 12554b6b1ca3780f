"""Clients of Kafka's own protocols: they say nothing of their process.

Such a client has no member id until the group gives it one, no incarnation, no sequence, and it
does not know of coordinator epochs. It speaks through a connection, one request at a time, so it
knows which request an answer answers. Otherwise it does what every member does.
"""

from dataclasses import replace

from ....actors.messages.members import (
    NO_COORDINATOR_EPOCH,
    CommitOffsets,
    Heartbeat,
    HeartbeatReply,
    PutTaskConfigs,
    ReportStatus,
)
from ...node.worker.core.contract import GroupMessage


class ForeignClient:
    """Takes from a member's messages what such a client would not say, and adds it to answers."""

    def __init__(self) -> None:
        self.member_id = ""

    def says(self, message: GroupMessage) -> GroupMessage:
        """Return what the client says in place of the message."""
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

    def hears(self, asked: object, reply: object) -> object:
        """Return the answer as one to the message that was asked."""
        if not isinstance(asked, Heartbeat) or not isinstance(reply, HeartbeatReply):
            return reply
        self.member_id = reply.member_id
        return replace(
            reply,
            member_id=asked.member_id,
            incarnation=asked.incarnation,
            sequence=asked.sequence,
            coordinator_epoch=NO_COORDINATOR_EPOCH,
        )
