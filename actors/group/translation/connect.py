"""The bytes of Connect's workers, as conversions and mixed groups use them (KIP-415, KIP-507)."""

from functools import lru_cache

from ....events.model import CONNECT, ClassicMember, ClassicProtocol
from ...assignors.classic.protocol import EAGER, VERSIONS, ReceivedAssignment
from ...classic.bytes.connect import decode_assignment, decode_metadata, encode_assignment
from .protocol import AssignmentContent, HeldResources, OfferedMetadata, Translation


class ConnectTranslation(Translation):
    """Reads and writes the bytes of workers: owned resources, URL, and the config offset.

    No records follow: connectors belong to the group, whatever its members and its type.
    """

    protocol_type = CONNECT
    is_of_clients = False

    def read(self, offered: ClassicProtocol) -> OfferedMetadata:
        """Decode a worker's metadata; raises UnreadableError."""
        return _read(offered.name, offered.metadata)

    def stops_first(self, protocol: str) -> bool:
        """Return whether it is the eager protocol; an unknown one counts as eager."""
        return VERSIONS.get(protocol, EAGER) == EAGER

    def held_resources(
        self, protocol: str, member: ClassicMember, generation: int
    ) -> HeldResources:
        """Return a worker's resources: assigned ones, and those still to revoke.

        Logs from before there were grants of classic members have the bytes alone. Raises
        UnreadableError.
        """
        version = VERSIONS.get(protocol, EAGER)
        assignment = decode_assignment(member.assignment, version) if member.assignment else None
        if member.assigned or member.pending or assignment is None:
            return HeldResources(member.assigned, member.pending)
        offered = next((each for each in member.protocols if each.name == protocol), None)
        had = None if offered is None or version == EAGER else self.read(offered).owned
        runs = {*(had or ()), *assignment.assigned} - {*assignment.revoked}
        pending = {*(had or ())} & {*assignment.revoked}
        return HeldResources(dict.fromkeys(runs, generation), dict.fromkeys(pending, generation))

    def resources_while_waiting(self, member: ClassicMember, generation: int) -> HeldResources:
        """Return the worker's grants in the log."""
        del generation
        return HeldResources(member.assigned, member.pending)

    def assignment(self, protocol: str, content: AssignmentContent) -> bytes:
        """Return an assignment: all of it in the eager protocol, else the increments.

        Raises UnwritableError.
        """
        version = VERSIONS.get(protocol, EAGER)
        before = frozenset[object]() if version == EAGER else content.owned
        return encode_assignment(
            ReceivedAssignment(
                sorted(content.granted - before),
                () if version == EAGER else sorted(content.owned - content.granted),
                config_offset=content.offset,
                leader=content.leader,
                leader_url=content.leader_url,
                version=version,
            )
        )


@lru_cache(maxsize=256)  # each answer needs the offsets of all members
def _read(name: str, metadata: bytes) -> OfferedMetadata:
    decoded = decode_metadata(metadata, VERSIONS.get(name, EAGER))
    runs = None if decoded.allocation is None else frozenset(decoded.allocation.assigned)
    return OfferedMetadata(runs, decoded.url, decoded.config_offset)


CONNECT_TRANSLATION = ConnectTranslation()
