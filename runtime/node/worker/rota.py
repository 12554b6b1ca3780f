"""Whose turn it is to do the chores of a group, and who follows all of it for that."""

from heapq import merge
from itertools import islice
from typing import Protocol

from ....events.catalogue import TYPE_OF, entry_key, pack_key
from ....events.entries.codec import decode
from ....events.group import AWAY_EPOCH, Group
from ....events.log.reader import LogReader
from ....events.records import ClassicGroup, CurrentAssignment, MemberMetadata
from ....projections.follow import Follower

ROTA_MS = 2_000
"""How long it may take a member to learn that its turn has come, or is next."""


def is_on_duty(group: Group, member_id: str) -> bool:
    """Tell whether a member is the one that does the chores; one that is away is not."""
    present = (each.member_id for each in group.workers() if not each.is_away)
    return member_id == min(present, default=None)


class NamedMember(Protocol):
    """A member that may be given another name, as the one that a worker's log follows."""

    member_id: str


class Rota:
    """The whole group, for those who may have chores to do: whose turn it is, and who is next.

    All others need not follow it. The next one does, so that it knows what was there before its
    turn comes. The rota is read anew now and then: that somebody does not know of its turn yet
    puts chores off, and no more.
    """

    def __init__(self, group_id: str, member: NamedMember, log: LogReader) -> None:
        self._group_id = group_id
        self._member = member
        self._log = log
        self._follower: Follower | None = None
        """Follows the whole group; None where the member has no chores to expect."""
        self._look_at_ms = 0
        """When to read the rota next."""

    @property
    def member_id(self) -> str:
        """What the group calls the member by now."""
        return self._member.member_id

    def group(self, now_ms: int) -> Group | None:
        """Return the group as its log has it, None where the member has no chores to expect."""
        if now_ms >= self._look_at_ms:
            self._look_at_ms = now_ms + ROTA_MS
            if not self._is_near():
                self._follower = None
            elif self._follower is None:
                self._follower = Follower(self._group_id, self._log)
        return None if self._follower is None else self._follower.catch_up()

    def _is_near(self) -> bool:
        """Tell whether the member is one of the first two of those present."""
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
