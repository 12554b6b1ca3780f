"""Finds the present end of a log of which there is a copy here, for those who may not do with less.

A copy lags behind what counts in a store (LOG.md §13): its end is a past one. An answer of the
group's owner rests on the ends of then, and is delivered once the copy here has them (PROTOCOL §3).
So a commit of nothing is sent, and whoever asked before it was sent may read the copy when it is
answered.
"""

from typing import Final

from .....actors.messages.members import CommitOffsets, CommitReply
from .contract import PresentReached

_MOST_ASKED: Final = 1_000
"""How many messages are remembered: whoever waits for the oldest one has long given up."""


class PresentQuestions:
    """The threads that wait for the present end of the log, by the message that they wait for."""

    def __init__(self, group_id: str) -> None:
        self._group_id = group_id
        self._waiting: list[object] = []
        """Who has asked since the last message."""
        self._asked: dict[int, list[object]] = {}
        """Who waits for the answer to a message, by its number."""
        self._number = 0

    def add(self, asker: object) -> None:
        """Add somebody who asks now."""
        self._waiting.append(asker)

    def carry(self, member_id: str, now_ms: int) -> CommitOffsets | None:
        """Return the message to send for those who have asked since the last one; None: nobody has.

        Its number is that of no commit, which count up from 1, nor of a message of a former
        process.
        """
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return None
        self._number = min(self._number - 1, -now_ms)
        self._asked[self._number] = waiting
        if len(self._asked) > _MOST_ASKED:
            del self._asked[next(iter(self._asked))]
        return CommitOffsets(self._group_id, member_id, (), (), self._number)

    def settle(self, reply: CommitReply) -> list[PresentReached]:
        """Return who may read the log by the answer to a message."""
        return [PresentReached(each) for each in self._asked.pop(reply.number, ())]

    def lose(self) -> list[PresentReached]:
        """Give up all messages: what counts now is not known to those who wait for them."""
        lost, self._asked = self._asked, {}
        return [PresentReached(each, is_known=False) for all_of in lost.values() for each in all_of]
