"""An example of a member in your own program: grants and revocations come as callbacks.

    python deploy/member/listen.py

Two members share three connectors of a group in the memory of this process. For a remote group,
replace `LocalGroup.send` by code that sends a request and passes the reply on.
"""

import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue

from fairlead.actors.group.group_shard import GroupShard
from fairlead.actors.group.host import drain
from fairlead.actors.group.kind import WORKERS
from fairlead.actors.group.members.commit import OffsetLedger
from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.commands import GroupRequest
from fairlead.actors.messages.members import HeartbeatReply
from fairlead.actors.messages.orders import PutConnector
from fairlead.actors.timing import Now
from fairlead.actors.worker.callbacks import Callbacks
from fairlead.actors.worker.instructions import Gone, Identity, Instruction, Send, Timing
from fairlead.actors.worker.membership import Membership
from fairlead.events.group import Group
from fairlead.events.log.frame import NewEntry
from fairlead.events.model import Resources
from fairlead.runtime.simulation.group.durable_state import MemoryLog

CONNECTORS = ("flights", "trains", "ships")
QUIET_S = 1.0
"""How long a member waits for something new before it counts as idle."""


class Printer:
    """Prints what it would start and stop; real work may block here, heartbeats continue."""

    def __init__(self, name: str) -> None:
        self._name = name

    def on_assigned(self, resources: Resources) -> None:
        """Start these."""
        self._say("begins", resources)

    def on_revoked(self, resources: Resources) -> None:
        """Stop these gracefully; once this returns, others may start them."""
        self._say("ends", resources)

    def on_lost(self, resources: Resources) -> None:
        """Stop these at once: others may have started them."""
        self._say("has lost", resources)

    def _say(self, what: str, resources: Resources) -> None:
        print(self._name, what, *sorted(resources), flush=True)


class LocalGroup:
    """A group in memory, with a log that keeps nothing."""

    def __init__(self) -> None:
        ledger = OffsetLedger(MemoryLog())
        group = Group("connect")
        settings = GroupSettings(leave_delay_ms=0)  # who leaves here does not come back
        self._coordinator = GroupShard(group, WORKERS, settings, ledger, _now().steady_ms)

    def send(self, request: GroupRequest, hear: Callable[[object], None]) -> None:
        """Execute a request; `hear` gets the reply, at once or when there is news."""
        self._coordinator.submit(request, hear, _now())
        for answer in drain(self._coordinator, self, _now()):
            answer.to(answer.reply)

    def append(self, entries: Sequence[NewEntry], now: Now) -> None:
        """Append records to the control log; here: drop them."""

    def append_offsets(self, entries: Sequence[NewEntry], now: Now) -> None:
        """Append records to the offset log; here: drop them."""


class LocalMember:
    """A member of the group, and its event loop."""

    def __init__(self, name: str, group: LocalGroup) -> None:
        self._group = group
        identity = Identity("connect", name, f"process of {name}", f"http://{name}")
        self._membership = Membership(identity, Timing(), server_assignor="uniform")
        self._inbox = SimpleQueue[object]()
        self._callbacks = Callbacks(Printer(name), ended=lambda: self._inbox.put(None))

    def join(self) -> None:
        """Join the group."""
        self._obey(self._membership.join(_now().steady_ms))

    def leave(self) -> None:
        """Give up all work gracefully, and leave the group."""
        self._obey(self._membership.leave(_now().steady_ms))

    def run(self) -> None:
        """Handle events, until nothing new comes."""
        while True:
            try:
                message = self._inbox.get(timeout=QUIET_S)
            except Empty:
                self._obey(self._membership.tick(_now().steady_ms))  # by `next_tick_ms` at least
                return
            now_ms = _now().steady_ms
            if isinstance(message, HeartbeatReply):
                self._obey(self._membership.handle_reply(message, now_ms))
            else:
                self._obey(self._membership.release(self._callbacks.released(), now_ms))

    def _obey(self, instructions: list[Instruction]) -> None:
        for instruction in instructions:
            if self._callbacks.submit(instruction):
                continue
            if isinstance(instruction, Send):
                self._group.send(instruction.request, self._inbox.put)
            elif isinstance(instruction, Gone):
                self._callbacks.close()


def _now() -> Now:
    return Now(time.time_ns() // 1_000_000, time.monotonic_ns() // 1_000_000)


def main() -> None:
    """Let two members join and leave."""
    group = LocalGroup()
    for name in CONNECTORS:
        group.send(PutConnector("connect", name, {}), lambda _: None)
    ann, bob = LocalMember("ann", group), LocalMember("bob", group)
    ann.join()
    ann.run()
    bob.join()
    for member in (bob, ann, bob):
        member.run()
    bob.leave()
    for member in (bob, ann):
        member.run()
    ann.leave()
    ann.run()


if __name__ == "__main__":
    main()
