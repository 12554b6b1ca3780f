"""The group as the records of a command will leave it, before they are written."""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from copy import copy
from dataclasses import dataclass, field, fields
from heapq import merge

from ....events.evolve import evolve
from ....events.group import AssignorRange, Group
from ....events.records import (
    CurrentAssignment,
    GroupMetadata,
    MemberMetadata,
    Record,
    TargetAssignment,
    Tombstone,
)
from .elect import Electorate, may_run


@dataclass(slots=True)
class Preview:
    """What a computation depends on, after the records; costs what they change."""

    group: Group
    group_epoch: int
    assignment_epoch: int
    electorate: Electorate
    changed: dict[str, MemberMetadata | None] = field(
        default_factory=dict[str, MemberMetadata | None]
    )
    """What members that join or say something new say, by member id; None for those that go."""
    epochs: dict[str, int] = field(default_factory=dict[str, int])
    """The member epochs that change."""

    @property
    def is_due(self) -> bool:
        """Tell whether the group needs a target that it does not have."""
        return self.group_epoch > self.assignment_epoch and self.electorate.members > 0

    def voters(self) -> Electorate:
        """Return the members whose votes count: all of them, those that are away included.

        Where no assignor is fit for all, only those count that are present: a member that left
        for a while may come back with another list, and is weighed when it does.
        """
        if self.electorate.fit():
            return self.electorate
        known = {*self.group.away, *self.changed, *self.epochs}
        away = (self.metadata(each) for each in known if not self.is_present(each))
        return self.electorate.without(each for each in away if each is not None)

    def metadata(self, member_id: str) -> MemberMetadata | None:
        """Return what is known of a member that is in the group then."""
        if member_id in self.changed:
            return self.changed[member_id]
        member = self.group.members.get(member_id)
        return member.metadata if member else None

    def is_present(self, member_id: str) -> bool:
        """Tell a member that can be asked from one that is gone, for good or for a while."""
        if self.metadata(member_id) is None:
            return False
        if member_id in self.epochs:
            return self.epochs[member_id] >= 0
        member = self.group.members.get(member_id)
        return member is None or member.current.member_epoch >= 0

    def eligible(self, fit: Collection[AssignorRange]) -> Iterator[MemberMetadata]:
        """Yield the members present that run one of these ranges, by member id.

        Costs what is taken of it: a walk through all members, for each of many that leave, would
        cost their number squared.
        """
        changing = self.changed.keys() | self.epochs.keys()
        others = (self._runners(each, changing) for each in fit)
        for member_id in merge(*others, sorted(changing)):
            metadata = self.metadata(member_id)
            if metadata is not None and self.is_present(member_id) and may_run(metadata, fit):
                yield metadata

    def _runners(self, fit: AssignorRange, changing: Collection[str]) -> Iterator[str]:
        """Yield which members run an assignor in this range and stay as they were, by member id."""
        runners = self.group.runners
        for index in range(bisect_left(runners, (fit, "")), len(runners)):
            known, member_id = runners[index]
            if known != fit:
                return
            if member_id not in changing:
                yield member_id


def preview_of(group: Group, records: Iterable[Record]) -> Preview:
    """Return the preview that these records lead to; the group stays as it is."""
    preview = Preview(group, group.group_epoch, group.assignment_epoch, Electorate.of(group))
    for record in records:
        match record:
            case GroupMetadata():
                preview.group_epoch = record.group_epoch
            case TargetAssignment():
                preview.assignment_epoch = record.assignment_epoch
            case MemberMetadata(member_id):
                _turn(preview, member_id, record)
            case Tombstone(kind, (str() as member_id,)) if kind is MemberMetadata:
                _turn(preview, member_id, None)
                preview.epochs.pop(member_id, None)
            case CurrentAssignment(member_id):
                preview.epochs[member_id] = record.member_epoch
            case _:
                pass
    return preview


def _turn(preview: Preview, member_id: str, new: MemberMetadata | None) -> None:
    old = preview.metadata(member_id)
    preview.electorate = preview.electorate.turned(old, new)
    preview.changed[member_id] = new


def evolve_copy(group: Group, records: Iterable[Record]) -> Group:
    """Return a group of its own that has evolved by these records; costs the whole group."""
    ahead = Group(**{each.name: copy(getattr(group, each.name)) for each in fields(Group)})
    for record in records:
        evolve(ahead, record, ahead.end)
    return ahead
