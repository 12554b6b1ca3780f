"""The assignment of a leader of the classic protocol."""

from collections.abc import Mapping

from fairlead.actors.assignors.classic.protocol import VERSIONS, ReceivedAssignment
from fairlead.actors.classic.bytes.connect import (
    WorkerMetadata,
    decode_assignment,
    encode_metadata,
)
from fairlead.actors.messages.classic import JoinedMember, JoinGroupReply
from fairlead.actors.messages.errors import Error
from fairlead.actors.worker.classic.lead import Configs, Lead
from fairlead.events.model import Resource

PROTOCOL = "sessioned"
VERSION = VERSIONS[PROTOCOL]


def assigned_at(offset: int, members: Mapping[str, int]) -> Mapping[str, ReceivedAssignment]:
    """Return the assignment of a leader at a config offset, to members at their offsets.

    There is one connector for each member; the first of them leads.
    """
    joined = tuple(
        JoinedMember(name, None, encode_metadata(WorkerMetadata("", read), VERSION))
        for name, read in members.items()
    )
    told = JoinGroupReply(Error.NONE, "0", 1, "connect", PROTOCOL, next(iter(members)), joined)
    configs = Configs(offset, frozenset(Resource(name) for name in members))
    made = Lead(max_delay_ms=0).assign(told, configs, completed=0, now_ms=0)
    return {name: decode_assignment(share, VERSION) for name, share in made.items()}
