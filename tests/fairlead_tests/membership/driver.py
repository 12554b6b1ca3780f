"""A driver of one member, with a virtual clock and a scripted group."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat, HeartbeatReply
from fairlead.actors.worker.instructions import Identity, Instruction, Send, Timing
from fairlead.actors.worker.membership import Membership
from fairlead.actors.worker.states import State
from fairlead.events.model import ClientAssignor, Resource, Resources

HEARTBEAT_MS, SESSION_MS, REBALANCE_MS, MARGIN_MS = 3_000, 10_000, 60_000, 1_000
PATIENCE_MS = HEARTBEAT_MS + 1_500
TIMING = Timing(HEARTBEAT_MS, SESSION_MS, REBALANCE_MS, MARGIN_MS)
ASSIGNORS = (ClientAssignor("balanced"),)
BEGUN_MS = 1_000_000


def resources(text: str) -> Resources:
    """Read `A A-0 A-1`."""
    found = set[Resource]()
    for word in text.split():
        name, _, number = word.partition("-")
        found.add(Resource(name, int(number)) if number else Resource(name))
    return frozenset(found)


def spelled(found: Iterable[Resource] | None) -> str | None:
    """Write `A A-0 A-1`."""
    return None if found is None else " ".join(map(str, sorted(found)))


@dataclass
class MemberDriver:
    """A membership, its instructions, and its sent requests."""

    now_ms: int = BEGUN_MS
    membership: Membership = field(
        default_factory=lambda: Membership(Identity("g", "m", "i", "url"), TIMING, ASSIGNORS)
    )
    sent: list[Heartbeat] = field(default_factory=list[Heartbeat])

    def state(self) -> State:
        """The state of the member."""
        return self.membership.state

    def take(self, instructions: list[Instruction]) -> list[Instruction]:
        """Keep the requests; return the other instructions."""
        self.sent += [each.request for each in instructions if isinstance(each, Send)]
        return [each for each in instructions if not isinstance(each, Send)]

    def join(self) -> list[Instruction]:
        """Begin."""
        return self.take(self.membership.join(self.now_ms))

    def leave(self, *, temporary: bool = False) -> list[Instruction]:
        """Start a leave."""
        return self.take(self.membership.leave(self.now_ms, temporary=temporary))

    def stopped(self, text: str) -> list[Instruction]:
        """Report resources as stopped."""
        return self.take(self.membership.release(resources(text), self.now_ms))

    def passes(self, milliseconds: int) -> list[Instruction]:
        """Advance the clock, and run the member's timers."""
        self.now_ms += milliseconds
        return self.take(self.membership.tick(self.now_ms))

    def reply(
        self,
        request: Heartbeat,
        target: str | None = None,
        *,
        epoch: int = 1,
        error: Error = Error.NONE,
        **told: Any,
    ) -> HeartbeatReply:
        """Return the group's reply to a request; `told` are further fields, times in ms."""
        return HeartbeatReply(
            error,
            request.member_id,
            epoch,
            request.incarnation,
            request.sequence,
            log_offset=7,
            assignment=None if target is None else resources(target),
            **told,
        )

    def answer(
        self,
        target: str | None = None,
        *,
        epoch: int = 1,
        error: Error = Error.NONE,
        to: Heartbeat | None = None,
        **told: Any,
    ) -> list[Instruction]:
        """Deliver a reply, by default to the latest request."""
        reply = self.reply(to or self.sent[-1], target, epoch=epoch, error=error, **told)
        return self.take(self.membership.handle_reply(reply, self.now_ms))


def static_driver() -> MemberDriver:
    """A member that comes with an instance id."""
    identity = Identity("g", "m", "i", "url", instance_id="s")
    return MemberDriver(membership=Membership(identity, TIMING, ASSIGNORS))


def seated(text: str = "A A-0", driver: MemberDriver | None = None) -> MemberDriver:
    """A member at epoch 1 that runs these, and is stable."""
    driver = driver or MemberDriver()
    driver.join()
    driver.answer("")
    driver.answer(text)
    driver.answer()
    return driver
