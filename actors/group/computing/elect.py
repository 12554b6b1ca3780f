"""Which member computes the target, and with which assignor (PROTOCOL §6).

An election rests on counts that the group keeps, not on its members one by one: how many
can run which versions of an assignor, how many list their assignors in which order, how
many name which server assignor. Only to find the member itself are they walked through.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from ....events.group import AssignorRange, Group
from ....events.model import ClientAssignor
from ....events.records import MemberMetadata

Fit = Mapping[str, Collection[AssignorRange]]
"""The assignors that all members run, each with the ranges that can compute for all."""


@dataclass(frozen=True, slots=True)
class Electorate:
    """What of all members decides who computes; costs what differs among them."""

    ranges: Mapping[AssignorRange, int]
    ballots: Mapping[tuple[str, ...], int]
    server_choices: Mapping[str, int]
    members: int

    @classmethod
    def of(cls, group: Group) -> "Electorate":
        """Return that of a group as it is."""
        return cls(group.assignor_ranges, group.ballots, group.server_choices, len(group.members))

    def turned(self, old: MemberMetadata | None, new: MemberMetadata | None) -> "Electorate":
        """Return that in which one member is new, says something new, or is gone."""
        ranges, ballots = Counter(self.ranges), Counter(self.ballots)
        server_choices = Counter(self.server_choices)
        for metadata, change in ((old, -1), (new, 1)):
            if metadata is None:
                continue
            for each in metadata.assignors:
                ranges[range_of(each)] += change
            if metadata.assignors:
                ballots[tuple(each.name for each in metadata.assignors)] += change
            if metadata.server_assignor is not None:
                server_choices[metadata.server_assignor] += change
        members = self.members + (new is not None) - (old is not None)
        return Electorate(+ranges, +ballots, +server_choices, members)

    def without(self, gone: Iterable[MemberMetadata]) -> "Electorate":
        """Return that in which these members are not counted."""
        found = self
        for each in gone:
            found = found.turned(each, None)
        return found

    def fit(self) -> Fit:
        """Return the assignors with which a member can compute for all."""
        return fit_ranges(self.ranges, self.members)

    def server_assignor(self, known: Collection[str]) -> str:
        """Return the server assignor that most members name, ties by name, or nothing."""
        named = ((-count, name) for name, count in self.server_choices.items() if name in known)
        return min(named, default=(0, ""))[1]


def fit_ranges(ranges: Mapping[AssignorRange, int], members: int) -> dict[str, set[AssignorRange]]:
    """Return the assignors that all members run, each with the ranges fit to compute for all.

    Fit is a range that covers all ranges, or, where none does, all versions that are
    written; an assignor for which none is fit is left out.
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
    """Return what of an assignor decides which members can compute with it."""
    return assignor.name, assignor.minimum_version, assignor.maximum_version, assignor.version


def vote(ballots: Mapping[tuple[str, ...], int], eligible: Collection[str]) -> str:
    """Return the assignor with the most votes, ties by name; nothing if nobody has any.

    Each member votes for the first eligible one in its list.
    """
    votes: Counter[str] = Counter()
    for ballot, count in ballots.items():
        if choice := next((name for name in ballot if name in eligible), ""):
            votes[choice] += count
    return min(((-count, name) for name, count in votes.items()), default=(0, ""))[1]


def may_run(member: MemberMetadata, fit: Collection[AssignorRange]) -> bool:
    """Tell whether a member can compute for all with the assignor of these ranges."""
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
