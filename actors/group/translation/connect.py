"""The bytes of Connect's workers, as a conversion needs them (KIP-415, KIP-507)."""

from collections.abc import Sequence
from functools import lru_cache

from ....events.group import Group
from ....events.model import CONNECT, ClassicMember, ClassicProtocol
from ....events.records import Record
from ...assignors.classic.protocol import EAGER, VERSIONS, ReceivedAssignment
from ...classic.bytes.connect import decode_assignment, decode_metadata, encode_assignment
from ..state.soft_state import SoftState
from .protocol import Given, Held, Said


class ConnectTranslation:
    """Workers tell what they run, where they are reached, and how far they have read configs."""

    protocol_type = CONNECT

    def read(self, offered: ClassicProtocol) -> Said:
        """Return what a worker tells; raises UnreadableError."""
        return _read(offered.name, offered.metadata)

    def stops_first(self, protocol: str) -> bool:
        """Tell whether it is the eager protocol; another that nobody knows is taken for it."""
        return VERSIONS.get(protocol, EAGER) == EAGER

    def held(self, protocol: str, member: ClassicMember, generation: int) -> Held:
        """Return what a worker may run: what it was given, and what it may still be giving up.

        Logs that are older than the grants of classic members have the bytes alone. Raises
        UnreadableError.
        """
        version = VERSIONS.get(protocol, EAGER)
        told = decode_assignment(member.assignment, version) if member.assignment else None
        if member.assigned or member.pending or told is None:
            return Held(member.assigned, member.pending)
        offered = next((each for each in member.protocols if each.name == protocol), None)
        had = None if offered is None or version == EAGER else self.read(offered).owned
        runs = {*(had or ()), *told.assigned} - {*told.revoked}
        pending = {*(had or ())} & {*told.revoked}
        return Held(dict.fromkeys(runs, generation), dict.fromkeys(pending, generation))

    def waiting(self, member: ClassicMember, generation: int) -> Held:
        """Return what the log grants a worker."""
        del generation
        return Held(member.assigned, member.pending)

    def assignment(self, protocol: str, given: Given) -> bytes:
        """Return an assignment: of the eager protocol all, else what comes and what goes.

        Raises UnwritableError.
        """
        version = VERSIONS.get(protocol, EAGER)
        before = frozenset[object]() if version == EAGER else given.owned
        return encode_assignment(
            ReceivedAssignment(
                sorted(given.granted - before),
                () if version == EAGER else sorted(given.owned - given.granted),
                config_offset=given.offset,
                leader=given.leader,
                leader_url=given.leader_url,
                version=version,
            )
        )

    def follow(
        self,
        group: Group,
        soft: SoftState,
        offers: Sequence[tuple[str, ClassicProtocol]],
        gone: str = "",
    ) -> Sequence[Record]:
        """Return nothing: what there is to run is no matter of the members."""
        del group, soft, offers, gone
        return ()

    def bury(self, group: Group) -> Sequence[Record]:
        """Return nothing: connectors belong to the group whatever its type."""
        del group
        return ()


@lru_cache(maxsize=256)  # each answer names the furthest offset of all members
def _read(name: str, metadata: bytes) -> Said:
    told = decode_metadata(metadata, VERSIONS.get(name, EAGER))
    runs = None if told.allocation is None else frozenset(told.allocation.assigned)
    return Said(runs, told.url, told.config_offset)


CONNECT_TRANSLATION = ConnectTranslation()
