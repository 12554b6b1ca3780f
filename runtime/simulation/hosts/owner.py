"""The simulated process of a group whose logs lie in a store: it claims, writes, and then speaks.

It keeps the rules of a real one. It claims both logs and reads them to the end before it decides
anything. What it writes counts in the store first, goes into the copies of its host next, and only
then it answers. While it writes it does nothing else. What it answers without a record waits for a
word of the store (`UnconfirmedAnswers`). It ends if another owner came, or if what became of a
write is unknown.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol

from ....actors.group.host import UnconfirmedAnswers, drain
from ....actors.group.state.settings import GroupSettings
from ....actors.messages.commands import AddressedReply
from ....actors.timing import Now
from ....events.entries.codec import encode, restore
from ....events.evolve import evolve
from ....events.group import Group
from ....events.log.frame import Entry, NewEntry
from ....events.records import OwnerBegan, OwnerResigned
from ...node.door.claims import RoleEnding
from ...node.door.delivery import LogEnds
from ..environment.clock import SimulatedClock, Story
from ..group.coordinating import CoordinatingProcess
from ..group.durable_state import GROUP_ID, DurableState, MemoryLog
from ..group.group_process import Border
from .store import CONTROL, OFFSETS, SimulatedStore, StoreAnswer

CLAIM_MS: Final = 4_000
"""How long it may take at most to own the group once it is claimed."""
APPEND_MS: Final = 3_000
"""After so long without an answer the outcome of a write is unknown."""
BEAT_MS: Final = 500
"""How often the store hears of an owner at least, and for how long a beat is waited for."""
SILENCE_MS: Final = 3_000
"""`owner.silence.ms`."""
RESTART_MS: Final = 300
"""How long it takes until there is another process, where one failed."""


class OwnersHost(Protocol):
    """The host of an owner, as its process uses it."""

    name: str
    control: MemoryLog
    offsets: MemoryLog
    store: SimulatedStore

    def ask(self, what: Callable[..., None], *args: object) -> None:
        """Ask the store for something; the last argument gets the answer."""
        ...

    def take(self, answer: StoreAnswer) -> None:
        """Copy what counts."""
        ...

    def copy(self, log: str, entries: Sequence[Entry]) -> None:
        """Copy what this host's owner has written."""
        ...

    def check_answer(self, rests_on: LogEnds, before: LogEnds) -> None:
        """Check an answer that leaves now; raises `Violation`."""
        ...

    def begun(self, process: "OwnerProcess") -> None:
        """Record that the process owns the group."""
        ...

    def ended(self, process: "OwnerProcess", ending: RoleEnding) -> None:
        """Record that the process has ended."""
        ...


class OwnerProcess(CoordinatingProcess):
    """A process that claims the group for its host, and owns it until it ends."""

    def __init__(
        self,
        clock: SimulatedClock,
        story: Story,
        settings: GroupSettings,
        durable_state: DurableState,
        host: OwnersHost,
    ) -> None:
        super().__init__(clock, story, settings, durable_state)
        self.epoch = 0
        """The owner epoch of its claim of the control log."""
        self.is_over = False
        self.is_busy = True
        """Whether it waits for the store, and does nothing else."""
        self.serves = False
        """Whether it has begun to answer."""
        self.doomed: Border | None = None
        """Where it is to die as it writes."""
        self.downtime_ms = RESTART_MS
        """How long it takes until the next one is there, if it fails."""
        self._host = host
        self._offsets_epoch = 0
        self._silence_ms = 0
        self._asked = 0
        """The number of the last write."""
        self._beats = 0
        """The number of the last beat."""
        self._is_beating = False
        self._beat_ms = self._confirmed_ms = 0
        """When the last beat began, and the last one that the store has confirmed."""
        self._held = UnconfirmedAnswers()
        self._decided = LogEnds()
        """The ends of both logs with all that is decided."""
        self._inbox: list[Callable[[], None]] = []
        """What arrived while it was frozen."""

    @property
    def is_stopped(self) -> bool:
        """Whether it has ended, is frozen, or waits for the store."""
        return self.is_over or self.is_frozen or self.is_busy

    # -- its life

    def claim(self, claim: Callable[..., None], silence_ms: int) -> None:
        """Claim both logs, the control log first; `claim` asks the store for one."""
        self._silence_ms = silence_ms
        claim(CONTROL, 1, self._when_awake(partial(self._claimed_control, claim)))
        self._clock.after(CLAIM_MS, self._when_awake(self._give_up_claim))

    def freeze(self, span_ms: int, *, ticks_first: bool) -> None:
        """Do nothing for a while; what arrives waits."""
        if not self.is_over and not self.is_frozen:
            self._story.tell(
                "the group's process at {} freezes for {} ms", self._host.name, span_ms
            )
            self.is_frozen = True
            self._clock.after(span_ms, self._wake, ticks_first)

    def die(self, downtime_ms: int) -> None:
        """End, and let another process be there after a while."""
        self.downtime_ms = downtime_ms
        self.end(RoleEnding.FAILED)

    def resign(self, to: str) -> None:
        """Give the group up: write that as the last record, and end."""
        if self.serves and not self.is_stopped:
            record = OwnerResigned(self.epoch, self._host.name, to, self._clock.wall_ms)
            evolve(self.group, record, self._host.control.end)
            self._append(CONTROL, [encode(record)], partial(self.end, RoleEnding.RESIGNED))

    def end(self, ending: RoleEnding) -> None:
        """End the process, with all that is in its memory."""
        if not self.is_over:
            text = "the group's process at {} ends: {}"
            self._story.tell(text, self._host.name, ending.value)
            self.is_over = True
            self._host.ended(self, ending)

    def _wake(self, ticks_first: bool) -> None:  # noqa: FBT001
        if self.is_over:
            return
        self.is_frozen = False
        inbox, self._inbox = self._inbox, []
        for deed in inbox:
            deed()
        if self.serves and not self.is_over:
            self._thaw(ticks_first)

    def _when_awake(self, deed: Callable[..., None]) -> Callable[..., None]:
        """Return a function that does this once the process is awake, or never if it has ended."""
        return partial(self._do, deed)

    def _do(self, deed: Callable[..., None], *args: object) -> None:
        if self.is_frozen:
            self._inbox.append(partial(self._do, deed, *args))
        elif not self.is_over:
            deed(*args)

    # -- its claim

    def _claimed_control(self, claim: Callable[..., None], epoch: int | None) -> None:
        if epoch is None:
            self.end(RoleEnding.REFUSED)
        elif not self.epoch:
            self.epoch = epoch
            claim(OFFSETS, epoch, self._when_awake(self._claimed_offsets))

    def _claimed_offsets(self, epoch: int | None) -> None:
        if epoch is None:
            self.end(RoleEnding.REFUSED)
        elif not self._offsets_epoch:
            self._offsets_epoch = epoch
            self._read()

    def _read(self) -> None:
        ends = LogEnds(self._host.control.end, self._host.offsets.end)
        self._host.ask(self._host.store.read, ends, 0, self._when_awake(self._have_read))

    def _have_read(self, answer: StoreAnswer) -> None:
        self._host.take(answer)
        if answer.is_whole:
            self._open()
        else:
            self._read()

    def _open(self) -> None:
        """Restore the group from the copy here, and write the first record."""
        control = self._host.control
        group = restore(GROUP_ID, control.compact(control.end // 2), control.end)
        silence_ms, now_ms = self._silence_ms, self._clock.wall_ms
        record = OwnerBegan(self.epoch, self._host.name, silence_ms=silence_ms, time_ms=now_ms)
        evolve(group, record, control.end)
        self._append(CONTROL, [encode(record)], partial(self._begin, group), group)

    def _begin(self, group: Group) -> None:
        self.serves, self.is_busy = True, False
        self._confirmed_ms = self._clock.now_ms
        self._serve(group, self._host.offsets, self.epoch)
        self._host.begun(self)
        self._keep_alive()

    def _give_up_claim(self) -> None:
        if not self.serves:
            self.end(RoleEnding.FAILED)

    # -- what it writes and says

    def _drain(self, taken: int = 0) -> None:
        decided = _Decided()
        answers = drain(self._coordinator, decided, self._clock.now())
        self.decisions += max(taken, len(answers))
        offsets = self._host.offsets.end + len(decided.offsets)
        self._decided = LogEnds(self.group.end, offsets)
        if decided.offsets or decided.control:
            self._write(decided, answers)
        else:
            self._say(self._held.take(answers, has_written=False))
            self._beat_in_time()
            self._wake_in_time()

    def _write(self, decided: "_Decided", answers: Sequence[AddressedReply]) -> None:
        """Write to the offset log, then to the control log, and then say the answers."""
        if self._dies_at(Border.BEFORE):
            return
        control = partial(self._write_control, decided.control, answers)
        if decided.offsets:
            self._append(OFFSETS, decided.offsets, control)
        else:
            control()

    def _write_control(
        self, entries: Sequence[NewEntry], answers: Sequence[AddressedReply]
    ) -> None:
        if self._dies_at(Border.BETWEEN_LOGS):
            return
        speak = partial(self._speak, answers)
        if entries:
            self._append(CONTROL, entries, speak)
        else:
            speak()

    def _speak(self, answers: Sequence[AddressedReply]) -> None:
        if self._dies_at(Border.BEFORE_SPEAKING):
            return
        self.is_busy = False
        self._say(self._held.take(answers, has_written=True))
        if not self._dies_at(Border.AFTER_SPEAKING):
            self._go_on()

    def _go_on(self) -> None:
        """Do what has come up while it wrote."""
        is_late = self._tick_at_ms <= self._clock.now_ms
        if is_late:
            self._pass_time()
        if is_late or self._queue:
            self._flush()
        else:
            self._wake_in_time()

    def _say(self, answers: Sequence[AddressedReply]) -> None:
        for answer in answers:
            before: LogEnds = answer.to.before
            self._host.check_answer(self._decided, before)
            answer.to(answer.reply, LogEnds(self._host.control.end, self._host.offsets.end))

    def _dies_at(self, border: Border) -> bool:
        if self.doomed is border:
            self.end(RoleEnding.FAILED)
        return self.is_over

    # -- the store

    def _append(
        self,
        log: str,
        entries: Sequence[NewEntry],
        then: Callable[[], None],
        live: Group | None = None,
    ) -> None:
        """Make entries count; then copy them, and go on."""
        self.is_busy = True
        self._asked += 1
        epoch = self.epoch if log == CONTROL else self._offsets_epoch
        base = getattr(self._host, log).end
        answer = self._when_awake(partial(self._appended, self._asked, log, then))
        what = log, epoch, base, entries, live or self.group
        self._host.ask(self._host.store.append, *what, answer)
        self._clock.after(APPEND_MS, self._when_awake(partial(self._lose, self._asked)))

    def _appended(
        self, number: int, log: str, then: Callable[[], None], entries: Sequence[Entry] | None
    ) -> None:
        if number != self._asked or not self.is_busy:
            return
        if entries is None:
            self.end(RoleEnding.FENCED)
        else:
            self._asked += 1
            self._host.copy(log, entries)
            then()

    def _lose(self, number: int) -> None:
        """End: what became of the last write is unknown."""
        if number == self._asked and self.is_busy:
            self.end(RoleEnding.FAILED)

    def _keep_alive(self) -> None:
        """Beat now and then, so that the owner is not silent."""
        if not self.is_over:
            if not self.is_stopped and not self._is_beating:
                self._beat()
            self._clock.after(BEAT_MS, self._keep_alive)

    def _beat_in_time(self) -> None:
        due_ms = self._held.next_beat_ms()
        if due_ms is not None:
            delay_ms = max(0, due_ms - self._clock.now_ms)
            self._clock.after(delay_ms, self._beat_if_due, due_ms)

    def _beat_if_due(self, due_ms: int) -> None:
        if not self.is_stopped and due_ms == self._held.next_beat_ms():
            self._beat()

    def _beat(self) -> None:
        self._beat_ms = self._clock.now_ms
        self._held.begin_beat(self._beat_ms)
        self._beats += 1
        self._is_beating = True
        confirm = self._when_awake(partial(self._confirmed, self._beats))
        self._host.ask(self._host.store.beat, self.epoch, confirm)
        self._clock.after(BEAT_MS, self._when_awake(partial(self._fail_beat, self._beats)))

    def _confirmed(self, number: int, is_owner: bool) -> None:  # noqa: FBT001
        if not is_owner:
            self.end(RoleEnding.FENCED)
            return
        if number == self._beats:
            self._confirmed_ms = self._beat_ms
        if self.is_busy:  # what waits leaves with what is being written
            self._fail_beat(number)
        elif number == self._beats and self._is_beating:
            self._is_beating = False
            self._say(self._held.confirm())
            self._beat_in_time()

    def _fail_beat(self, number: int) -> None:
        if number == self._beats and self._is_beating:
            self._is_beating = False
            self._held.fail_beat(self._clock.now_ms)
            if self._clock.now_ms - self._confirmed_ms >= SILENCE_MS:
                self.end(RoleEnding.FENCED)  # another host may own the group
            else:
                self._beat_in_time()


class _Decided:
    """Collects what is to be written to the two logs."""

    def __init__(self) -> None:
        self.offsets: Sequence[NewEntry] = ()
        self.control: Sequence[NewEntry] = ()

    def append_offsets(self, entries: Sequence[NewEntry], _: Now) -> None:
        self.offsets = entries

    def append(self, entries: Sequence[NewEntry], _: Now) -> None:
        self.control = entries
