"""Which member computes the target, and with which assignor (PROTOCOL §6).

An election needs only counts that the group keeps, not its members one by one: how many can run
which versions of an assignor, how many list their assignors in which order, how many name which
server assignor. Members are looked through only to find the one that computes.

It is held before the records of a command are written, for the group as it will be after them: the
`Preview`, which costs what the records change.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import merge

from ....events.group import AssignorRange, Group
from ....events.model import ClientAssignor
from ....events.placement import takes_tagged_only
from ....events.records import (
    CurrentAssignment,
    GroupMetadata,
    MemberMetadata,
    Record,
    TargetAssignment,
    Tombstone,
)

Fit = Mapping[str, Collection[AssignorRange]]
"""The assignors that all members run, each with the ranges that can compute for all."""


@dataclass(frozen=True, slots=True)
class Electorate:
    """The counts over all members that decide who computes."""

    ranges: Mapping[AssignorRange, int]
    """How many members run an assignor in these versions."""
    ballots: Mapping[tuple[str, ...], int]
    """How many list these assignors, in this order."""
    server_choices: Mapping[str, int]
    """How many name this server assignor."""
    members: int
    """How many there are in all."""
    unable: int = 0
    """How many of them cannot compute: those of the classic protocol."""

    @classmethod
    def of(cls, group: Group) -> "Electorate":
        """Return the electorate of a group."""
        counts = len(group.members), len(group.translated)
        return cls(group.assignor_ranges, group.ballots, group.server_choices, *counts)

    def with_change(self, old: MemberMetadata | None, new: MemberMetadata | None) -> "Electorate":
        """Return the electorate after one member joined, changed, or was removed."""
        ranges, ballots = Counter(self.ranges), Counter(self.ballots)
        server_choices, unable = Counter(self.server_choices), self.unable
        for metadata, change in ((old, -1), (new, 1)):
            if metadata is None:
                continue
            unable += change * (metadata.classic is not None)
            for each in metadata.assignors:
                ranges[range_of(each)] += change
            if metadata.assignors:
                ballots[tuple(each.name for each in metadata.assignors)] += change
            if metadata.server_assignor is not None:
                server_choices[metadata.server_assignor] += change
        members = self.members + (new is not None) - (old is not None)
        return Electorate(+ranges, +ballots, +server_choices, members, unable)

    def without(self, gone: Iterable[MemberMetadata]) -> "Electorate":
        """Return the electorate without these members."""
        found = self
        for each in gone:
            found = found.with_change(each, None)
        return found

    def fit(self) -> Fit:
        """Return the assignors with which a member can compute for all."""
        return fit_ranges(self.ranges, self.members - self.unable)

    def server_assignor(self, known: Collection[str]) -> str:
        """Return the server assignor that most members name, ties by name; "" if none."""
        named = ((-count, name) for name, count in self.server_choices.items() if name in known)
        return min(named, default=(0, ""))[1]


@dataclass(slots=True)
class Preview:
    """The inputs of a computation after some records; the cost depends on these records alone."""

    group: Group
    group_epoch: int
    assignment_epoch: int
    electorate: Electorate
    changed: dict[str, MemberMetadata | None] = field(
        default_factory=dict[str, MemberMetadata | None]
    )
    """The new metadata of members that join or change, by member id; None for removed ones."""
    epochs: dict[str, int] = field(default_factory=dict[str, int])
    """The member epochs that change."""

    @property
    def is_due(self) -> bool:
        """Return whether the group needs a new target."""
        return self.group_epoch > self.assignment_epoch and self.electorate.members > 0

    def voters(self) -> Electorate:
        """Return the members with a vote: all members, including those that are away.

        If no assignor is fit for all, only present members count: one that left for a while may
        come back with another list, and is checked when it does.
        """
        if self.electorate.fit():
            return self.electorate
        known = {*self.group.away, *self.changed, *self.epochs}
        away = (self.metadata(each) for each in known if not self.is_present(each))
        return self.electorate.without(each for each in away if each is not None)

    def metadata(self, member_id: str) -> MemberMetadata | None:
        """Return the metadata of a member that is in the group then."""
        if member_id in self.changed:
            return self.changed[member_id]
        member = self.group.members.get(member_id)
        return member.metadata if member else None

    def is_present(self, member_id: str) -> bool:
        """Return whether a member is in the group and not away."""
        if self.metadata(member_id) is None:
            return False
        if member_id in self.epochs:
            return self.epochs[member_id] >= 0
        member = self.group.members.get(member_id)
        return member is None or member.current.member_epoch >= 0

    def eligible(self, fit: Collection[AssignorRange]) -> Iterator[MemberMetadata]:
        """Yield the present members that compute with one of these ranges, by member id.

        One that takes only work with tags does not know all work, and is not asked to compute.

        Costs what is taken of it: a walk through all members for each of many that leave would cost
        their number squared.
        """
        changing = self.changed.keys() | self.epochs.keys()
        others = (self._runners(each, changing) for each in fit)
        for member_id in merge(*others, sorted(changing)):
            metadata = self.metadata(member_id)
            if metadata is None or not self.is_present(member_id):
                continue
            if may_run(metadata, fit) and not takes_tagged_only(metadata):
                yield metadata

    def is_awaiting_assignor(self, served: Collection[str]) -> bool:
        """Return whether a member has to compute, and all members that can are away for a while.

        Then the coordinator computes in their place, but leaves deferred moves to them. `served`
        are the names of the server assignors.
        """
        if self.electorate.server_assignor(served):
            return False
        fit = self.electorate.fit()
        name = vote(self.electorate.ballots, fit)
        return bool(name) and next(self.eligible(fit[name]), None) is None

    def _runners(self, fit: AssignorRange, changing: Collection[str]) -> Iterator[str]:
        """Yield the ids of unchanged members that run an assignor in this range."""
        runners = self.group.runners
        for index in range(bisect_left(runners, (fit, "")), len(runners)):
            known, member_id = runners[index]
            if known != fit:
                return
            if member_id not in changing:
                yield member_id


def preview_of(group: Group, records: Iterable[Record]) -> Preview:
    """Return the preview after these records; the group is not changed."""
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
    preview.electorate = preview.electorate.with_change(old, new)
    preview.changed[member_id] = new


def fit_ranges(ranges: Mapping[AssignorRange, int], members: int) -> dict[str, set[AssignorRange]]:
    """Return the assignors that all members run, each with the ranges that can compute for all.

    Such a range covers all ranges, or, if none does, all versions that are written. An assignor
    without one is left out.
    """
    runners: Counter[str] = Counter()
    for (name, *_), count in ranges.items():
        runners[name] += count
    common = {name for name, count in runners.items() if count == members}
    fit = {name: _fit([each for each in ranges if each[0] == name]) for name in common}
    return {name: found for name, found in fit.items() if found}


def _fit(ranges: list[AssignorRange]) -> set[AssignorRange]:
    low, high = min(each[1] for each in ranges), max(each[2] for each in ranges)
    if found := {each for each in ranges if each[1] <= low and high <= each[2]}:
        return found
    low, high = min(each[3] for each in ranges), max(each[3] for each in ranges)
    return {each for each in ranges if each[1] <= low and high <= each[2]}


def range_of(assignor: ClientAssignor) -> AssignorRange:
    """Return the part of an assignor that decides which members can compute with it."""
    return assignor.name, assignor.minimum_version, assignor.maximum_version, assignor.version


def vote(ballots: Mapping[tuple[str, ...], int], eligible: Collection[str]) -> str:
    """Return the assignor with the most votes, ties by name; "" if there are no votes.

    Each member votes for the first eligible one in its list.
    """
    votes: Counter[str] = Counter()
    for ballot, count in ballots.items():
        if choice := next((name for name in ballot if name in eligible), ""):
            votes[choice] += count
    return min(((-count, name) for name, count in votes.items()), default=(0, ""))[1]


def may_run(member: MemberMetadata, fit: Collection[AssignorRange]) -> bool:
    """Return whether a member can compute for all members, given its assignors' version ranges."""
    return any(range_of(each) in fit for each in member.assignors)


def elect(
    eligible: Iterable[MemberMetadata],
    electorate: Electorate,
    last_chosen: str,
    timed_out: frozenset[str],
) -> tuple[str, MemberMetadata] | None:
    """Return the assignor's name and the eligible member that runs it, or None.

    Members that took too long for this group epoch come last: if all have, all may again.
    The last chosen stays chosen while it qualifies; else the lowest member id.
    """
    fit = electorate.fit()
    name = vote(electorate.ballots, fit)
    if not name:
        return None
    candidates = {each.member_id: each for each in eligible if may_run(each, fit[name])}
    rested = candidates.keys() - timed_out or candidates.keys()
    if not rested:
        return None
    return name, candidates[last_chosen if last_chosen in rested else min(rested)]
