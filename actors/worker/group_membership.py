"""What a member is in either protocol: what its worker asks of it, its state, and how it ends.

A member that lost its seat stops everything without grace, and joins anew once nothing runs; one
that cannot go on does not. See `deadlines.py` for when.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping

from ...events.model import ClientAssignor, Resources
from ..messages.classic import MemberReply
from ..messages.members import NO_COORDINATOR_EPOCH
from .deadlines import Deadlines
from .instructions import Fence, Gone, Identity, Instruction, Kill, Stop, Timing
from .states import Machine, State, Work


class GroupMembership(ABC):
    """One member of one group; every call returns what is to be done because of it."""

    def __init__(
        self, identity: Identity, timing: Timing, ways: Mapping[State, frozenset[State]]
    ) -> None:
        self.identity = identity
        self.computing = False
        """Whether a computation is under way; the member's owner sets it back when it is over."""
        self._machine = Machine(ways)
        self._deadlines = Deadlines(timing.fence_margin_ms)
        self._work = Work()
        self._leaves_for_good: bool | None = None
        """Whether it leaves for good or for a while, once it was told to leave."""

    @property
    @abstractmethod
    def timing(self) -> Timing:
        """As configured; with the group's own interval and session once it has answered."""

    @property
    @abstractmethod
    def member_epoch(self) -> int:
        """The assignment epoch, or the generation, that it has reached; below 1 without a seat."""

    @property
    def coordinator_epoch(self) -> int:
        """The number of the group's process that it has heard of last, if its requests name it."""
        return NO_COORDINATOR_EPOCH

    @property
    def incarnation(self) -> str:
        """What tells its process from others of the same member id; empty: none has the same."""
        return ""

    @property
    @abstractmethod
    def member_id(self) -> str:
        """What the group calls it; empty before it was given a name."""

    @abstractmethod
    def join(self, now_ms: int) -> list[Instruction]:
        """Ask for a seat; nothing may run yet."""

    def change_assignors(
        self, _assignors: tuple[ClientAssignor, ...], _now_ms: int
    ) -> list[Instruction]:
        """Take new assignors, or new metadata of theirs; nothing where a leader assigns."""
        return []

    @abstractmethod
    def reconnect(self, now_ms: int, coordinator_epoch: int) -> list[Instruction]:
        """Say again what may be lost: the group is served by the process of that number."""

    def see_configured(
        self, _configured: Resources, _offset: int, _now_ms: int
    ) -> list[Instruction]:
        """Learn what the log shows to be configured; nothing where others assign it.

        `_offset` is that of the record that says so.
        """
        return []

    @abstractmethod
    def take_reply(self, reply: MemberReply, now_ms: int) -> list[Instruction]:
        """Take the answer to the latest request; any other answer is ignored."""

    @abstractmethod
    def tick(self, now_ms: int) -> list[Instruction]:
        """Let time pass: repeat what was not answered, and fence when it is time."""

    @abstractmethod
    def next_tick_ms(self) -> int | None:
        """Return when `tick` has something to do at the earliest, None if never."""

    @property
    def state(self) -> State:
        """Where the member stands."""
        return self._machine.state

    @property
    def owned(self) -> Resources:
        """What runs here: from before its start begins until after its stop has completed."""
        return self._work.owned

    def leave(self, now_ms: int, *, temporary: bool = False) -> list[Instruction]:
        """Give everything up in good order, then say goodbye; once begun it stays as it began.

        With `temporary` the seat and its work wait for the next process with the instance id;
        raises `ValueError` for a member without one.
        """
        if temporary and self.identity.instance_id is None:
            raise ValueError("only a member with an instance id can leave for a while")
        if self._leaves_for_good is None:
            self._leaves_for_good = not temporary
        if self.state in {State.FENCED, State.UNSUBSCRIBED}:
            return self._settle(now_ms)
        if self.state in {State.LEAVING, State.FATAL, State.PREPARE_LEAVING}:
            return []
        self._machine.go(State.PREPARE_LEAVING, "told to leave")
        stop: list[Instruction] = [Stop(self.owned)] if self.owned else []
        return stop + self._settle(now_ms)

    def end_ms(self) -> int | None:
        """Return by when nothing may run here unless an answer comes, None if nothing has to."""
        return self._deadlines.end_ms()

    def release(self, resources: Iterable[object], now_ms: int) -> list[Instruction]:
        """Take note that these do not run any more."""
        if not self._work.release(resources):
            return []
        if not self.owned:
            self._deadlines.call_off_kill()
        return self._settle(now_ms)

    @abstractmethod
    def _settle(self, now_ms: int) -> list[Instruction]:
        """Do what the state calls for after something changed."""

    @abstractmethod
    def _rejoin(self, now_ms: int) -> list[Instruction]:
        """Join anew, for nothing runs any more; or have left, if it was told to leave."""

    @abstractmethod
    def _forget(self) -> None:
        """Be of no group any more; what still runs is on its way to its end."""

    def _fence(self, reason: str, now_ms: int) -> list[Instruction]:
        """Stop everything without grace; no late answer calls this off."""
        end = self._end_all(State.FENCED, reason, now_ms)
        return end if self.owned else self._rejoin(now_ms)

    def _end_all(self, state: State, why: str, now_ms: int) -> list[Instruction]:
        """Forget the seat; cancel what runs, or kill it if there is no time left to stop."""
        end: list[Instruction] = []
        if self.owned:
            end = [Fence(why)] if self._deadlines.cancel(now_ms) else [Kill(why)]
        self._machine.go(state, why)
        self._forget()
        return end

    def _left(self) -> list[Instruction]:
        self._forget()
        self._machine.go(State.UNSUBSCRIBED, "left")
        return [Gone()]

    def _die(self, error: str, now_ms: int) -> list[Instruction]:
        return [*self._end_all(State.FATAL, error, now_ms), Gone(error)]
