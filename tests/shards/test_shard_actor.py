"""The process of many groups: calls come packed, and nothing is said that was not asked for."""

import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.classic import (
    ClassicHeartbeat,
    ClassicHeartbeatReply,
    JoinGroupReply,
    SyncGroup,
    SyncGroupReply,
)
from fairlead.actors.messages.consumers import (
    ConsumerGroupHeartbeat,
    ConsumerGroupHeartbeatReply,
    Partitions,
)
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.groups import (
    EndHold,
    GroupReplies,
    ListGroups,
    ListGroupsReply,
    TellTopics,
)
from fairlead.actors.messages.offsets import (
    OffsetCommit,
    OffsetFetch,
    OffsetFetchReply,
    TopicOffset,
)
from fairlead.actors.shards.actor import OpenShard, ShardActor, ShardOpened
from fairlead.actors.transport.actor import Address, Failure
from fairlead.events.records import Topic
from fairlead_tests.actor_system import Running
from fairlead_tests.shards.driver import AT_ONCE, joining
from fairlead_tests.shards.host import in_order, same_of, stream_host

ASK = 60.0
HOST = 7
HELD_S = 0.3


def opened(
    running: Running, name: str, count: int = 1, settings: GroupSettings = AT_ONCE
) -> tuple[Address, object]:
    actor = running.system.create(ShardActor, f"{name} {running.folder.name}")
    order = OpenShard(0, count, running.folder / "shards" / "0", settings)
    return actor, running.system.ask(actor, order, ASK)


def kill(actor_name: str, running: Running) -> None:
    found = [
        each
        for each in running.processes()
        if f"shard {actor_name} {running.folder.name}" in " ".join(each.cmdline())
    ]
    assert found, [each.cmdline() for each in running.processes()]
    for each in found:
        each.kill()
        psutil.wait_procs([each], ASK)


@pytest.mark.cluster
def test_groups_are_back_from_their_log_after_a_kill(actor_system: Running) -> None:
    actor, said = opened(actor_system, "one")
    assert isinstance(said, ShardOpened)
    with stream_host(actor_system, actor) as host:
        joined = host.asks(*in_order(*(joining(str(number)) for number in range(50))))
        ids = {
            str(each.number - 1): each.member_id
            for each in joined.replies
            if isinstance(each, JoinGroupReply)
        }
        assert len(ids) == 50
        kill("one", actor_system)
        assert host.has_ended()
        epoch = host.epoch
    again, said = opened(actor_system, "two")
    assert isinstance(said, ShardOpened)
    assert said.groups == 50
    with stream_host(actor_system, again) as host:
        beats = host.asks(*in_order(*(ClassicHeartbeat(*each, 1) for each in ids.items())))
        assert host.epoch > epoch
        replies = [each for each in beats.replies if isinstance(each, ClassicHeartbeatReply)]
        assert [each.error for each in replies] == [Error.NONE] * 50


@pytest.mark.cluster
def test_an_answer_that_had_to_wait_comes_once_it_is_known(actor_system: Running) -> None:
    actor, _ = opened(actor_system, "one")
    with stream_host(actor_system, actor) as host:
        (first,) = host.asks(joining("g", number=1)).replies
        assert isinstance(first, JoinGroupReply)
        assert host.asks(joining("g", number=2)).replies == ()  # all others have to join before
        (beat,) = host.asks(ClassicHeartbeat("g", first.member_id, 1, number=3)).replies
        assert isinstance(beat, ClassicHeartbeatReply)
        assert beat.error is Error.REBALANCE_IN_PROGRESS
        told = host.asks(joining("g", first.member_id, number=4)).replies
        joined = [each for each in told if isinstance(each, JoinGroupReply)]
        assert sorted((each.number, each.generation) for each in joined) == [(2, 2), (4, 2)]
        follower = next(each.member_id for each in joined if each.member_id != each.leader)
        assert host.asks(SyncGroup("g", follower, 2, number=5)).replies == ()
        given = {follower: b"x"}
        synced = host.asks(SyncGroup("g", first.member_id, 2, number=6, assignments=given)).replies
        found = [
            (each.number, each.assignment) for each in synced if isinstance(each, SyncGroupReply)
        ]
        assert sorted(found) == [(5, b"x"), (6, b"")]


@pytest.mark.cluster
def test_members_outlive_a_host_that_is_away_for_longer_than_their_sessions(
    actor_system: Running,
) -> None:
    actor, _ = opened(actor_system, "one")
    with stream_host(actor_system, actor) as host:
        (joined,) = host.asks(replace(joining("g"), session_timeout_ms=3_000)).replies
        assert isinstance(joined, JoinGroupReply)
        host.asks(SyncGroup("g", joined.member_id, 1))
        time.sleep(4.5)
    with stream_host(actor_system, actor, HOST + 1) as host:
        (beat,) = host.asks(ClassicHeartbeat("g", joined.member_id, 1)).replies
        assert isinstance(beat, ClassicHeartbeatReply)
        assert beat.error is Error.NONE


@pytest.mark.cluster
def test_a_kept_heartbeat_is_asked_and_answered_by_its_number(actor_system: Running) -> None:
    actor, _ = opened(actor_system, "one")
    with stream_host(actor_system, actor) as host:
        (joined,) = host.asks(joining("g", number=1)).replies
        assert isinstance(joined, JoinGroupReply)
        host.asks(SyncGroup("g", joined.member_id, 1, number=2))
        beat = ClassicHeartbeat("g", joined.member_id, 1, number=3)
        first = host.asks(kept=(beat,))
        assert first.replies == (ClassicHeartbeatReply(Error.NONE, number=3),)
        again = host.asks(repeated=(3,))
        assert (again.replies, same_of(again)) == ((), [3])
        host.says(joining("g", number=4))  # a rebalance is news
        host.hears()
        other = host.asks(repeated=(3,))
        assert other.replies == (ClassicHeartbeatReply(Error.REBALANCE_IN_PROGRESS, number=3),)
        last = host.asks(repeated=(3,), dropped=(3,))
        assert last.replies == other.replies, "it is told in full: nobody repeats it any more"


@pytest.mark.cluster
def test_a_kept_heartbeat_that_is_held_is_answered_once_its_client_asks_more(
    actor_system: Running,
) -> None:
    actor, _ = opened(actor_system, "one")
    with stream_host(actor_system, actor) as host:
        (joined,) = host.asks(joining("g", number=1)).replies
        assert isinstance(joined, JoinGroupReply)
        host.asks(SyncGroup("g", joined.member_id, 1, number=2))
        host.asks(kept=(ClassicHeartbeat("g", joined.member_id, 1, number=3),))
        time.sleep(HELD_S)
        held = host.asks(repeated=(3,))
        assert (held.replies, same_of(held)) == ((), [])
        assert same_of(host.asks(EndHold("g", 3))) == [3]


@pytest.mark.cluster
def test_a_later_host_takes_the_place_of_an_earlier_one(actor_system: Running) -> None:
    actor, _ = opened(actor_system, "one")
    with (
        stream_host(actor_system, actor, HOST) as earlier,
        stream_host(actor_system, actor, HOST + 1) as later,
    ):
        assert earlier.asks().taken == 1
        assert later.asks().taken == 1
        assert earlier.has_ended()
        with stream_host(actor_system, actor, HOST) as again:
            again.says(ListGroups(number=1))
            assert again.has_ended()
        assert later.asks().taken == 2


@pytest.mark.cluster
def test_targets_are_computed_beside_the_loop_and_reach_their_members(
    actor_system: Running,
) -> None:
    settings = replace(AT_ONCE, assignment_interval_ms=1)
    actor, _ = opened(actor_system, "one", settings=settings)
    topic = Topic("ab" * 16, 4)

    def beat(member_id: str, epoch: int, owned: Partitions | None) -> ConsumerGroupHeartbeat:
        return ConsumerGroupHeartbeat(
            "g",
            member_id,
            epoch,
            rebalance_timeout_ms=-1 if epoch else 20_000,
            subscribed_topic_names=None if epoch else ("t4",),
            topic_partitions=owned,
        )

    with stream_host(actor_system, actor) as host:
        host.asks(TellTopics({"t4": topic}))
        owned: dict[str, Partitions] = {}
        epochs = {"a": 0, "b": 0}
        while sorted(len(each.get(topic.topic_id, ())) for each in owned.values()) != [2, 2]:
            for member_id, epoch in epochs.items():
                call = beat(member_id, epoch, owned.get(member_id, {}))
                replies = host.asks(call).replies or host.hears().replies
                (told,) = replies
                assert isinstance(told, ConsumerGroupHeartbeatReply)
                assert told.error is Error.NONE
                epochs[member_id] = told.member_epoch
                if told.assignment is not None:
                    owned[member_id] = told.assignment
    assert sorted(each for share in owned.values() for each in share[topic.topic_id]) == [*range(4)]


def groups_of(told: GroupReplies) -> list[str]:
    """Return the groups of the one list in what is told."""
    (listed,) = (each for each in told.replies if isinstance(each, ListGroupsReply))
    return [each.group_id for each in listed.groups]


@pytest.mark.cluster
def test_offsets_that_nobody_uses_expire_and_their_groups_go(actor_system: Running) -> None:
    settings = replace(AT_ONCE, offsets_retention_ms=1_500, offsets_check_interval_ms=100)
    actor, _ = opened(actor_system, "one", settings=settings)
    with stream_host(actor_system, actor) as host:
        (joined,) = host.asks(joining("used")).replies
        assert isinstance(joined, JoinGroupReply)
        read = (TopicOffset("t", 0, 7),)
        told = host.asks(
            SyncGroup("used", joined.member_id, 1, number=1),
            OffsetCommit("used", read, joined.member_id, 1, number=2),
            OffsetCommit("unused", read, number=3),
            ListGroups(number=4),
        )
        assert groups_of(told) == ["unused", "used"]
        while groups_of(host.asks(ListGroups())) != ["used"]:
            time.sleep(0.1)
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
