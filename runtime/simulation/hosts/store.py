"""A simulated store: what counts of a group's two logs, and who claimed each of them last.

It is taken as correct: a commit counts if its epoch is that of the last claim, and if it starts at
the end. So it is the durable state of the group, and what is written to it is checked there.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ....events.group import Group
from ....events.log.frame import Entry, NewEntry
from ....events.stores.port import Claimant, StoreOwner
from ...node.door.delivery import LogEnds
from ..environment.clock import SimulatedClock, Story, random_stream
from ..group.durable_state import DurableState
from ..invariants.hosts import HostInvariants, SimulatedSink

SLICE: Final = 200
"""So many entries of each log are read at once."""
LATE: Final = 0.2
"""The share of reads in which nothing of the offset log comes."""
CONTROL: Final = "control"
OFFSETS: Final = "offsets"


class StoreAnswer(NamedTuple):
    """The next part of what counts, and the owner, as of one moment."""

    control: Sequence[Entry]
    offsets: Sequence[Entry]
    rests_on: Sequence[int]
    """How far the offset log was when each entry of the control log was written."""
    is_whole: bool
    """Whether that is all that counted at that moment."""
    owner: StoreOwner | None


class _LastClaim(NamedTuple):
    epoch: int
    claimant: Claimant
    heard_ms: int
    """When anything was heard of it last."""


class SimulatedStore:
    """The store of a group's two logs."""

    def __init__(
        self,
        clock: SimulatedClock,
        story: Story,
        durable_state: DurableState,
        checks: HostInvariants,
        sink: SimulatedSink,
        seed: int,
    ) -> None:
        self._clock, self._story, self._durable_state = clock, story, durable_state
        self._checks, self._sink = checks, sink
        self._rng = random_stream(seed, "store")
        self.rests_on: list[int] = []
        """How far the offset log was when each entry of the control log was written."""
        self._claims: dict[str, _LastClaim] = {}
        self._readers: list[tuple[LogEnds, Callable[[StoreAnswer], None]]] = []
        """Who waits for more, and from where on."""
        self._is_waking = False

    @property
    def ends(self) -> LogEnds:
        """The ends of what counts."""
        return self._durable_state.ends

    def claim(
        self,
        log: str,
        claimant: Claimant,
        silence_seconds: float,
        at_least: int,
        answer: Callable[[int | None], None],
    ) -> None:
        """Answer with the epoch of a claim, None if the owner was heard of too recently."""
        last = self._claims.get(log)
        if last is not None and last.claimant.folder != claimant.folder:
            silent_ms = self._clock.now_ms - last.heard_ms
            if silent_ms < silence_seconds * 1_000:
                answer(None)
                return
        epoch = max(at_least, last.epoch + 1 if last else 1)
        self._story.tell("{} claims the {} log: owner {}", claimant.node, log, epoch)
        self._claims[log] = _LastClaim(epoch, claimant, self._clock.now_ms)
        self._wake_readers()
        answer(epoch)

    def append(
        self,
        log: str,
        epoch: int,
        base: int,
        entries: Sequence[NewEntry],
        live: Group,
        answer: Callable[[Sequence[Entry] | None], None],
    ) -> None:
        """Answer with the entries of a commit that counts; None: it never will.

        `live` is the group as its owner has it with these entries. Raises `Violation`.
        """
        if self._is_fenced(log, epoch) or base != getattr(self.ends, log):
            self._story.tell("what owner {} writes to the {} log is refused", epoch, log)
            answer(None)
            return
        self._checks.write(log, epoch)
        self._hear(log)
        if log == CONTROL:
            appended = self._durable_state.write(entries, live)
            self.rests_on += [self.ends.offsets] * len(appended)
        else:
            appended = self._durable_state.write_offsets(entries)
            self._sink.see(appended)
        self._wake_readers()
        answer(appended)

    def beat(self, epoch: int, answer: Callable[[bool], None]) -> None:
        """Answer whether this is the last claim of the control log."""
        is_fenced = self._is_fenced(CONTROL, epoch)
        if not is_fenced:
            self._hear(CONTROL)
        answer(not is_fenced)

    def read(self, ends: LogEnds, wait_ms: int, answer: Callable[[StoreAnswer], None]) -> None:
        """Answer with what counts from these ends on, as soon as there is any, or after so long."""
        if ends != self.ends or wait_ms == 0:
            answer(self._slice(ends))
        else:
            reader = ends, answer
            self._readers.append(reader)
            self._clock.after(wait_ms, self._give_up, reader)

    def _is_fenced(self, log: str, epoch: int) -> bool:
        return epoch != self._claims[log].epoch

    def _hear(self, log: str) -> None:
        self._claims[log] = self._claims[log]._replace(heard_ms=self._clock.now_ms)

    def _wake_readers(self) -> None:
        if self._readers and not self._is_waking:
            self._is_waking = True
            self._clock.after(0, self._answer_readers)

    def _answer_readers(self) -> None:
        self._is_waking = False
        readers, self._readers = self._readers, []
        for ends, answer in readers:
            answer(self._slice(ends))

    def _give_up(self, reader: tuple[LogEnds, Callable[[StoreAnswer], None]]) -> None:
        if reader in self._readers:
            self._readers.remove(reader)
            reader[1](self._slice(reader[0]))

    def _slice(self, ends: LogEnds) -> StoreAnswer:
        """Return what comes next; each log is read by itself, and one may be late."""
        count = 0 if self._rng.random() < LATE else SLICE
        upto = LogEnds(ends.control + SLICE, ends.offsets + count)
        control = slice(ends.control, upto.control)
        parts = (
            self._durable_state.control.entries[control],
            self._durable_state.offsets.entries[ends.offsets : upto.offsets],
            self.rests_on[control],
        )
        return StoreAnswer(*parts, upto.have(self.ends), self._owner())

    def _owner(self) -> StoreOwner | None:
        last = self._claims.get(CONTROL)
        if last is None:
            return None
        silent = (self._clock.now_ms - last.heard_ms) / 1_000
        return StoreOwner(last.epoch, last.claimant, silent)
