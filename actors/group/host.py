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
