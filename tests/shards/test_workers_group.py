"""The workers' group as its host knows it: each call is answered once, or given up."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.groups import (
    ConnectCall,
    ConnectReply,
    EndHold,
    GroupReplies,
    HostCall,
)
from fairlead.actors.messages.members import Heartbeat, HeartbeatReply
from fairlead.actors.shards.host_actor import GroupOpened, OpenGroup
from fairlead.actors.shards.workers_group import WorkersGroupActor
from fairlead.actors.transport.actor import Address
from fairlead_tests.actor_system import Running
from fairlead_tests.shards.host import StreamHost, stream_host

ASK = 60.0
LONG_MS = 60_000
"""So long a heartbeat without news is held: no test waits for that."""
AT_ONCE_S = 0.4
"""So soon a packet is answered; the group's next wake-up is no sooner."""


class Host(StreamHost):
    """A host of members of the workers' group."""

    def told(self, *calls: HostCall) -> dict[int, ConnectReply]:
        """Return what is told until these calls are taken."""
        return by_number(self.asks(*calls))


def by_number(told: GroupReplies) -> dict[int, ConnectReply]:
    """Return the answers by the numbers of their calls."""
    return {each.number: each for each in told.replies if isinstance(each, ConnectReply)}


def opened(running: Running) -> Address:
    actor = running.system.create(WorkersGroupActor, f"group {running.folder.name}")
    settings = GroupSettings(session_timeout_ms=4 * LONG_MS, heartbeat_interval_ms=LONG_MS)
    order = OpenGroup("connect", running.folder / "group", settings)
    assert isinstance(running.system.ask(actor, order, ASK), GroupOpened)
    return actor


@contextmanager
def hosted(running: Running) -> Generator[Host]:
    with stream_host(running, opened(running)) as host:
        yield Host(host.stream, host.number, host.epoch)


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
    with hosted(actor_system) as host:
        joined = host.told(joining(1))
        assert error_of(joined, 1) is Error.NONE
        assert host.told(beat(2)) == {}, "it is held"
        host.asks(EndHold("connect", 2))  # the client waits with what it asks next
        assert error_of(by_number(host.hears()), 2) is Error.NONE
        assert host.told(beat(3)) == {}
        told = host.told(beat(4))  # from another connection
        assert error_of(told, 3) is None
        left = host.told(beat(5, -1))
        assert (error_of(left, 4), error_of(left, 5)) == (None, Error.NONE)


@pytest.mark.cluster
def test_a_late_copy_is_given_up_and_not_what_is_newer(actor_system: Running) -> None:
    with hosted(actor_system) as host:
        host.told(joining(1))
        assert host.told(beat(2, sequence=6)) == {}, "it is held"
        assert host.told(beat(3, sequence=5)) == {3: ConnectReply(None, 3)}
        assert host.told(beat(4, sequence=6)) == {4: ConnectReply(None, 4)}
        host.asks(EndHold("connect", 2))
        assert error_of(by_number(host.hears()), 2) is Error.NONE
        host.told(beat(5, -1, sequence=7))


@pytest.mark.cluster
def test_what_is_neither_answered_nor_held_is_given_up_once_its_client_waits_no_longer(
    actor_system: Running,
) -> None:
    with hosted(actor_system) as host:
        host.told(joining(1))
        assert host.told(beat(2, sequence=0)) == {}, "it is a late copy: the group drops it"
        assert host.told(EndHold("connect", 2)) == {2: ConnectReply(None, 2)}
        took_s = list[float]()
        for _ in range(5):  # a busy machine may keep some of them waiting, too
            began = time.monotonic()
            assert host.told(EndHold("connect", 2)) == {}
            took_s.append(time.monotonic() - began)
        assert min(took_s) < AT_ONCE_S, "no packet waits for what comes by chance"
        assert set(host.told(beat(3, -1, sequence=3))) == {3}


@pytest.mark.cluster
def test_a_host_that_takes_the_place_of_another_hears_nothing_of_its_calls(
    actor_system: Running,
) -> None:
    actor = opened(actor_system)
    with stream_host(actor_system, actor, 1) as first:
        host = Host(first.stream, 1, first.epoch)
        host.told(joining(1))
        assert host.told(beat(2)) == {}
        with stream_host(actor_system, actor, 2) as second:
            assert set(by_number(second.asks(beat(3, -1)))) == {3}
            assert host.has_ended()
