"""A group with a static member, for the tests of seats that outlive a process."""

from dataclasses import replace

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat
from fairlead_tests.decider import JOIN, Decider, resources

STATIC = replace(JOIN, instance_id="i", url="http://s")
BEAT = Heartbeat("connect", "S1", 2, "1", instance_id="i")
AWAY = replace(BEAT, member_epoch=-2)
WORK = resources("B B-0")
AT_2 = dict.fromkeys(WORK, 2)
DELAY_MS = 300_000


def static_group() -> Decider:
    """A group of W1 with connector A, and S1, of instance i, with connector B, at epoch 2."""
    decider = Decider(GroupSettings(max_delay_ms=DELAY_MS))
    decider.configure("A A-0 B B-0")
    decider.join("W1")
    decider.compute()
    decider.beat("W1", "")
    decider.join("S1", STATIC)
    decider.settle()
    assert decider.current("S1").assigned == AT_2
    return decider


def returning(member_id: str, **changes: object) -> Heartbeat:
    """The join of a new process of instance i."""
    return replace(STATIC, member_id=member_id, incarnation="2", **changes)  # type: ignore[arg-type]


def seated(decider: Decider, member_id: str) -> Decider:
    """Let the static member leave temporarily, and a new process take its seat."""
    decider.heartbeat(AWAY)
    assert decider.heartbeat(returning(member_id)).error is Error.NONE
    return decider


def refused(decider: Decider, request: Heartbeat) -> Error:
    """Return the error of a request, which must write nothing."""
    end = decider.group.end
    reply = decider.heartbeat(request)
    assert decider.group.end == end, "a refused request changes nothing"
    return reply.error
