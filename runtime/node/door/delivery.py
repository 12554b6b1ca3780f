"""Delivers an owner's answers on another host once the copies of the logs there hold their grounds.

On the owner's host an answer leaves after what it rests on is in the logs there, so that whoever
hears it may read on. On any other host the logs are copies that lag. So an answer from the owner
names the ends of both logs as they were when it left, and waits until the copies on its host have
reached both. Without that a task may begin at an older offset than was committed before its grant,
and a batch whose commit is answered, but not to be seen yet, is taken for published.
"""

from collections.abc import Sequence
from typing import Final, Generic, NamedTuple, TypeVar

A = TypeVar("A")
MOST_WAITING: Final = 10_000
"""How many answers may wait. While a host does not reach the store, its senders ask again and
again: whoever waits for the oldest one has asked anew."""


class LogEnds(NamedTuple):
    """The ends of a group's two logs: the offsets behind their last entries."""

    control: int = 0
    offsets: int = 0

    def have(self, needed: "LogEnds") -> bool:
        """Tell whether logs with these ends hold all up to other ends."""
        return self.control >= needed.control and self.offsets >= needed.offsets


class AnswersAhead(Generic[A]):
    """The answers that have arrived on a host before what they rest on."""

    def __init__(self, copies: LogEnds) -> None:
        """Start without any; `copies` are the ends of the copies on this host."""
        self._copies = copies
        self.furthest = copies
        """The furthest ends that answers have named, and copies have had."""
        self._waiting: list[tuple[LogEnds, A]] = []

    def arrive(self, answer: A, rests_on: LogEnds) -> Sequence[A]:
        """Return the answer if it is to be delivered now; else it waits."""
        self._note(rests_on)
        if self._copies.have(rests_on):
            return [answer]
        self._waiting.append((rests_on, answer))
        if len(self._waiting) > MOST_WAITING:
            del self._waiting[0]
        return ()

    def advance(self, copies: LogEnds) -> Sequence[A]:
        """Record how far the copies are now; return the answers to deliver, in their order."""
        self._copies = copies
        self._note(copies)
        due = [answer for needed, answer in self._waiting if copies.have(needed)]
        self._waiting = [each for each in self._waiting if not copies.have(each[0])]
        return due

    @property
    def missing(self) -> int:
        """How many entries the copies lack, as far as answers tell."""
        return sum(self.furthest) - sum(self._copies)

    def _note(self, ends: LogEnds) -> None:
        self.furthest = LogEnds(*map(max, self.furthest, ends))
