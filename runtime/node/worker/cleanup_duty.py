"""Decides which member does the cleanups of a group, and follows the group's log for them."""

from heapq import merge
from itertools import islice
from typing import Protocol

from ....events.catalogue import TYPE_OF, entry_key, pack_key
from ....events.entries.codec import decode
from ....events.group import AWAY_EPOCH, Group
from ....events.log.reader import LogReader
from ....events.records import ClassicGroup, CurrentAssignment, MemberMetadata
from ....projections.follow.group import Follower

CHECK_MS = 2_000
"""How often a member checks whether it is on duty or next."""


def is_on_duty(group: Group, member_id: str) -> bool:
    """Return whether a member does the cleanups: the present one with the lowest id."""
    present = (each.member_id for each in group.workers() if not each.is_away)
    return member_id == min(present, default=None)


class NamedMember(Protocol):
    """A member whose id may change; a worker's log follower is one."""

    member_id: str


class CleanupDuty:
    """Follows the whole group's log on the two members that are on duty or next.

    The next one follows already, so that it has seen the configs of tasks that are removed later.
    All other members save the work. The duty is checked every `CHECK_MS`; until a member has
    learned that it is on duty, cleanups are only delayed.
    """

    def __init__(self, group_id: str, member: NamedMember, log: LogReader) -> None:
        self._group_id = group_id
        self._member = member
        self._log = log
        self._follower: Follower | None = None
        """Follows the whole group; None if the member is neither on duty nor next."""
        self._look_at_ms = 0
        """When to check the duty next."""
        self._checked = ("", -1)
        """The member id and the end of the log when the duty was checked last."""

    @property
    def member_id(self) -> str:
        """The current id of the member."""
        return self._member.member_id

    def group(self, now_ms: int) -> Group | None:
        """Return the current group, None if the member is neither on duty nor next."""
        if now_ms >= self._look_at_ms:
            self._look_at_ms = now_ms + CHECK_MS
            self._check()
        return None if self._follower is None else self._follower.catch_up()

    def _check(self) -> None:
        """Start or stop following the group, unless the log is unchanged."""
        now = self.member_id, self._log.end()
        if now == self._checked:
            return
        if not self._is_near():
            self._follower = None
        elif self._follower is None:
            self._follower = Follower(self._group_id, self._log)
        self._checked = now

    def _is_near(self) -> bool:
        """Return whether the member is among the two lowest ids of present members."""
        ids = (entry.key for entry in self._log.scan(TYPE_OF[MemberMetadata].number))
        present = merge(filter(self._is_present, ids), self._classic_ids())
        return pack_key((self.member_id,)) in islice(present, 2)

    def _classic_ids(self) -> list[bytes]:
        entry = self._log.get(*entry_key(ClassicGroup, ()))
        last = None if entry is None else decode(entry)
        members = last.members if isinstance(last, ClassicGroup) else ()
        return sorted(pack_key((each.member_id,)) for each in members)

    def _is_present(self, key: bytes) -> bool:
        entry = self._log.get(TYPE_OF[CurrentAssignment].number, key)
        step = None if entry is None else decode(entry)
        return not (isinstance(step, CurrentAssignment) and step.member_epoch == AWAY_EPOCH)
