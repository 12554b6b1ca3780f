"""Generations of classic members: each is an epoch, and what its leader assigns is its target.

The group carries assignments as bytes, which only the members understand. A reader of the log may
pass a function that reads them (`ReadShares`): then the moves of a generation are reported as well.
A cooperative leader moves nothing at once: what a member has to revoke is free in one generation,
and another member's in the next.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from ...events.model import ClassicMember, GroupType, Resource, Resources, Why
from ...events.records import ClassicGroup, GroupMetadata, MemberMetadata
from .causes.clients import KafkaClient, client_of
from .causes.detection import Detector
from .diff import Changes, Owner, TargetChange, owner_of
from .epochs import EpochReading, EpochReport, GenerationReport
from .handovers import FollowedHandover, handovers_of
from .reasons import DEPARTURES, Reason, ReasonKind

CONVERTED: Final = (
    "converted to the classic protocol, because {} was the last that spoke the {} protocol"
)
GIVEN_TO_NOBODY: Final = "its leader gave it to nobody"

ReadShares = Callable[[ClassicGroup], Mapping[str, Resources] | None]
"""Returns what a generation gives each member, by member id; None where that cannot be read."""


def read_no_shares(_: ClassicGroup) -> None:
    """Return None: assignments of this protocol type cannot be read."""


class Generations:
    """A fold of the generations of a log, from one to the next."""

    def __init__(self, last: ClassicGroup | None, read_shares: ReadShares) -> None:
        """`last` is the one that the group is in where the log begins; None: in none."""
        self._read_shares = read_shares
        self.number = last.generation if last else 0
        """The last generation that the log tells of; 0: the group was not classic since."""
        self.ended = self.number
        """The last one before the group was converted."""
        self.clients: dict[str, KafkaClient] = {}
        """Those that are there, and those that went last, by member id."""
        self._formed: EpochReading | None = None
        """The last generation; None where it lies before what is read."""
        self._converted = ""
        """How the group has become classic, until the next generation tells of it."""
        self._owners: dict[Resource, MemberMetadata] = {}
        """The member that each resource was given to last."""
        self._placed: Resources = frozenset()
        """What the last generation gives to anybody."""
        self._went: dict[str, Why] = {}
        """How members went that were given resources last, by member id."""
        if last is not None and last.is_synced:
            self._apply_assignment(last)

    def end(self) -> Mapping[Resource, MemberMetadata]:
        """End the generations: the group was converted, or deleted.

        Returns who had last what nobody has by then.
        """
        left = {each: had for each, had in self._owners.items() if each not in self._placed}
        left = {each: replace(had, joined_epoch=self.number) for each, had in left.items()}
        self.ended, self.number, self._formed = self.number, 0, None
        self._owners, self._placed = {}, frozenset()
        self._went.clear()
        return left

    def inherit(self, owners: Mapping[Resource, MemberMetadata]) -> None:
        """Set the last owners in a group that is about to be converted."""
        self._owners = dict(owners)

    def apply(self, record: ClassicGroup, detector: Detector, protocol: str) -> EpochReading | None:
        """Apply a record; return the generation that it begins, None if it begins none.

        The one that a converted group leaves behind is no epoch of its own: the next one tells of
        it. `protocol` is what the members spoke before.
        """
        clients = ((each.member_id, client_of(each)) for each in record.members)
        self.clients.update((member_id, each) for member_id, each in clients if each)
        if record.cause.why is Why.GROUP_DOWNGRADED:
            self.number, self._formed = record.generation, None
            self._converted = CONVERTED.format(self._name(record.cause.subject), protocol)
            self._apply_assignment(record)
            return None
        begins = record.generation > self.number
        if begins:
            self._begin(record, detector)
        if self._formed is not None:
            self._describe(self._formed, record)
        if record.is_synced:
            self._apply_assignment(record)
        return self._formed if begins else None

    def _begin(self, record: ClassicGroup, detector: Detector) -> None:
        self.number = record.generation
        if record.cause.why in DEPARTURES:
            self._went[record.cause.subject] = record.cause.why
        bump = GroupMetadata(record.generation, record.cause, record.time_ms)
        detection = detector.detect(bump)
        report = EpochReport(bump, type=GroupType.CLASSIC)
        self._formed = EpochReading(report, detection, self._converted, self.clients)
        self._converted = ""

    def _describe(self, formed: EpochReading, record: ClassicGroup) -> None:
        """Add what a record says; a generation was assigned when the first record said so."""
        report, before = formed.report, formed.report.generation
        assigned_ms = before.assigned_ms if before else None
        is_news = assigned_ms is None and record.is_synced
        if is_news or (assigned_ms is None and not record.members):
            assigned_ms = record.time_ms
        described = GenerationReport(
            record.protocol_type,
            record.protocol,
            record.leader,
            tuple(sorted(each.instance_id or each.member_id for each in record.members)),
            assigned_ms,
            self._name(record.leader),
        )
        formed.report = replace(report, generation=described)
        change = self._change(record) if is_news else None
        if change is not None:
            formed.report = replace(formed.report, target_change=change)
            given = (replace(each, granted_ms=assigned_ms) for each in handovers_of(change))
            formed.handovers = [FollowedHandover.of(each, record.generation) for each in given]

    def _change(self, record: ClassicGroup) -> TargetChange | None:
        owners = self._owners_in(record)
        if owners is None:
            return None
        changes = Changes()
        for resource, new_owner in sorted(owners.items(), key=lambda each: each[0]):
            previous_owner = self._owners.get(resource)
            is_kept = previous_owner is not None and previous_owner.member_id == new_owner.member_id
            is_kept = is_kept and resource in self._placed
            changes.add(resource, previous_owner, new_owner, is_kept=is_kept)
        stopped = {each: self._owners[each] for each in sorted(self._placed - owners.keys())}
        seats = {each.member_id for each in record.members}
        for each in (*(move.resource for move in changes.moved), *stopped):
            changes.reasons[each] = self._reason(self._owners[each], seats)
        return TargetChange(
            record.generation,
            record.time_ms,
            record.protocol or "",
            Owner(record.leader, record.leader),
            changes.kept_by_seat(),
            tuple(changes.moved),
            tuple(changes.returned),
            tuple(changes.placed),
            {},
            dict.fromkeys(stopped, GIVEN_TO_NOBODY),
            frozenset(),
            record.time_ms,
            changes.reasons,
            displaced={each: owner_of(previous_owner) for each, previous_owner in stopped.items()},
        )

    def _reason(self, previous_owner: MemberMetadata, seats: set[str]) -> Reason:
        if previous_owner.member_id in seats:
            return Reason(ReasonKind.BALANCE)
        why = self._went.get(previous_owner.member_id)
        return Reason(ReasonKind.DEPARTURE, why.value if why else "")

    def _apply_assignment(self, record: ClassicGroup) -> None:
        """Record the owners by an assigned generation."""
        owners = self._owners_in(record)
        if owners is not None:
            self._owners |= owners
            self._placed = frozenset(owners)
            left = {each.member_id for each in self._owners.values()}
            self._went = {each: why for each, why in self._went.items() if each in left}

    def _owners_in(self, record: ClassicGroup) -> dict[Resource, MemberMetadata] | None:
        shares = self._read_shares(record) if record.members else None
        if shares is None:
            return None
        seats = {each.member_id: _metadata(each) for each in record.members}
        return {each: seats[name] for name, share in shares.items() for each in share}

    def _name(self, member_id: str) -> str:
        client = self.clients.get(member_id)
        return client.name(member_id) if client else member_id


def _metadata(member: ClassicMember) -> MemberMetadata:
    return MemberMetadata(member.member_id, instance_id=member.instance_id, url=member.url)
