"""One member's whole life by the library alone: no actors, no Spark, no log, no clock.

It is written as an example of use. The loop that carries requests, and the group that answers
them, are this test.
"""

import subprocess
import sys
from collections.abc import Iterable

from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat, HeartbeatReply
from fairlead.actors.worker.instructions import (
    Fence,
    Gone,
    Identity,
    Instruction,
    Kill,
    Send,
    Start,
    Stop,
    Timing,
)
from fairlead.actors.worker.membership import Membership
from fairlead.events.model import ClientAssignor, Resource

FLIGHTS, FIRST, SECOND = (Resource("flights"), Resource("flights", 0), Resource("flights", 1))


class Runner:
    """Does at once what a member wants, and tells its story."""

    def __init__(self, member: Membership) -> None:
        self.member = member
        self.story: list[str] = []
        self.request = Heartbeat("", "", 0)

    def obey(self, instructions: list[Instruction], now_ms: int) -> None:
        """Carry instructions out, and those that follow from that."""
        waiting = list(instructions)
        while waiting:
            instruction = waiting.pop(0)
            match instruction:
                case Send(request):
                    self.request = request
                    self.story.append(f"says {spelled(request)}")
                case Start(resources):
                    self.story.append(f"starts {words(resources)}")
                case Stop(resources):
                    self.story.append(f"stops {words(resources)}")
                    waiting += self.member.release(resources, now_ms)
                case Fence(reason) | Kill(reason):
                    self.story.append(f"drops all: {reason}")
                    waiting += self.member.release(self.member.owned, now_ms)
                case Gone(error):
                    self.story.append(f"is gone {error}".strip())
                case _:
                    pass

    def hears(
        self,
        epoch: int,
        target: set[Resource] | None = None,
        *,
        error: Error = Error.NONE,
        now_ms: int,
    ) -> None:
        """Have the latest request answered."""
        asked = self.request
        reply = HeartbeatReply(
            error,
            asked.member_id,
            epoch,
            asked.incarnation,
            asked.sequence,
            assignment=None if target is None else frozenset(target),
        )
        self.obey(self.member.handle_reply(reply, now_ms), now_ms)


def words(resources: Iterable[Resource]) -> str:
    """Write resources in order."""
    return " ".join(map(str, sorted(resources))) or "nothing"


def spelled(request: Heartbeat) -> str:
    """Write a request's epoch and what it says is owned."""
    owned = "" if request.owned is None else f" owning {words(request.owned)}"
    return f"{request.member_epoch}{owned}"


def test_a_whole_life() -> None:
    identity = Identity("connect", "m-1", "p-1", instance_id="one")
    member = Membership(identity, Timing(), (ClientAssignor("balanced"),))
    runner = Runner(member)
    runner.obey(member.join(0), 0)
    runner.hears(1, {FLIGHTS, FIRST}, now_ms=10)
    runner.hears(1, now_ms=20)
    runner.hears(1, {FLIGHTS}, now_ms=3_000)
    runner.hears(2, now_ms=3_010)
    runner.hears(3, {FLIGHTS, SECOND}, now_ms=6_000)
    runner.hears(3, now_ms=6_010)
    for now_ms in range(6_010, 18_000, 50):  # nobody answers any more
        runner.obey(member.tick(now_ms), now_ms)
    runner.hears(4, {FLIGHTS}, now_ms=18_000)
    runner.hears(4, error=Error.FENCED_MEMBER_EPOCH, now_ms=18_010)
    runner.hears(5, {FIRST}, now_ms=18_020)
    runner.obey(member.leave(19_000, temporary=True), 19_000)
    runner.hears(-2, now_ms=19_010)
    assert runner.story == [
        "says 0 owning nothing",
        "starts flights flights-0",
        "says 1 owning flights flights-0",
        "says 1",
        "stops flights-0",
        "says 1",
        "says 1 owning flights",
        "says 2",
        "starts flights-1",
        "says 3 owning flights flights-1",
        "says 3",
        "says 3 owning flights flights-1",
        "drops all: the group has not answered for so long that the session may end",
        "says 0 owning nothing",
        "starts flights",
        "says 4 owning flights",
        "drops all: FENCED_MEMBER_EPOCH: ",
        "says 0 owning nothing",
        "starts flights-0",
        "says 5 owning flights-0",
        "stops flights-0",
        "says -2",
        "is gone",
    ]


def test_the_library_needs_neither_actors_nor_spark_nor_a_log() -> None:
    program = (
        "import sys, fairlead.actors.worker.membership, fairlead.actors.worker.callbacks\n"
        "print(*sorted({name.split('.')[0] for name in sys.modules} & set(sys.argv[1:])))\n"
        "print(*sorted(name for name in sys.modules if name.startswith('fairlead.')))"
    )
    heavy = ["thespian", "pyspark", "lmdb", "msgpack", "msgspec", "psutil", "py4j"]
    found = subprocess.run(
        [sys.executable, "-c", program, *heavy], capture_output=True, text=True, check=True
    )
    libraries, modules = found.stdout.splitlines()
    assert libraries == ""
    assert modules.split() == [
        "fairlead.actors",
        "fairlead.actors.messages",
        "fairlead.actors.messages.assignors",
        "fairlead.actors.messages.classic",
        "fairlead.actors.messages.computing",
        "fairlead.actors.messages.consumers",
        "fairlead.actors.messages.errors",
        "fairlead.actors.messages.members",
        "fairlead.actors.messages.pickling",
        "fairlead.actors.timing",
        "fairlead.actors.worker",
        "fairlead.actors.worker.callbacks",
        "fairlead.actors.worker.deadlines",
        "fairlead.actors.worker.group_membership",
        "fairlead.actors.worker.heartbeats",
        "fairlead.actors.worker.instructions",
        "fairlead.actors.worker.membership",
        "fairlead.actors.worker.states",
        "fairlead.events",
        "fairlead.events.commits",
        "fairlead.events.model",
        "fairlead.events.records",
    ]
