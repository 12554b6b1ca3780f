"""The interface between a group, of whatever type, and its process: requests in, records out.

A process hosts groups as Kafka's coordinator runtime hosts its shards: it does not know their
rules. A shard decides and never writes; it hands out what it has decided as a `Ready`, as raft
implementations do. No answer may be sent before the records that it depends on are durable, so
every host of a shard keeps one order, which is `drain`:

1. `ready`: what was decided since the last time, with the answers that this makes due;
2. the entries of the offset log are appended: the accepted commits. They come first, since the
   records of the control log may end the tokens under which they were accepted;
3. the entries of the control log are appended;
4. `advance`: the shard learns that all of it is durable;
5. the answers are sent.

A write that fails has an unknown outcome. Then neither 4 nor 5 happens: the process ends, and the
next one rebuilds the group from its logs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from ...events.log.frame import NewEntry
from ...events.log.space import RESERVE_BYTES, Room
from ..messages.commands import Reply, Traffic
from ..timing import Now

Address = Any
Q_contra = TypeVar("Q_contra", contravariant=True)

ENOUGH_ROOM: Final = Room(Path(), RESERVE_BYTES)
"""What is assumed until the host has looked at its disk."""

LOOK_FOR_ROOM_MS: Final = 100
"""How often time passes while the disk is full: what is due waits for room."""


@dataclass(frozen=True, slots=True)
class AddressedReply:
    """An answer, and to whom it is sent once its records are durable."""

    to: Address
    reply: Reply


@dataclass(frozen=True, slots=True)
class Ready:
    """What to write, log by log and in this order, and the answers to send after that."""

    offset_entries: Sequence[NewEntry] = ()
    entries: Sequence[NewEntry] = ()
    answers: Sequence[AddressedReply] = ()

    @property
    def has_entries(self) -> bool:
        """Whether anything is to be written."""
        return bool(self.offset_entries or self.entries)


@dataclass(slots=True)
class Outbox:
    """What any side of a group has decided since the last `ready`."""

    entries: list[NewEntry] = field(default_factory=list[NewEntry])
    """For the control log, in the order in which the group has evolved by them."""
    answers: list[AddressedReply] = field(default_factory=list[AddressedReply])
    """The answers to send once all of these are durable."""

    def hand_out(self, offset_entries: Sequence[NewEntry]) -> Ready:
        """Return all of it, with what goes to the offset log; nothing is left."""
        ready = Ready(offset_entries, self.entries, self.answers)
        self.entries, self.answers = [], []
        return ready


class Decider(Protocol):
    """Anything that decides, and has entries to write and answers to send."""

    def ready(self, now: Now, /) -> Ready:
        """Hand out what was decided since the last call."""
        ...

    def advance(self, ready: Ready, /) -> None:
        """Take note that what was handed out is durable."""
        ...


class CoordinatorShard(Decider, Protocol[Q_contra]):
    """One group of whatever type, or many; a process calls one method at a time."""

    @property
    def coordinator_epoch(self) -> int:
        """The number that distinguishes this process of the group from earlier ones."""
        ...

    @property
    def warning(self) -> str:
        """A warning for people about the group, or nothing."""
        ...

    def traffic(self) -> Traffic:
        """Return counts since the start."""
        ...

    def see_room(self, room: Room, now: Now) -> None:
        """Take note of how much may be written."""
        ...

    def take(self, request: Q_contra, sender: Address, now: Now, /) -> None:
        """Decide a request; its answer comes with a `Ready`, at once or later."""
        ...

    def excuse(self, late_ms: int) -> None:
        """Extend all timers by the time for which the process was held up."""
        ...

    def pass_time(self, now: Now) -> None:
        """Do what is due by now."""
        ...

    def next_tick_ms(self, now: Now) -> int:
        """Return when time must pass next, steady clock, unless something is taken before."""
        ...


class LogPair(Protocol):
    """The two logs of a group, as far as its process appends to them."""

    def append_offsets(self, entries: Sequence[NewEntry], now: Now, /) -> None:
        """Append to the offset log; there may be nothing to append."""
        ...

    def append(self, entries: Sequence[NewEntry], now: Now, /) -> None:
        """Append to the control log; there may be nothing to append."""
        ...


def drain(shard: Decider, logs: LogPair, now: Now) -> Sequence[AddressedReply]:
    """Write what the shard has decided, and return the answers to send now that it is durable."""
    ready = shard.ready(now)
    if ready.has_entries:
        logs.append_offsets(ready.offset_entries, now)
        logs.append(ready.entries, now)
    shard.advance(ready)
    return ready.answers
