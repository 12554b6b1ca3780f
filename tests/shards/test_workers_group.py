"""The workers' group as its host knows it: each call is answered once, or given up."""

import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest

from fairlead.actors.door.actor import Address
from fairlead.actors.door.system import Line
from fairlead.actors.group.actor import GroupOpened, OpenGroup
from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.groups import (
    AwaitReplies,
    ConnectCall,
    ConnectReply,
    EndHold,
    GroupCalls,
    GroupReplies,
    PackedCall,
)
from fairlead.actors.messages.members import Heartbeat, HeartbeatReply
from fairlead.actors.shards.workers_group import WorkersGroupActor
from fairlead_tests.actor_system import Running

ASK = 10.0
LONG_MS = 60_000
"""So long a heartbeat without news is held: no test waits for that."""
AT_ONCE_S = 0.4
"""So soon a packet is answered, two of them even; the group's next wake-up is no sooner."""


@dataclass
class Host:
    """A host of members, on its two lines."""

    actor: Address
    calls: Line
    later: Line
    number: int = 1
    packets: int = 0
    heard: int = 0

    def asks(self, *calls: PackedCall) -> dict[int, ConnectReply]:
        self.packets += 1
        packet = GroupCalls(self.number, self.packets, calls, self.heard)
        answer = self.calls.ask(self.actor, packet, ASK)
        assert isinstance(answer, GroupReplies), answer
        self.heard = answer.number
        return self._told(answer)

    def waits(self) -> dict[int, ConnectReply]:
        answer = self.later.ask(self.actor, AwaitReplies(self.number), ASK)
        assert isinstance(answer, GroupReplies), answer
        return self._told(answer)

    def _told(self, answer: GroupReplies) -> dict[int, ConnectReply]:
        return {each.number: each for each in answer.replies if isinstance(each, ConnectReply)}


@contextmanager
def hosted(running: Running) -> Generator[Host]:
    actor = running.system.create(WorkersGroupActor, "group")
    settings = GroupSettings(session_timeout_ms=4 * LONG_MS, heartbeat_interval_ms=LONG_MS)
    order = OpenGroup("connect", running.folder / "group", settings)
    assert isinstance(running.system.ask(actor, order, ASK), GroupOpened)
    with running.system.private() as line, running.system.private() as later:
        yield Host(actor, line, later)


def beat(number: int, epoch: int = 1, **told: object) -> ConnectCall:
    request = Heartbeat("connect", "m", epoch, "i", number, owned=())
    return ConnectCall(replace(request, **told), number)  # type: ignore[arg-type]


def joining(number: int) -> ConnectCall:
    return beat(number, 0, rebalance_timeout_ms=4 * LONG_MS, server_assignor="uniform")


def error_of(replies: dict[int, ConnectReply], number: int) -> Error | None:
    """Return the error of the answer; None: it is given up."""
    reply = replies[number].reply
    assert reply is None or isinstance(reply, HeartbeatReply)
    return reply.error if reply else None


@pytest.mark.cluster
def test_a_heartbeat_waits_until_its_client_or_its_member_asks_something_else(
    actor_system: Running,
) -> None:
    with hosted(actor_system) as host, ThreadPoolExecutor(1) as pool:
        joined = host.asks(joining(1))
        assert error_of(joined, 1) is Error.NONE
        assert host.asks(beat(2)) == {}, "it is held"
        waiting = pool.submit(host.waits)
        host.asks(EndHold("connect", 2))  # the client waits with what it asks next
        assert error_of(waiting.result(ASK), 2) is Error.NONE
        assert host.asks(beat(3)) == {}
        told = host.asks(beat(4))  # from another connection
        assert error_of(told, 3) is None
        left = host.asks(beat(5, -1))
        assert (error_of(left, 4), error_of(left, 5)) == (None, Error.NONE)


@pytest.mark.cluster
def test_a_late_copy_is_given_up_and_not_what_is_newer(actor_system: Running) -> None:
    with hosted(actor_system) as host, ThreadPoolExecutor(1) as pool:
        host.asks(joining(1))
        assert host.asks(beat(2, sequence=6)) == {}, "it is held"
        assert host.asks(beat(3, sequence=5)) == {3: ConnectReply(None, 3)}
        assert host.asks(beat(4, sequence=6)) == {4: ConnectReply(None, 4)}
        waiting = pool.submit(host.waits)
        host.asks(EndHold("connect", 2))
        assert error_of(waiting.result(ASK), 2) is Error.NONE
        host.asks(beat(5, -1, sequence=7))


@pytest.mark.cluster
def test_what_is_neither_answered_nor_held_is_given_up_once_its_client_waits_no_longer(
    actor_system: Running,
) -> None:
    with hosted(actor_system) as host:
        host.asks(joining(1))
        assert host.asks(beat(2, sequence=0)) == {}, "it is a late copy: the group drops it"
        began = time.monotonic()
        assert host.asks(EndHold("connect", 2)) == {2: ConnectReply(None, 2)}
        assert host.asks(EndHold("connect", 2)) == {}
        assert time.monotonic() - began < AT_ONCE_S, "no packet waits for what comes by chance"
        assert set(host.asks(beat(3, -1, sequence=3))) == {3}


@pytest.mark.cluster
def test_a_host_that_takes_the_place_of_another_hears_nothing_of_its_calls(
    actor_system: Running,
) -> None:
    with hosted(actor_system) as host:
        host.asks(joining(1))
        assert host.asks(beat(2)) == {}
        other = replace(host, number=2, packets=0)
        assert set(other.asks(beat(3, -1))) == {3}
