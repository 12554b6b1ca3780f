"""The interface between groups, of whatever kind, and their process: requests in, records out.

A process hosts groups as Kafka's coordinator runtime does: it does not know their rules. A group
decides and never writes; it hands out what it has decided as a `Ready`, as raft implementations do.
No answer may be sent before the records that it depends on are durable, so every process keeps one
order, which is `drain`:

1. `ready`: what was decided since the last time, with the answers that this makes due;
2. the entries of the offset log are appended: the accepted commits. They come first, since the
   records of the control log may end the tokens under which they were accepted;
3. the entries of the control log are appended;
4. `advance`: the group learns that all of it is durable;
5. the answers are sent.

A write that fails has an unknown outcome. Then neither 4 nor 5 happens: the process ends, and the
next one rebuilds the group from its logs.

Where the logs lie in a store, another process may own them without this one's knowledge. An append
that counts shows that it does not, as of a moment after the append began. So what is answered
without a record of its own waits for such a word of the store (`UnconfirmedAnswers`): no answer is
older than what another owner has told, and no clock decides about that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TypeVar

from ...events.log.frame import NewEntry
from ...events.log.space import RESERVE_BYTES, DiskSpace
from ..messages.commands import Address, AddressedReply, Traffic
from ..timing import Now

Q_contra = TypeVar("Q_contra", contravariant=True)

ENOUGH_SPACE: Final = DiskSpace(Path(), RESERVE_BYTES)
"""The space that is assumed until the process has looked at its disk."""

LOOK_FOR_SPACE_MS: Final = 100
"""How often time passes while the disk is full: what is due waits for space."""

TICK_MS: Final = 100
"""The least time between two looks at the timers: what comes due meanwhile is done together."""
BEAT_MS: Final = 20
"""The least time between two beats that are asked of a store for answers that wait."""
CROWD, CROWD_BEAT_MS = 16, 5
"""The same for so many answers: one beat is for all of them, and each of a crowd waits for it."""
PAUSE_MS: Final = 200
"""The pause after one that the store did not answer."""
LATE_MS: Final = 500
"""From which lateness of a tick on the process counts as held up: it read no requests."""
MOST_GRANTED_MS: Final = 60_000
"""The most by which timers are extended at once."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The entries to write, log by log and in this order, and the answers to send after that."""

    offset_entries: Sequence[NewEntry] = ()
    entries: Sequence[NewEntry] = ()
    answers: Sequence[AddressedReply] = ()

    @property
    def has_entries(self) -> bool:
        """Whether anything is to be written."""
        return bool(self.offset_entries or self.entries)


class Decider(Protocol):
    """Any state machine that decides and has entries to write and answers to send."""

    def ready(self, now: Now, /) -> Ready:
        """Return the decisions since the last call."""
        ...

    def advance(self, ready: Ready, /) -> None:
        """Record that the decisions last returned are durable."""
        ...


class GroupHost(Decider, Protocol[Q_contra]):
    """One group of any kind, or many; its process calls one method at a time."""

    @property
    def coordinator_epoch(self) -> int:
        """The number that distinguishes this process of the group from earlier ones."""
        ...

    @property
    def warning(self) -> str:
        """A warning for people about the group; "" if there is none."""
        ...

    def traffic(self) -> Traffic:
        """Return counts since the start."""
        ...

    def set_disk_space(self, space: DiskSpace, now: Now) -> None:
        """Record how much may be written."""
        ...

    def submit(self, request: Q_contra, sender: Address, now: Now, /) -> None:
        """Decide a request; its answer is in a `Ready`, now or later."""
        ...

    def extend_timers(self, late_ms: int) -> None:
        """Extend all timers by the time for which the process was held up."""
        ...

    def run_timers(self, now: Now) -> None:
        """Execute all due timers."""
        ...

    def next_tick_ms(self, now: Now) -> int:
        """Return when time must pass next, steady clock, unless something is submitted before."""
        ...


class LogPair(Protocol):
    """The write side of a group's two logs."""

    def append_offsets(self, entries: Sequence[NewEntry], now: Now, /) -> None:
        """Append entries to the offset log; there may be none."""
        ...

    def append(self, entries: Sequence[NewEntry], now: Now, /) -> None:
        """Append entries to the control log; there may be none."""
        ...


def drain(host: Decider, logs: LogPair, now: Now) -> Sequence[AddressedReply]:
    """Write decided entries, and return the answers to send once these are durable."""
    ready = host.ready(now)
    if ready.has_entries:
        logs.append_offsets(ready.offset_entries, now)
        logs.append(ready.entries, now)
    host.advance(ready)
    return ready.answers


class UnconfirmedAnswers:
    """The answers of an owner that wait for a word of the store which is asked for after them.

    That word is the next append that counts, or a beat. A beat that is under way already was asked
    for too early for an answer that comes meanwhile: that one waits for the next.
    """

    def __init__(self) -> None:
        self._waiting: list[AddressedReply] = []
        """Those for which no beat has begun."""
        self._asked: list[AddressedReply] = []
        """Those which the beat under way confirms."""
        self._is_beating = False
        self._next_ms = 0
        """When the next beat may begin, steady clock."""
        self._crowd_ms = 0
        """The same if many answers wait."""

    def take(
        self, answers: Sequence[AddressedReply], *, has_written: bool
    ) -> Sequence[AddressedReply]:
        """Return which answers leave now, the earlier ones first; the others wait.

        `has_written` says that records were appended with them, and count: all leave then.
        """
        self._waiting += answers
        if not has_written:
            return ()
        leaving = self._asked + self._waiting
        self._asked, self._waiting = [], []
        return leaving

    def has(self, to: Address) -> bool:
        """Return whether an answer to somebody waits."""
        return any(each.to == to for each in (*self._waiting, *self._asked))

    def drop(self, to: Address) -> None:
        """Drop what waits for somebody who was answered otherwise."""
        self._waiting = [each for each in self._waiting if each.to != to]
        self._asked = [each for each in self._asked if each.to != to]

    def next_beat_ms(self) -> int | None:
        """Return when the next beat is due, steady clock: 0 is at once, None not at all."""
        if self._is_beating or not self._waiting:
            return None
        return self._crowd_ms if len(self._waiting) >= CROWD else self._next_ms

    def begin_beat(self, now_ms: int) -> None:
        """Record that a beat is asked for now; it confirms all that wait by now."""
        self._asked += self._waiting
        self._waiting, self._is_beating = [], True
        self._next_ms, self._crowd_ms = now_ms + BEAT_MS, now_ms + CROWD_BEAT_MS

    def confirm(self) -> Sequence[AddressedReply]:
        """Record that the beat counts, and return the answers that leave now."""
        leaving, self._asked, self._is_beating = self._asked, [], False
        return leaving

    def fail_beat(self, now_ms: int) -> None:
        """Record that the store did not answer: what it was to confirm waits for the next beat.

        An attempt may take seconds. In the pause before the next one messages are received.
        """
        self._next_ms = self._crowd_ms = now_ms + PAUSE_MS
        self._waiting = self._asked + self._waiting
        self._asked, self._is_beating = [], False


class LatenessBudget:
    """The time by which a process may extend its members' timers when it was late itself.

    That is up to a minute at once, and in the long run half of the time that passes: a process that
    is always late would otherwise never end a session.
    """

    def __init__(self) -> None:
        self._left_ms = MOST_GRANTED_MS
        """By how much timers may be extended now, in milliseconds."""
        self._granted_ms: int | None = None
        """When lateness was last granted, steady clock; None: it never was."""

    def grant(self, late_ms: int, now_ms: int) -> int:
        """Return by how much of this lateness timers are extended, in milliseconds."""
        if self._granted_ms is not None:
            earned_ms = (now_ms - self._granted_ms) // 2
            self._left_ms = min(MOST_GRANTED_MS, self._left_ms + earned_ms)
        self._granted_ms = now_ms
        granted_ms = min(late_ms, self._left_ms)
        self._left_ms -= granted_ms
        return granted_ms
