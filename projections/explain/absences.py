"""Static members that left for a while, and the work that was kept for their return.

Nobody runs what the target gives a member that is away, until it is back or its seat ends. Neither
raises the epoch, so an absence is shown with the epochs under whose target it falls.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...events.group import AWAY_EPOCH
from ...events.model import NOTHING, Resources
from ...events.records import (
    CurrentAssignment,
    MemberMetadata,
    Record,
    TargetAssignment,
    Tombstone,
)
from .diff import Owner


@dataclass(frozen=True, slots=True)
class Absence:
    """The absence of a member, and its work; times are wall clock in milliseconds."""

    seat: Owner
    resources: Resources
    """What the target kept for it."""
    since_ms: int
    until_ms: int | None = None
    """None as long as it is away."""
    is_back: bool = False
    """Whether it came back."""
    superseded_by: int | None = None
    """The assignment epoch of a later target under which the absence went on, if one did."""


class Absences:
    """A fold of the whole log that follows the members that were away under each target."""

    def __init__(self, urls: Mapping[str, str]) -> None:
        """`urls` are those of the members, by member id."""
        self._urls = urls
        self._epoch = 0
        """The assignment epoch of the latest target."""
        self._shares: dict[str, Resources] = {}
        """What the latest target gives each member, by the member id that it has now."""
        self._away_since_ms: dict[str, int] = {}
        """Since when each member is away, by member id."""
        self._found: list[Absence] = []
        """Under the latest target, as they began."""

    def apply(self, record: Record, now_ms: int) -> None:
        """Apply the next record of the log but for targets, which `apply_target` takes."""
        if isinstance(record, MemberMetadata):
            self._apply_metadata(record, now_ms)
        elif isinstance(record, CurrentAssignment):
            self._apply_step(record, now_ms)
        elif isinstance(record, Tombstone) and record.kind is MemberMetadata:
            self._away_since_ms.pop(str(record.key[0]), None)
            self._end(str(record.key[0]), now_ms)

    def apply_target(self, target: TargetAssignment, now_ms: int) -> Sequence[Absence]:
        """Apply a target; return the absences under it, to which later records add."""
        for number, each in enumerate(self._found):
            if each.until_ms is None:
                has_share = bool(target.members.get(each.seat.member_id))
                epoch = target.assignment_epoch if has_share else None
                self._found[number] = replace(each, until_ms=now_ms, superseded_by=epoch)
        self._epoch, self._shares, self._found = target.assignment_epoch, dict(target.members), []
        for member_id, since_ms in sorted(self._away_since_ms.items()):
            self._begin(member_id, since_ms)
        return self._found

    def _apply_metadata(self, record: MemberMetadata, now_ms: int) -> None:
        """End the absence of a member that comes back, and give it the share of its seat."""
        member_id, came_back = record.member_id, record.succession
        if came_back is None or came_back.assignment_epoch != self._epoch:
            return
        if came_back.target_id in self._shares:
            self._shares[member_id] = self._shares[came_back.target_id]
        gone = [n for n, each in enumerate(self._found) if each.until_ms == now_ms]
        for number in gone:  # its old member id was buried just before, in the same step
            if self._found[number].seat.worker == self._urls[member_id]:
                self._found[number] = replace(self._found[number], is_back=True)

    def _apply_step(self, step: CurrentAssignment, now_ms: int) -> None:
        if step.member_epoch == AWAY_EPOCH:
            if self._away_since_ms.setdefault(step.member_id, now_ms) == now_ms:
                self._begin(step.member_id, now_ms)
        elif self._away_since_ms.pop(step.member_id, None) is not None:
            self._end(step.member_id, now_ms, is_back=True)

    def _begin(self, member_id: str, since_ms: int) -> None:
        share = self._shares.get(member_id, NOTHING)
        if share:
            seat = Owner(self._urls.get(member_id, member_id), member_id)
            self._found.append(Absence(seat, share, since_ms))

    def _end(self, member_id: str, now_ms: int, *, is_back: bool = False) -> None:
        for number, each in enumerate(self._found):
            if each.seat.member_id == member_id and each.until_ms is None:
                self._found[number] = replace(each, until_ms=now_ms, is_back=is_back)
