"""The workers' group as its host knows it: each call is answered once, or given up."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.asks import AskRequest, MemberAsk, ReadWork, ReportReply, WorkReply
from fairlead.actors.messages.classic import LeaveGroup, LeaveGroupReply, Leaver, LeaverReply
from fairlead.actors.messages.commands import (
    CommandReply,
    CompactionProgress,
    CompactionState,
    DescribeCompaction,
    DescribeTraffic,
    RequestedCommand,
    Traffic,
)
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.groups import (
    ConnectCall,
    ConnectReply,
    EndHold,
    GroupReplies,
    HostCall,
    NodeCall,
    NodeReply,
    Outlook,
)
from fairlead.actors.messages.members import (
    CommitOffsets,
    CommitReply,
    Heartbeat,
    HeartbeatReply,
    ReportStatus,
)
from fairlead.actors.messages.orders import EndMember, PutConnector
from fairlead.actors.shards.host_actor import GroupOpened, OpenGroup
from fairlead.actors.shards.workers_group import WorkersGroupActor
from fairlead.actors.transport.actor import Address
from fairlead.events.model import Resource
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


def of_nodes(told: GroupReplies) -> dict[int, NodeReply]:
    """Return the answers to nodes by the numbers of their calls."""
    return {each.number: each for each in told.replies if isinstance(each, NodeReply)}


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
        assert joined[1].outlook == Outlook(reason="no work is configured")
        assert host.told(beat(2)) == {}, "it is held"
        host.asks(EndHold("connect", 2))  # the client waits with what it asks next
        answered = by_number(host.hears())
        assert error_of(answered, 2) is Error.NONE
        assert answered[2].outlook is None, "there is no news"
        assert host.told(beat(3)) == {}
        told = host.told(beat(4))  # from another connection
        assert error_of(told, 3) is None
        left = host.told(beat(5, -1))
        assert (error_of(left, 4), error_of(left, 5)) == (None, Error.NONE)


@pytest.mark.cluster
def test_an_ask_is_answered_once_it_is_durable_and_a_held_heartbeat_stays_held(
    actor_system: Running,
) -> None:
    with hosted(actor_system) as host:
        host.told(joining(1))
        assert host.told(beat(2)) == {}, "it is held"
        asks: list[AskRequest] = [
            ReadWork("connect", "m", (Resource("A"),)),
            ReportStatus("connect", "m", ()),
            CommitOffsets("connect", "n", ()),
        ]
        calls = [
            ConnectCall(MemberAsk("connect", "m", 1, each), 3 + n) for n, each in enumerate(asks)
        ]
        assert host.told(*calls) == {
            3: ConnectReply(WorkReply(), 3),
            4: ConnectReply(ReportReply(), 4),
            5: ConnectReply(CommitReply(()), 5),
        }


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


@pytest.mark.cluster
def test_a_node_is_answered_with_the_ends_of_both_logs(actor_system: Running) -> None:
    put = RequestedCommand(PutConnector("connect", "A", {}), "r1")
    messages = [
        put,
        DescribeTraffic("connect"),
        DescribeCompaction("connect"),
        CommitOffsets("connect", "n", (), (), 9),
        LeaveGroup("connect", (Leaver("none"),), 4),
        EndMember("connect", "none", "i"),
    ]
    with hosted(actor_system) as host:
        calls = [NodeCall("connect", each, number) for number, each in enumerate(messages, 1)]
        told = of_nodes(host.asks(*calls[:1]))
        end = told[1].control_end
        assert told == {
            1: NodeReply(CommandReply(Error.NONE, log_offset=end, created=True), 1, end, 0)
        }
        told = of_nodes(host.asks(*calls[1:]))
        assert {(each.control_end, each.offsets_end) for each in told.values()} == {(end, 0)}
        assert {number: each.reply for number, each in told.items()} == {
            2: Traffic(0, 0, heartbeat_interval_ms=LONG_MS),
            3: CompactionProgress(CompactionState.NONE),
            4: CommitReply((), 9),
            5: LeaveGroupReply(
                Error.NONE, (LeaverReply("none", None, Error.UNKNOWN_MEMBER_ID),), number=4
            ),
            6: told[6].reply,
        }
        assert isinstance(told[6].reply, CommandReply)


@pytest.mark.cluster
def test_a_heartbeat_of_a_nodes_worker_is_held_and_given_up_like_any(
    actor_system: Running,
) -> None:
    with hosted(actor_system) as host:
        epoch = host.epoch

        def carried(number: int, member_epoch: int = 1, **told: object) -> NodeCall:
            request = joining(number).request if member_epoch == 0 else beat(number).request
            assert isinstance(request, Heartbeat)
            told = {"member_epoch": member_epoch, "coordinator_epoch": epoch, **told}
            return NodeCall("connect", replace(request, **told), number)  # type: ignore[arg-type]

        joined = of_nodes(host.asks(carried(1, 0)))[1]
        assert isinstance(joined.reply, HeartbeatReply)
        assert (joined.reply.error, joined.control_end) == (Error.NONE, joined.reply.log_offset)
        assert of_nodes(host.asks(carried(2))) == {}, "it is held"
        host.asks(EndHold("connect", 2))
        assert isinstance(of_nodes(host.hears())[2].reply, HeartbeatReply)
        assert of_nodes(host.asks(carried(3))) == {}, "it is held"
        assert of_nodes(host.asks(carried(4, sequence=2))) == {4: NodeReply(number=4)}
        other = of_nodes(host.asks(carried(5, coordinator_epoch=epoch - 1)))[5].reply
        assert isinstance(other, HeartbeatReply)
        assert (other.error, other.coordinator_epoch) == (Error.NOT_COORDINATOR, epoch)
        host.asks(carried(6, -1))
