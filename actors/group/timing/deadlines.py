"""Until when members must be heard of, and must have given up what they were asked to.

Soft state on the steady clock: after a restart every member has a full session again, and
each revocation its full time (PROTOCOL §4, §8).
"""

from collections.abc import Iterator

from ....events.group import Group, Member
from ....events.model import MemberState
from ...messages.timers import ExpireRebalance, ExpireSession
from ..members.request_filter import RequestFilter
from ..members.seats import patience_ms
from ..state.settings import GroupSettings
from .alarms import TimerQueue


class MemberTimers:
    """The session and rebalance timers of one group's members.

    None is ever called off: one whose seat or revocation is over finds nothing to end.
    """

    def __init__(self, group: Group, settings: GroupSettings, steady_ms: int) -> None:
        """Give every member of the log all the time that it can have."""
        self._sessions: TimerQueue[tuple[str, int]] = TimerQueue()
        self._revocations: TimerQueue[tuple[str, int]] = TimerQueue()
        self._heard_ms: dict[str, int] = {}
        """When each member was last heard of, by member id: not those of the log as it was."""
        for member in group.members.values():
            self._wait(member, settings, steady_ms)
            self.time_revocation(member, steady_ms)

    def keep_alive(self, member: Member, settings: GroupSettings, since_ms: int) -> None:
        """Wait for the member's next word, counted from when its last one came."""
        self._heard_ms[member.member_id] = since_ms
        self._wait(member, settings, since_ms)

    def forget(self, member_id: str) -> None:
        """Forget when a member was last heard of that is gone."""
        self._heard_ms.pop(member_id, None)

    def _wait(self, member: Member, settings: GroupSettings, since_ms: int) -> None:
        seat = member.member_id, member.metadata.joined_epoch
        self._sessions.set(seat, since_ms + patience_ms(member, settings))

    def time_revocation(self, member: Member, steady_ms: int) -> None:
        """Time a revocation from the record that asks for it, if that is the member's last."""
        if member.current.state is MemberState.UNREVOKED:
            asked = member.member_id, member.offset
            self._revocations.set(asked, steady_ms + member.metadata.rebalance_timeout_ms)

    def time_revocation_anew(self, member: Member, settings: GroupSettings, steady_ms: int) -> None:
        """Count a revocation from a repeated join that did not acknowledge it.

        Such a member has stopped everything and forgotten when its revocation is due. What the
        answer grants it runs until the session that begins with it ends, so the group does not
        give that to others before.
        """
        if member.current.state is MemberState.UNREVOKED:
            asked = member.member_id, member.offset
            timeout_ms = member.metadata.rebalance_timeout_ms
            self._revocations.set(asked, steady_ms + max(timeout_ms, patience_ms(member, settings)))

    def due(
        self, requests: RequestFilter, now_ms: int
    ) -> Iterator[ExpireSession | ExpireRebalance]:
        """Yield whose time is up, each once; `requests` knows who ever answered for its work."""
        for member_id, joined_epoch in self._sessions.due(now_ms):
            silent_ms = now_ms - self._heard_ms.get(member_id, now_ms)
            acknowledged = requests.has_acknowledged(member_id)
            yield ExpireSession(member_id, acknowledged, joined_epoch, silent_ms)
        for member_id, offset in self._revocations.due(now_ms):
            yield ExpireRebalance(member_id, offset, requests.has_acknowledged(member_id))
