"""The process of many groups: calls come packed, and nothing is said that was not asked for."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from fairlead.actors.door.actor import Address, Failure
from fairlead.actors.door.system import Line
from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.classic import (
    ClassicHeartbeat,
    ClassicHeartbeatReply,
    JoinGroupReply,
    SyncGroup,
    SyncGroupReply,
)
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.groups import (
    AwaitReplies,
    GroupCalls,
    GroupReplies,
    HostCall,
    ListGroups,
    ListGroupsReply,
)
from fairlead.actors.messages.offsets import (
    OffsetCommit,
    OffsetFetch,
    OffsetFetchReply,
    TopicOffset,
)
from fairlead.actors.shards.actor import OpenShard, ShardActor, ShardOpened
from fairlead_tests.actor_system import Running
from fairlead_tests.shards.driver import AT_ONCE, joining

ASK = 10.0
HOST = 7


def opened(
    running: Running, name: str, count: int = 1, settings: GroupSettings = AT_ONCE
) -> tuple[Address, object]:
    actor = running.system.create(ShardActor, name)
    order = OpenShard(0, count, running.folder / "shards" / "0", settings)
    return actor, running.system.ask(actor, order, ASK)


class Host:
    """A host of members, as the process of groups knows it."""

    def __init__(self, actor: Address, calls: Line, later: Line, number: int = HOST) -> None:
        self._actor, self._calls, self._later, self._number = actor, calls, later, number
        self._packets = 0
        self.heard = 0

    def asks(self, *calls: HostCall) -> GroupReplies:
        self._packets += 1
        numbered = tuple(replace(call, number=at) for at, call in enumerate(calls, 1))
        packet = GroupCalls(self._number, self._packets, numbered, self.heard)
        reply = self._calls.ask(self._actor, packet, ASK)
        assert isinstance(reply, GroupReplies)
        self.heard = reply.number
        return reply

    def waits(self) -> GroupReplies:
        reply = self._later.ask(self._actor, AwaitReplies(self._number), ASK)
        assert isinstance(reply, GroupReplies)
        return reply


def kill(actor_name: str, running: Running) -> None:
    found = [
        each for each in running.processes() if f"shard {actor_name}" in " ".join(each.cmdline())
    ]
    assert found, [each.cmdline() for each in running.processes()]
    for each in found:
        each.kill()
        psutil.wait_procs([each], ASK)


@pytest.mark.cluster
def test_groups_are_back_from_their_log_after_a_kill(actor_system: Running) -> None:
    actor, said = opened(actor_system, "one")
    assert isinstance(said, ShardOpened)
    with actor_system.system.private() as line, actor_system.system.private() as later:
        host = Host(actor, line, later)
        joined = host.asks(*(joining(str(number)) for number in range(50)))
        ids = {
            str(each.number - 1): each.member_id
            for each in joined.replies
            if isinstance(each, JoinGroupReply)
        }
        assert len(ids) == 50
        kill("one", actor_system)
        again, said = opened(actor_system, "two")
        assert isinstance(said, ShardOpened)
        assert said.groups == 50
        host = Host(again, line, later, HOST + 1)
        beats = host.asks(*(ClassicHeartbeat(name, each, 1) for name, each in ids.items()))
        assert beats.epoch == joined.epoch + 1
        replies = [each for each in beats.replies if isinstance(each, ClassicHeartbeatReply)]
        assert [each.error for each in replies] == [Error.NONE] * 50


@pytest.mark.cluster
def test_an_answer_that_had_to_wait_comes_on_the_line_that_waits(actor_system: Running) -> None:
    actor, _ = opened(actor_system, "one")
    system = actor_system.system
    with system.private() as line, system.private() as later, ThreadPoolExecutor(1) as pool:
        host = Host(actor, line, later)
        (first,) = host.asks(joining("g")).replies
        assert isinstance(first, JoinGroupReply)
        waiting = pool.submit(host.waits)
        assert host.asks(joining("g")).replies == ()  # all others have to join before
        (beat,) = host.asks(ClassicHeartbeat("g", first.member_id, 1)).replies
        assert isinstance(beat, ClassicHeartbeatReply)
        assert beat.error is Error.REBALANCE_IN_PROGRESS
        told = host.asks(joining("g", first.member_id)).replies
        told += () if len(told) == 2 else waiting.result(ASK).replies
        joined = [each for each in told if isinstance(each, JoinGroupReply)]
        assert [each.generation for each in joined] == [2, 2]
        follower = next(each.member_id for each in joined if each.member_id != each.leader)
        assert host.asks(SyncGroup("g", follower, 2)).replies == ()
        given = {follower: b"x"}
        synced = host.asks(SyncGroup("g", first.member_id, 2, assignments=given)).replies
        found = [each.assignment for each in synced if isinstance(each, SyncGroupReply)]
        assert sorted(found) == [b"", b"x"]
        assert waiting.done() or waiting.result(ASK).replies == ()


@pytest.mark.cluster
def test_members_outlive_a_host_that_is_away_for_longer_than_their_sessions(
    actor_system: Running,
) -> None:
    actor, _ = opened(actor_system, "one")
    with actor_system.system.private() as line, actor_system.system.private() as later:
        host = Host(actor, line, later)
        (joined,) = host.asks(replace(joining("g"), session_timeout_ms=1_500)).replies
        assert isinstance(joined, JoinGroupReply)
        host.asks(SyncGroup("g", joined.member_id, 1))
        time.sleep(3.0)
        host = Host(actor, line, later, HOST + 1)
        (beat,) = host.asks(ClassicHeartbeat("g", joined.member_id, 1)).replies
        assert isinstance(beat, ClassicHeartbeatReply)
        assert beat.error is Error.NONE


@pytest.mark.cluster
def test_offsets_that_nobody_uses_expire_and_their_groups_go(actor_system: Running) -> None:
    settings = replace(AT_ONCE, offsets_retention_ms=1_500, offsets_check_interval_ms=100)
    actor, _ = opened(actor_system, "one", settings=settings)
    with actor_system.system.private() as line, actor_system.system.private() as later:
        host = Host(actor, line, later)
        (joined,) = host.asks(joining("used")).replies
        assert isinstance(joined, JoinGroupReply)
        read = (TopicOffset("t", 0, 7),)
        host.asks(
            SyncGroup("used", joined.member_id, 1),
            OffsetCommit("used", read, joined.member_id, 1),
            OffsetCommit("unused", read),
        )
        seen: list[list[str]] = []
        while seen[-1:] != [["used"]]:
            (told,) = host.asks(ListGroups()).replies
            assert isinstance(told, ListGroupsReply)
            seen.append([each.group_id for each in told.groups])
            host.waits()
        assert seen[0] == ["unused", "used"]
        (kept,) = host.asks(OffsetFetch("used")).replies
        assert isinstance(kept, OffsetFetchReply)
        assert [each.offset for each in kept.offsets] == [7]


@pytest.mark.cluster
def test_groups_that_were_spread_otherwise_are_not_opened(actor_system: Running) -> None:
    _, said = opened(actor_system, "one", count=2)
    assert isinstance(said, ShardOpened)
    kill("one", actor_system)
    _, said = opened(actor_system, "two", count=4)
    assert isinstance(said, Failure)
    assert "kafka.group.shards = 4 is not what the groups in" in said.reason
    assert str(Path(actor_system.folder / "shards")) in said.reason


@pytest.mark.cluster
def test_answers_that_are_lost_on_their_way_come_with_the_next(actor_system: Running) -> None:
    actor, _ = opened(actor_system, "one")
    with actor_system.system.private() as line, actor_system.system.private() as later:
        host = Host(actor, line, later)
        before = host.heard
        (joined,) = host.asks(joining("g")).replies
        assert isinstance(joined, JoinGroupReply)
        host.heard = before  # as if it had not come
        beat = ClassicHeartbeat("g", joined.member_id, 1)
        told = host.asks(beat).replies
        assert [type(each) for each in told] == [JoinGroupReply, ClassicHeartbeatReply]
        assert told[0] == joined
        assert [type(each) for each in host.asks(beat).replies] == [ClassicHeartbeatReply]
