"""Batches the commits of a worker's tasks into messages to the group.

All waiting commits are sent in one message, and one message is in flight at a time. Each commit is
answered once: with the group's verdict, or with "unknown" when the message is given up. The task
then retries; a commit is idempotent, so it gets the same verdict. The report of a published batch
is repeated until a message with it is answered.
"""

from .....actors.messages.errors import Error
from .....actors.messages.members import CommitOffsets, CommitReply
from .....events.commits import Commit, CommitId
from .contract import AnswerCommit

ANSWER_MS = 4_000
"""How long a message may be in flight before the tasks have to retry."""
REFUSED_MS = 1_000
"""The pause after the group could not write to its log."""

LATE = "the group did not answer in time"
RECONNECTED = "the group's actor went away"
NO_VERDICT = "the group's answer says nothing of this commit"


class CommitQueue:
    """The waiting commits and the message in flight; all times are milliseconds of one clock."""

    def __init__(self, group_id: str) -> None:
        self._group_id = group_id
        self._waiting: dict[CommitId, Commit] = {}
        """The commits that were not sent yet."""
        self._published: list[CommitId] = []
        """The published batches that were not reported to the group yet."""
        self._carried: CommitOffsets | None = None
        """The message in flight."""
        self._give_up_at_ms = 0
        """When that message counts as lost."""
        self._pause_until_ms = 0
        """Until when nothing is sent."""
        self._number = 0
        """The correlation id of the last message."""

    def add(self, commit: Commit) -> None:
        """Add a commit; a retry replaces the same commit."""
        self._waiting[commit.commit_id] = commit

    def add_published(self, commit_id: CommitId) -> None:
        """Add the report that a batch is published."""
        self._published.append(commit_id)

    def carry(self, member_id: str, now_ms: int) -> CommitOffsets | None:
        """Return the commit message to send now; None if there is none, or one in flight."""
        if self._carried or now_ms < self._pause_until_ms or self._is_empty:
            return None
        self._number += 1
        commits, published = tuple(self._waiting.values()), tuple(self._published)
        self._carried = CommitOffsets(self._group_id, member_id, commits, published, self._number)
        self._give_up_at_ms = now_ms + ANSWER_MS
        self._waiting, self._published = {}, []
        return self._carried

    def settle(self, reply: CommitReply, now_ms: int) -> list[AnswerCommit]:
        """Return the verdicts for the tasks; ignores the reply to a message that was given up."""
        if self._carried is None or reply.number != self._carried.number:
            return []
        if reply.error is not Error.NONE:
            self._pause_until_ms = now_ms + REFUSED_MS
            return self.lose(reply.message)
        carried, self._carried = self._carried, None
        verdicts = {each.commit_id: each for each in reply.verdicts}
        asked = [each.commit_id for each in carried.commits]
        return [
            AnswerCommit(each, verdicts[each])
            if each in verdicts
            else AnswerCommit(each, None, NO_VERDICT)
            for each in asked
        ]

    def lose(self, why: str = RECONNECTED) -> list[AnswerCommit]:
        """Give up the message in flight: its tasks have to retry."""
        carried, self._carried = self._carried, None
        if carried is None:
            return []
        self._published = [*carried.published, *self._published]
        return [AnswerCommit(each.commit_id, None, why) for each in carried.commits]

    def tick(self, now_ms: int) -> list[AnswerCommit]:
        """Give up the message in flight if it was not answered in time."""
        is_late = self._carried is not None and now_ms >= self._give_up_at_ms
        return self.lose(LATE) if is_late else []

    def next_tick_ms(self) -> int | None:
        """Return when `tick` or `carry` next has to be called; None: not before a commit."""
        if self._carried is not None:
            return self._give_up_at_ms
        return None if self._is_empty else self._pause_until_ms

    @property
    def _is_empty(self) -> bool:
        return not (self._waiting or self._published)
