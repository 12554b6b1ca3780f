"""A simulated host: copies of the group's logs, a door, and now and then the process that owns it.

A host follows the store while it does not own the group: what counts goes into its copies, and each
time it asks itself whether to claim (`RoleTracker`). Its door passes what is said here on to the
owner's host, and delivers the answers once the copies here hold what they rest on (`AnswersAhead`).

A crash ends all of that but the copies; a lost disk takes these as well. What arrives at a frozen
host waits, and what arrives at one that is down is lost.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import Final, NamedTuple

from ....actors.group.members.request_filter import first_epoch
from ....actors.group.state.settings import GroupSettings
from ....actors.messages.commands import GroupRequest, Reply
from ....events.entries.codec import decode
from ....events.evolve import evolve
from ....events.group import Group
from ....events.log.frame import Entry
from ....events.records import OwnerBegan
from ....events.stores.port import Claimant, StoreOwner
from ...node.door.claims import ClaimRule, RoleEnding, RoleTracker, Sight
from ...node.door.delivery import AnswersAhead, LogEnds
from ..environment.clock import SimulatedClock, Story
from ..group.coordinating import Hear
from ..group.durable_state import GROUP_ID, DurableState, MemoryLog
from ..invariants.hosts import CopyInvariants, HostInvariants
from .owner import SILENCE_MS, OwnerProcess
from .store import CONTROL, SimulatedStore, StoreAnswer
from .wires import STORE, Wires

WAIT_MS: Final = 500
"""How long a read of the store waits if there is nothing new."""
FOLLOW_MS: Final = 1_500
"""After so long without an answer the store is asked again."""


class Cluster(NamedTuple):
    """All that the hosts of a cluster share."""

    clock: SimulatedClock
    story: Story
    settings: GroupSettings
    durable_state: DurableState
    store: SimulatedStore
    wires: Wires
    checks: HostInvariants
    hosts: dict[str, "SimulatedHost"]
    owner_is_new: Callable[["SimulatedHost"], None]
    """Gets each host whose door has learned of another owner."""


class Asked:
    """Somebody's request at the owner, and what had been told when it arrived there."""

    def __init__(self, hear: Callable[[Reply, LogEnds], None], before: LogEnds) -> None:
        self.before = before
        self._hear = hear

    def __call__(self, reply: Reply, ends: LogEnds) -> None:
        """Deliver the reply, which rests on logs up to these ends."""
        self._hear(reply, ends)


class SimulatedHost:
    """One host of a cluster."""

    def __init__(self, number: int, cluster: Cluster) -> None:
        self.number = number
        self.name = f"n{number}"
        self.is_up = True
        self.is_frozen = False
        self.process: OwnerProcess | None = None
        """The process that owns the group, or claims it."""
        self.store = cluster.store
        self.disks = 0
        """How many disks it has lost."""
        self._cluster = cluster
        self._life = 0
        self._inbox: list[Callable[[], None]] = []
        """What arrived while it was frozen."""
        self._reads = 0
        """The number of the last read of the store."""
        self._begin_anew()

    @property
    def coordinator_epoch(self) -> int:
        """The number of the process that owns the group, as far as it is known here."""
        return first_epoch(self.generation)

    @property
    def generation(self) -> int:
        """The owner epoch of that process; 0: nobody has owned it."""
        began = self.group.ownership
        return began.epoch if began is not None else 0

    @property
    def serves(self) -> bool:
        """Whether the process that owns the group is here, and answers."""
        return self.process is not None and self.process.serves

    @property
    def ends(self) -> LogEnds:
        """The ends of the copies here."""
        return LogEnds(self.control.end, self.offsets.end)

    # -- what befalls it

    def crash(self, *, loses_disk: bool) -> None:
        """Lose all but the copies, or these as well."""
        self._cluster.story.tell("{} crashes{}", self.name, ", its disk is lost" * loses_disk)
        self.is_up, self.is_frozen = False, False
        self._life += 1
        self._inbox.clear()
        if self.process is not None:
            self.process.end(RoleEnding.FAILED)
        if loses_disk:
            self.disks += 1
            self._begin_anew()
        self._forget()

    def boot(self) -> None:
        """Come back, and follow."""
        if not self.is_up:
            self._cluster.story.tell("{} is back with {}", self.name, self.ends)
            self.is_up = True
            self.follow()

    def freeze(self, span_ms: int) -> None:
        """Do nothing for a while; what arrives waits."""
        if self.is_up and not self.is_frozen:
            self._cluster.story.tell("{} freezes for {} ms", self.name, span_ms)
            self.is_frozen = True
            if self.process is not None:
                self.process.freeze(span_ms, ticks_first=True)
            self._cluster.clock.after(span_ms, self._thaw, self._life)

    def _thaw(self, life: int) -> None:
        if life == self._life:
            self.is_frozen = False
            inbox, self._inbox = self._inbox, []
            for deed in inbox:
                deed()

    def _begin_anew(self) -> None:
        """Begin with an empty folder."""
        self.control, self.offsets = MemoryLog(), MemoryLog()
        self.group = Group(GROUP_ID)
        stored = self._cluster.durable_state
        self._copies: Mapping[str, CopyInvariants] = {
            "control": CopyInvariants(self.name, stored.control, self.control),
            "offsets": CopyInvariants(self.name, stored.offsets, self.offsets),
        }
        self._forget()

    def _forget(self) -> None:
        """Begin as a new process of the door."""
        folder = f"{self.name}.{self.disks}"
        self._claimant = Claimant(self.name, self.name, folder)
        self._role = RoleTracker(ClaimRule(self.name, folder, SILENCE_MS / 1_000))
        self._ahead = AnswersAhead[Callable[[], None]](self.ends)
        self._owner: StoreOwner | None = None
        self._known = self.generation

    def _receive(self, life: int, deed: Callable[..., None], *args: object) -> None:
        """Do this here, unless the host has crashed since; if it is frozen, later."""
        if life == self._life and self.is_up:
            if self.is_frozen:
                self._inbox.append(partial(self._receive, life, deed, *args))
            else:
                deed(*args)

    # -- the store

    def ask(self, what: Callable[..., None], *args: object) -> None:
        """Ask the store for something; the last argument gets the answer."""
        *parts, answer = args
        assert callable(answer)  # noqa: S101
        wires = self._cluster.wires
        back = partial(wires.send, STORE, self.name, self._receive, self._life, answer)
        wires.send(self.name, STORE, what, *parts, back)

    def follow(self) -> None:
        """Ask the store for what comes next, again and again, while nobody here owns the group."""
        if self.process is None and self.is_up:
            self._reads += 1
            self.ask(self.store.read, self.ends, WAIT_MS, partial(self._followed, self._reads))
            again = partial(self._receive, self._life, self._follow_again, self._reads)
            self._cluster.clock.after(FOLLOW_MS, again)

    def _follow_again(self, number: int) -> None:
        if number == self._reads:
            self.follow()

    def _followed(self, number: int, answer: StoreAnswer) -> None:
        if number == self._reads and self.process is None:
            self.take(answer)
            self._owner = answer.owner
            self._look(is_whole=answer.is_whole)
            self.follow()

    def take(self, answer: StoreAnswer) -> None:
        """Copy what counts, and deliver what waited for it."""
        for entry in answer.offsets:
            if entry.offset == self.offsets.end:
                self.offsets.copy(entry)
        rests_on = dict(zip((each.offset for each in answer.control), answer.rests_on, strict=True))
        ready = takewhile(lambda each: self._may_copy(rests_on[each.offset]), answer.control)
        self._copy_control(each for each in ready if each.offset >= self.control.end)
        self._see_copies()

    def copy(self, log: str, entries: Sequence[Entry]) -> None:
        """Copy what this host's owner has written."""
        if log == CONTROL:
            self._copy_control(entries)
        else:
            for entry in entries:
                self.offsets.copy(entry)
        self._see_copies()

    def _may_copy(self, rests_on: int) -> bool:
        """Return whether an entry of the control log may be copied before more of the offsets."""
        return rests_on <= self.offsets.end

    def _copy_control(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.control.copy(entry)
            record = decode(entry)
            assert record is not None  # noqa: S101  # the store has checked it
            evolve(self.group, record, entry.offset)

    def _see_copies(self) -> None:
        for each in self._copies.values():
            each.check()
        if self.control.end:
            self._cluster.checks.copy(self.ends, self.store.rests_on[self.control.end - 1])
        for deed in self._ahead.advance(self.ends):
            deed()
        if self._known != self.generation and isinstance(self.group.ownership, OwnerBegan):
            self._known = self.generation
            self._cluster.owner_is_new(self)

    # -- its role

    def _look(self, *, is_whole: bool) -> None:
        """Claim the group if there is a reason."""
        sight = Sight(is_whole, self._owner, self.group.ownership, self._rank())
        silence = self._role.look(sight)
        if silence is not None:
            cluster = self._cluster
            shared = cluster.clock, cluster.story, cluster.settings, cluster.durable_state
            self.process = OwnerProcess(*shared, self)
            silent_ms = int(self._owner.silent_seconds * 1_000) if self._owner else 0
            self.process.claim(partial(self._claim, silence), silent_ms)

    def _claim(
        self, silence: float, log: str, at_least: int, answer: Callable[[int | None], None]
    ) -> None:
        """Claim a log; that of the control log only if the owner is still whom this host saw go."""
        claim = partial(self.ask, self.store.claim, log, self._claimant)
        if log == CONTROL:
            after = self._owner.epoch if self._owner else None
            claim = partial(claim, silence, at_least, answer)
            look = partial(self._claim_unless_other, after, claim, answer)
            self.ask(self.store.read, self.ends, 0, look)
        else:
            claim(0.0, at_least, answer)

    def _claim_unless_other(
        self,
        after: int | None,
        claim: Callable[[], None],
        answer: Callable[[int | None], None],
        seen: StoreAnswer,
    ) -> None:
        if seen.owner is not None and seen.owner.epoch != after:
            answer(None)  # it would be deposed, though it has just begun
        else:
            claim()

    def _rank(self) -> int:
        owner = self._owner.claimant.node if self._owner else ""
        others = sorted(self._cluster.hosts.keys() - {owner})
        return others.index(self.name) if self.name in others else len(others)

    def begun(self, process: OwnerProcess) -> None:
        """Record that the process here owns the group."""
        self._cluster.story.tell("{} owns the group as owner {}", self.name, process.epoch)
        self._cluster.checks.owners += 1
        self._role.begin()

    def ended(self, process: OwnerProcess, ending: RoleEnding) -> None:
        """Record that the process here has ended, and follow."""
        if self.process is process:
            self.process = None
            is_failure = self._role.end(ending)
            delay_ms = process.downtime_ms if is_failure else 0
            follow = partial(self._receive, self._life, self.follow)
            self._cluster.clock.after(delay_ms, follow)

    # -- the door

    def submit(self, only: int | None, hear: Hear, message: GroupRequest) -> None:
        """Pass a message of this host on to whoever owns the group."""
        self._receive(self._life, self._pass, self._cluster.wires.send, only, hear, message)

    def submit_in_order(self, hear: Hear, message: GroupRequest) -> None:
        """Pass a command of people on: none overtakes another one, whatever host it came to."""
        send = self._cluster.wires.send_in_order
        if self.process is None:
            self._receive(self._life, self._pass, send, None, hear, message)
        else:
            answer = partial(self._arrive, hear)
            send(self.name, self.name, self.carry, None, answer, message)

    def _pass(
        self, send: Callable[..., None], only: int | None, hear: Hear, message: GroupRequest
    ) -> None:
        if self.process is not None:
            self._enqueue(only, partial(self._arrive, hear), message)
            return
        owner = self._cluster.hosts.get(self._owner.claimant.node) if self._owner else None
        if owner is not None and owner is not self:
            back = partial(self._receive, self._life, self._arrive, hear)
            answer = partial(send, owner.name, self.name, back)
            send(self.name, owner.name, owner.carry, only, answer, message)

    def carry(
        self,
        only: int | None,
        answer: Callable[[Reply, LogEnds], None],
        message: GroupRequest,
    ) -> None:
        """Queue a message that another host's door has passed on."""
        self._receive(self._life, self._enqueue, only, answer, message)

    def _enqueue(
        self,
        only: int | None,
        answer: Callable[[Reply, LogEnds], None],
        message: GroupRequest,
    ) -> None:
        process = self.process
        if process is not None and process.serves and only in {None, process.epoch}:
            process.enqueue(Asked(answer, self._cluster.checks.told), message)

    def _arrive(self, hear: Hear, reply: Reply, ends: LogEnds) -> None:
        """Deliver an answer, as soon as the copies here hold what it rests on."""
        for deed in self._ahead.arrive(partial(hear, reply), ends):
            deed()

    def check_answer(self, rests_on: LogEnds, before: LogEnds) -> None:
        """Check an answer that leaves now; raises `Violation`."""
        self._cluster.checks.tell(rests_on, self.store.ends, before)
