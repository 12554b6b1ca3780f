"""The commits of a worker's tasks on their way to the group.

All that waits goes in one message, and one message is on its way at a time. A commit that was
carried is answered once: by the group's verdict, or, when the message is given up, by "unknown";
the task then asks again, and is told the same again. A batch that was published is told until the
very message that tells it is answered.
"""

from .....actors.messages.errors import Error
from .....actors.messages.members import CommitOffsets, CommitReply
from .....events.commits import Commit, CommitId
from .contract import AnswerCommit

ANSWER_MS = 4_000
"""How long a message may be on its way before the tasks are told to ask again."""
REFUSED_MS = 1_000
"""How long nothing is carried to a group that cannot write it down."""

LATE = "the group did not answer in time"
RECONNECTED = "the group's actor went away"
NO_VERDICT = "the group's answer says nothing of this commit"


class CommitQueue:
    """What waits to be carried, and what is on its way; times in milliseconds on any one clock."""

    def __init__(self, group_id: str) -> None:
        self._group_id = group_id
        self._waiting: dict[CommitId, Commit] = {}
        """The commits that were not carried yet."""
        self._published: list[CommitId] = []
        """The batches whose files are in place, which the group was not told yet."""
        self._carried: CommitOffsets | None = None
        """The message that is on its way."""
        self._give_up_at_ms = 0
        """When that message counts as lost."""
        self._pause_until_ms = 0
        """Until when nothing is carried."""
        self._number = 0
        """That of the last message."""

    def add(self, commit: Commit) -> None:
        """Take a commit; one that is asked for again takes the place of the same."""
        self._waiting[commit.commit_id] = commit

    def add_published(self, commit_id: CommitId) -> None:
        """Take that a batch's files are in place."""
        self._published.append(commit_id)

    def carry(self, member_id: str, now_ms: int) -> CommitOffsets | None:
        """Return what to send now in a member's name; None: nothing, or something is on its way."""
        if self._carried or now_ms < self._pause_until_ms or self._is_empty:
            return None
        self._number += 1
        commits, published = tuple(self._waiting.values()), tuple(self._published)
        self._carried = CommitOffsets(self._group_id, member_id, commits, published, self._number)
        self._give_up_at_ms = now_ms + ANSWER_MS
        self._waiting, self._published = {}, []
        return self._carried

    def settle(self, reply: CommitReply, now_ms: int) -> list[AnswerCommit]:
        """Hand out the verdicts; an answer to what was given up is ignored."""
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
        """Give up what is on its way: the tasks ask again, and are told the same again."""
        carried, self._carried = self._carried, None
        if carried is None:
            return []
        self._published = [*carried.published, *self._published]
        return [AnswerCommit(each.commit_id, None, why) for each in carried.commits]

    def tick(self, now_ms: int) -> list[AnswerCommit]:
        """Give up what was not answered in time."""
        is_late = self._carried is not None and now_ms >= self._give_up_at_ms
        return self.lose(LATE) if is_late else []

    def next_tick_ms(self) -> int | None:
        """Return when `tick` or `carry` has something to do, None if never."""
        if self._carried is not None:
            return self._give_up_at_ms
        return None if self._is_empty else self._pause_until_ms

    @property
    def _is_empty(self) -> bool:
        return not (self._waiting or self._published)
