"""Workers that are not the node's own: their configs are in a topic that the group cannot read.

What is to run is said by the workers. While the group is classic their leader assigns all of it, so
an upgrade begins with what its members hold. That may lack what the leader has left for later, and
afterwards nobody leads. So in a mixed group the classic member that stands as leader is asked, once
it has read its configs further than the group knows, by *a round of its own*:

    Heartbeat       answered REBALANCE_IN_PROGRESS
    JoinGroup       answered with itself as leader and only member, as one that runs nothing
    SyncGroup       brings what it would assign to itself: all that is to run
                    answered REBALANCE_IN_PROGRESS, so that it joins anew, as any member

Its assignor remembers what it assigned last, and leaves for later what it finds lost since. It
forgets that if it has completed a generation since in which it did not lead. So a member is asked
in a generation that it has completed, and the end of the round raises the epoch, whatever it says.
An assignment with a delay says nothing: the member was the leader of the classic group, and has all
to say the next time. See `IncrementalCooperativeAssignor` of Connect, and PROTOCOL §19.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ....events.group import Group, Member
from ....events.model import ClassicMember, ClassicProtocol, Resource
from ....events.records import ConnectorsTasksMetadata, Record
from ...assignors.classic.protocol import EAGER, VERSIONS, AssignmentError, ReceivedAssignment
from ...classic.bytes.connect import (
    WorkerMetadata,
    decode_assignment,
    encode_assignment,
    encode_metadata,
)
from ...classic.bytes.primitives import UnwritableError
from ...messages.classic import SyncGroup
from ...messages.members import ReadConfigs
from ..state.soft_state import SoftState
from .connect import ConnectTranslation

DESCRIBED_PROTOCOL: Final = "sessioned"
"""The protocol in whose bytes the members of connect groups are described."""


class OutsideTranslation(ConnectTranslation):
    """The `Translation` for workers whose configs are in another log."""

    def config_offset(self, group: Group) -> int:
        """Return how far the configs were read by whoever said what is to run."""
        return group.config_offset

    def metadata_to_lead(self, group: Group, member: Member) -> bytes | None:
        """Return the metadata of a worker that runs nothing, for a leader that has read further."""
        classic = member.metadata.classic
        if not group.group_epoch == group.assignment_epoch == member.current.member_epoch:
            return None  # another may have led this generation, and so may the member itself
        if classic is None or member.member_id != _leader(group, member.member_id):
            return None
        offered = classic.protocols[0]
        read = self.read(offered)
        if read.offset <= group.config_offset:
            return None
        version = VERSIONS.get(offered.name, EAGER)
        return encode_metadata(WorkerMetadata(read.url, read.offset), version)

    def read_led(self, group: Group, member: Member, call: SyncGroup) -> ReadConfigs | None:
        """Return what the leader has assigned to itself, unless it has left anything for later."""
        assigned, classic = call.assignments.get(member.member_id), member.metadata.classic
        if assigned is None or classic is None or member.member_id != _leader(group):
            return None
        decoded = decode_assignment(assigned, VERSIONS.get(classic.protocol, EAGER))
        if decoded.error != AssignmentError.NO_ERROR or decoded.delay_ms:
            return None
        return ReadConfigs(frozenset(decoded.assigned), decoded.config_offset)

    def follow(
        self,
        group: Group,
        soft: SoftState,
        offers: Sequence[tuple[str, ClassicProtocol]],
        gone: str = "",
    ) -> Sequence[Record]:
        """Return what the members of a classic group hold as what is to run, for its upgrade."""
        del soft, offers, gone
        if group.classic is None:
            return ()
        held = (resource for each in group.classic.members for resource in _held(each))
        return [ConnectorsTasksMetadata(frozenset(held))]


def _held(member: ClassicMember) -> Sequence[Resource]:
    return [*member.assigned, *member.pending]


def _leader(group: Group, joining: str = "") -> str:
    """Return the id of the classic member that stands as leader, a joining one included."""
    return min([*group.translated, *([joining] if joining else [])], default="")


def describe_worker(member: Member, config_offset: int) -> ClassicMember:
    """Return a member as Connect's workers describe one: with what it runs, in their bytes.

    More than these bytes hold is left out.
    """
    metadata, version = member.metadata, VERSIONS[DESCRIBED_PROTOCOL]
    runs = ReceivedAssignment(
        sorted(member.current.assigned),
        config_offset=config_offset,
        leader="",
        leader_url="",
        version=version,
    )
    joined = WorkerMetadata(metadata.url, config_offset, runs)
    try:
        own, assignment = encode_metadata(joined, version), encode_assignment(runs)
    except UnwritableError:
        own, assignment = encode_metadata(replace(joined, allocation=None), version), b""
    return ClassicMember(
        member.member_id,
        metadata.session_timeout_ms,
        metadata.rebalance_timeout_ms,
        (ClassicProtocol(DESCRIBED_PROTOCOL, own),),
        metadata.instance_id,
        metadata.client_id,
        metadata.client_host,
        assignment,
    )


OUTSIDE_TRANSLATION = OutsideTranslation()
