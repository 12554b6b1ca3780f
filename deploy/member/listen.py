"""A member in a program of your own: what it is granted, and has to give up, comes as callbacks.

    python deploy/member/listen.py

Two members share three connectors of a group that lives in this process, in memory; with a group
elsewhere, `LocalGroup.send` is what carries a request there and the answer back.
"""

import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue

from fairlead.actors.group.commit import OffsetLedger
from fairlead.actors.group.coordinator import Coordinator
from fairlead.actors.group.shard import Now, drain
from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.commands import GroupRequest
from fairlead.actors.messages.members import HeartbeatReply
from fairlead.actors.messages.orders import PutConnector
from fairlead.actors.worker.callbacks import Callbacks
from fairlead.actors.worker.instructions import Gone, Identity, Instruction, Send, Timing
from fairlead.actors.worker.membership import Membership
from fairlead.events.group import Group
from fairlead.events.log.frame import NewEntry
from fairlead.events.model import Resources
from fairlead.runtime.simulation.durable_state import MemoryLog

CONNECTORS = ("flights", "trains", "ships")
QUIET_S = 1.0
"""After how long without anything new a member has nothing more to do for now."""


class Printer:
    """Says what it would begin and end; real work may take its time here, heartbeats go on."""

    def __init__(self, name: str) -> None:
        self._name = name

    def on_assigned(self, resources: Resources) -> None:
        """Begin these."""
        self._say("begins", resources)

    def on_revoked(self, resources: Resources) -> None:
        """End these in good order; once this returns others may begin them."""
        self._say("ends", resources)

    def on_lost(self, resources: Resources) -> None:
        """End these at once: others may have begun them."""
        self._say("has lost", resources)

    def _say(self, what: str, resources: Resources) -> None:
        print(self._name, what, *sorted(resources), flush=True)


class LocalGroup:
    """A group in memory, and its log, which forgets."""

    def __init__(self) -> None:
        ledger = OffsetLedger(MemoryLog())
        group = Group("connect")
        self._coordinator = Coordinator(group, GroupSettings(), ledger, _now().steady_ms)

    def send(self, request: GroupRequest, hear: Callable[[object], None]) -> None:
        """Have a request carried out; `hear` gets the answer, now or when there is news."""
        self._coordinator.take(request, hear, _now())
        for answer in drain(self._coordinator, self, _now()):
            answer.to(answer.reply)

    def append(self, entries: Sequence[NewEntry], now: Now) -> None:
        """Write down what was decided."""

    def append_offsets(self, entries: Sequence[NewEntry], now: Now) -> None:
        """Write down what was committed."""


class LocalMember:
    """A member of the group, and the loop that drives it."""

    def __init__(self, name: str, group: LocalGroup) -> None:
        self._group = group
        identity = Identity("connect", name, f"process of {name}", f"http://{name}")
        self._membership = Membership(identity, Timing(), server_assignor="uniform")
        self._inbox = SimpleQueue[object]()
        self._callbacks = Callbacks(Printer(name), ended=lambda: self._inbox.put(None))

    def join(self) -> None:
        """Ask for a seat."""
        self._obey(self._membership.join(_now().steady_ms))

    def leave(self) -> None:
        """Give everything up in good order, and say goodbye."""
        self._obey(self._membership.leave(_now().steady_ms))

    def run(self) -> None:
        """Do what there is to be done, until nothing new comes."""
        while True:
            try:
                message = self._inbox.get(timeout=QUIET_S)
            except Empty:
                self._obey(self._membership.tick(_now().steady_ms))  # by `next_tick_ms` at least
                return
            now_ms = _now().steady_ms
            if isinstance(message, HeartbeatReply):
                self._obey(self._membership.take_reply(message, now_ms))
            else:
                self._obey(self._membership.release(self._callbacks.released(), now_ms))

    def _obey(self, instructions: list[Instruction]) -> None:
        for instruction in instructions:
            if self._callbacks.take(instruction):
                continue
            if isinstance(instruction, Send):
                self._group.send(instruction.request, self._inbox.put)
            elif isinstance(instruction, Gone):
                self._callbacks.close()


def _now() -> Now:
    return Now(time.time_ns() // 1_000_000, time.monotonic_ns() // 1_000_000)


def main() -> None:
    """Let two members come and go."""
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
