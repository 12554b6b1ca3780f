"""Who computes the target, and with which assignor (PROTOCOL §6)."""

from collections import Counter
from collections.abc import Iterable, Mapping

from ...events.group import AssignorRange
from ...events.model import Assignor
from ...events.records import MemberMetadata


def able(ranges: Mapping[AssignorRange, int], members: int) -> dict[str, set[AssignorRange]]:
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


def range_of(assignor: Assignor) -> AssignorRange:
    """Return what of an assignor decides who can compute with it."""
    return assignor.name, assignor.minimum_version, assignor.maximum_version, assignor.version


def elect(
    members: Iterable[MemberMetadata], last_chosen: str, timed_out: frozenset[str]
) -> tuple[str, str] | None:
    """Return the assignor's name and the member that runs it, or None if nobody can.

    Those who took too long for this group epoch come last: if all have, all may again.
    The last chosen stays chosen while it qualifies; else the lowest member id.
    """
    crew = list(members)
    ranges = Counter(range_of(each) for member in crew for each in member.assignors)
    fit = able(ranges, len(crew))
    if not fit:
        return None
    name = min(fit)
    candidates = [
        member.member_id
        for member in crew
        if not fit[name].isdisjoint(map(range_of, member.assignors))
    ]
    rested = [member_id for member_id in candidates if member_id not in timed_out] or candidates
    return name, last_chosen if last_chosen in rested else min(rested)
