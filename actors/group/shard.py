"""What a group is to the process that hosts it, whatever its type: requests in, records out.

A process hosts groups as Kafka's coordinator runtime hosts its shards: it knows nothing of their
rules. A shard decides and never writes; it hands out what it has decided as a `Ready`, as raft
does. Nothing of an answer may be said before the records that it rests on are durable, so there
is one order for every host of a shard, and `drain` is that order:

1. `ready`: what was decided since the last time, with the answers that this makes due;
2. the entries of the offset log are appended: the commits that count. They come first, since
   the records of the control log may end the tokens that they were accepted under;
3. the entries of the control log are appended;
4. `advance`: the shard learns that all of it is durable;
5. the answers are said.

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

Address = Any
Q_contra = TypeVar("Q_contra", contravariant=True)

ENOUGH_ROOM: Final = Room(Path(), RESERVE_BYTES)
"""What is taken for granted until the host has looked at its disk."""

LOOK_FOR_ROOM_MS: Final = 100
"""How often time passes while the disk is full: what is due waits for room."""


@dataclass(frozen=True, slots=True)
class Now:
    """One moment on two clocks, in milliseconds: the wall's for records, the other for timers."""

    wall_ms: int
    steady_ms: int


@dataclass(frozen=True, slots=True)
class AddressedReply:
    """What may be said to whom once the records are durable."""

    to: Address
    reply: Reply


@dataclass(frozen=True, slots=True)
class Ready:
    """What is to be written, log by log and in this order, and what may be said after that."""

    offset_entries: Sequence[NewEntry] = ()
    entries: Sequence[NewEntry] = ()
    answers: Sequence[AddressedReply] = ()

    @property
    def has_entries(self) -> bool:
        """Whether anything is to be written."""
        return bool(self.offset_entries or self.entries)


@dataclass(slots=True)
class Outbox:
    """What was decided of one group since the last `ready`, whichever of its sides decided it."""

    entries: list[NewEntry] = field(default_factory=list[NewEntry])
    """For the control log, in the order in which the group has evolved by them."""
    answers: list[AddressedReply] = field(default_factory=list[AddressedReply])
    """What may be said once all of these are durable."""

    def hand_out(self, offset_entries: Sequence[NewEntry]) -> Ready:
        """Return all of it, with what goes to the offset log; nothing is left."""
        ready = Ready(offset_entries, self.entries, self.answers)
        self.entries, self.answers = [], []
        return ready


class Decider(Protocol):
    """What decides, and has something to write and to say then."""

    def ready(self, now: Now, /) -> Ready:
        """Hand out what was decided since the last call."""
        ...

    def advance(self, ready: Ready, /) -> None:
        """Learn that what was handed out is durable."""
        ...


class CoordinatorShard(Decider, Protocol[Q_contra]):
    """One group of whatever type, or many; a process calls one method at a time."""

    @property
    def coordinator_epoch(self) -> int:
        """The number by which clients tell this process of the group from earlier ones."""
        ...

    @property
    def warning(self) -> str:
        """What people should know of the group, or nothing."""
        ...

    def traffic(self) -> Traffic:
        """Return what went through since the start."""
        ...

    def see_room(self, room: Room, now: Now) -> None:
        """Learn how much may be written."""
        ...

    def take(self, request: Q_contra, sender: Address, now: Now, /) -> None:
        """Decide a request; its answer comes with a `Ready`, at once or later."""
        ...

    def excuse(self, late_ms: int) -> None:
        """Let nobody's time run out for so long as the process itself was held up."""
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
    """Write what the shard has decided, and return what may be said now that it is durable."""
    ready = shard.ready(now)
    if ready.has_entries:
        logs.append_offsets(ready.offset_entries, now)
        logs.append(ready.entries, now)
    shard.advance(ready)
    return ready.answers
