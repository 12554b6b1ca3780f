"""Many groups share one process and one log; none of them costs anything while it is idle."""

from itertools import accumulate, chain
from pathlib import Path

import pytest

from fairlead.actors.classic.state import RoundPhase
from fairlead.actors.group.group_shard import IDLE_MS, GroupShard
from fairlead.actors.group.state.settings import ShardLimits
from fairlead.actors.messages.classic import ClassicHeartbeat, JoinGroupReply, SyncGroup
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.groups import (
    DescribeGroup,
    DescribeGroupReply,
    ListGroups,
    ListGroupsReply,
    RemoveGroup,
    RemoveGroupReply,
)
from fairlead.actors.messages.offsets import (
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    TopicOffset,
)
from fairlead.actors.timing import Now
from fairlead.events.entries.codec import fold, restore
from fairlead.events.entries.group_keys import by_group, flaw_in_group_id
from fairlead.events.group import Group
from fairlead.events.log.reader import LogReader
from fairlead.events.log.space import DiskSpace
from fairlead.runtime.simulation.invariants.group import same
from fairlead_tests.shards.driver import ShardDriver, joining

A, B = "a", "b"


def test_groups_of_one_process_know_nothing_of_each_other(driver: ShardDriver) -> None:
    first, second = driver.member_of(A), driver.member_of(B)
    assert driver.beat(A, first) is driver.beat(B, second) is Error.NONE
    assert driver.beat(A, second) is Error.UNKNOWN_MEMBER_ID
    driver.leaves(A, first)
    assert driver.beat(B, second) is Error.NONE


def test_what_groups_decide_in_one_tick_is_one_append(driver: ShardDriver) -> None:
    driver.asks(*(joining(str(number)) for number in range(20)))
    assert driver.appends == [20]


def test_after_a_restart_each_group_is_as_it_was(driver: ShardDriver) -> None:
    members = {name: driver.member_of(name) for name in ("a", "ab", "ä/ö", "x y")}
    driver.close()
    driver.open()
    assert {name: driver.beat(name, each) for name, each in members.items()} == dict.fromkeys(
        members, Error.NONE
    )
    (told,) = driver.asks(DescribeGroup("ab"))
    assert isinstance(told, DescribeGroupReply)
    assert (told.state, [each.assignment for each in told.members]) == ("Stable", [b"all"])


def test_no_generation_goes_back_over_a_restart(driver: ShardDriver) -> None:
    first = driver.member_of(A)
    driver.asks(joining(A, first))
    driver.close()
    driver.open()
    (again,) = driver.asks(joining(A, first))
    assert isinstance(again, JoinGroupReply)
    assert again.generation == 2, "that which it was told, and has not synced in"
    driver.leaves(A, first)
    (joined,) = driver.asks(joining(A))
    assert isinstance(joined, JoinGroupReply)
    assert joined.generation == 4


def test_a_member_that_is_silent_for_its_session_is_out_in_any_of_the_groups(
    driver: ShardDriver,
) -> None:
    gone, stays = driver.member_of(A), driver.member_of(B)
    driver.passes(4_000)
    assert driver.beat(B, stays) is Error.NONE
    driver.passes(2_500)
    assert driver.beat(A, gone) is Error.UNKNOWN_MEMBER_ID
    assert driver.beat(B, stays) is Error.NONE


def test_no_time_passes_while_nobody_can_be_heard_and_all_have_theirs_anew_after_it(
    driver: ShardDriver,
) -> None:
    member_id = driver.member_of(A)
    driver.passes(5_000)
    driver.groups.suspend_timers(driver.now_ms)
    driver.passes(60_000)
    assert driver.groups.resume_timers(driver.now)
    assert not driver.groups.resume_timers(driver.now), "that was the next time already"
    driver.passes(5_900)
    assert driver.beat(A, member_id) is Error.NONE
    driver.passes(6_100)
    assert driver.beat(A, member_id) is Error.UNKNOWN_MEMBER_ID


def test_groups_without_members_have_no_timer_but_that_of_their_offsets(
    driver: ShardDriver,
) -> None:
    for name in (A, B):
        driver.leaves(name, driver.member_of(name))
    driver.passes(30_000)
    assert driver.groups.next_tick_ms(driver.now) > driver.now_ms + IDLE_MS


def test_a_heartbeat_makes_no_tick_sooner_or_more_often(driver: ShardDriver) -> None:
    member_id, ticks = driver.member_of(A), set[int]()
    for _ in range(1_000):
        driver.passes(10)
        driver.beat(A, member_id)
        ticks.add(driver.groups.next_tick_ms(driver.now))
    assert len(ticks) < 6


def test_a_group_that_nobody_has_joined_is_forgotten(driver: ShardDriver) -> None:
    assert driver.beat(A, "who") is Error.UNKNOWN_MEMBER_ID
    assert len(driver.groups) == 0
    driver.asks(joining(A, asks_for_id=True))
    assert len(driver.groups) == 1
    driver.passes(6_001)
    assert len(driver.groups) == 0


def test_a_group_that_has_only_given_out_an_id_is_deleted_and_the_id_with_it(
    driver: ShardDriver,
) -> None:
    (told,) = driver.asks(joining(A, asks_for_id=True))
    assert isinstance(told, JoinGroupReply)
    (removed,) = driver.asks(RemoveGroup(A))
    assert (removed.error, len(driver.groups)) == (Error.NONE, 0)
    (refused,) = driver.asks(joining(A, told.member_id))
    assert refused.error is Error.UNKNOWN_MEMBER_ID


def test_an_empty_group_is_listed_until_it_is_deleted(driver: ShardDriver) -> None:
    member_id = driver.member_of(A)
    (refused,) = driver.asks(RemoveGroup(A))
    assert isinstance(refused, RemoveGroupReply)
    assert refused.error is Error.NON_EMPTY_GROUP
    driver.leaves(A, member_id)
    (listed,) = driver.asks(ListGroups())
    assert isinstance(listed, ListGroupsReply)
    (told,) = listed.groups
    assert (told.group_id, told.protocol_type, told.state) == (A, "game", "Empty")
    (removed,) = driver.asks(RemoveGroup(A))
    assert removed.error is Error.NONE
    (removed,) = driver.asks(RemoveGroup(A))
    assert removed.error is Error.GROUP_ID_NOT_FOUND
    driver.close()
    driver.open()
    assert len(driver.groups) == 0


def test_all_entries_tell_of_a_deleted_group_and_its_next_life_what_the_latest_do(
    driver: ShardDriver,
) -> None:
    driver.leaves(A, driver.member_of(A))
    driver.asks(RemoveGroup(A))
    driver.member_of(A)
    driver.close()
    with LogReader.open(driver.folder / "control") as log:
        entries = by_group(chain.from_iterable(log.tail(0)))[A]
    epochs: list[int] = []
    for end in accumulate(driver.appends):
        latest = {(entry.type, entry.key): entry for entry in entries[:end]}
        group = Group(A)
        fold(group, entries[:end])
        same(group, restore(A, sorted(latest.values()), end))
        epochs.append(group.group_epoch)
    assert epochs == [1, 1, 2, 0, 1, 1]
    driver.open()


def test_a_group_that_is_not_there_is_dead(driver: ShardDriver) -> None:
    (told,) = driver.asks(DescribeGroup(A))
    assert isinstance(told, DescribeGroupReply)
    assert (told.error, told.state) == (Error.GROUP_ID_NOT_FOUND, "Dead")
    assert len(driver.groups) == 0


def test_while_a_group_is_in_a_round_its_members_are_told_without_what_they_had(
    driver: ShardDriver,
) -> None:
    driver.member_of(A)
    driver.asks(joining(A))
    (told,) = driver.asks(DescribeGroup(A))
    assert isinstance(told, DescribeGroupReply)
    assert told.state == RoundPhase.PREPARING.value
    assert [(each.protocols, each.assignment) for each in told.members] == [((), b"")] * 2


def test_how_far_a_round_has_come_is_told_in_lists_and_of_the_group(driver: ShardDriver) -> None:
    def told() -> str:
        listed, described = driver.asks(ListGroups(), DescribeGroup(A))
        assert isinstance(listed, ListGroupsReply)
        assert isinstance(described, DescribeGroupReply)
        (group,) = listed.groups
        assert group.state == described.state
        return group.state

    driver.asks(joining(A, asks_for_id=True))
    assert told() == "Empty", "nobody has joined with the id yet"
    driver.passes(6_001)
    (first,) = driver.asks(joining(A))
    assert isinstance(first, JoinGroupReply)
    assert told() == "CompletingRebalance"
    driver.asks(SyncGroup(A, first.member_id, 1))
    assert told() == "Stable"
    driver.asks(joining(A))
    assert told() == "PreparingRebalance"
    driver.asks(joining(A, first.member_id))
    assert told() == "CompletingRebalance"


@pytest.mark.parametrize(
    "group_id", ["", "a\0b", "x" * 256, "\ud800"], ids=["empty", "NUL", "long", "surrogate"]
)
def test_an_id_that_no_key_can_begin_with_is_refused(driver: ShardDriver, group_id: str) -> None:
    calls = joining(group_id), ClassicHeartbeat(group_id, "m", 1), OffsetDelete(group_id, {})
    for call in (*calls, OffsetCommit(group_id, (TopicOffset("t", 0, 1),))):
        (refused,) = driver.asks(call)
        assert (refused.error, refused.message) == (
            Error.INVALID_GROUP_ID,
            flaw_in_group_id(group_id),
        )


def test_a_group_without_an_id_is_read_and_deleted_as_one_that_is_not_there(
    driver: ShardDriver,
) -> None:
    for call, error in (
        (OffsetFetch("", {"t": (0,)}), Error.NONE),
        (DescribeGroup(""), Error.GROUP_ID_NOT_FOUND),
        (RemoveGroup(""), Error.GROUP_ID_NOT_FOUND),
    ):
        assert [each.error for each in driver.asks(call)] == [error]
    assert len(driver.groups) == 0


def test_beyond_the_most_groups_only_those_that_are_there_are_served(
    driver: ShardDriver,
) -> None:
    driver.groups.kept.limits = ShardLimits(groups=1)
    member_id = driver.member_of(A)
    (refused,) = driver.asks(joining(B))
    assert refused.error is Error.GROUP_MAX_SIZE_REACHED
    assert driver.beat(A, member_id) is Error.NONE


def test_without_room_nothing_changes_and_all_have_their_time_anew_after_it(
    driver: ShardDriver,
) -> None:
    member_id = driver.member_of(A)
    driver.space = DiskSpace(Path(), 0)
    (refused,) = driver.asks(joining(B))
    assert refused.error is Error.COORDINATOR_NOT_AVAILABLE
    driver.now_ms += 60_000
    driver.space = DiskSpace(Path(), 1 << 40)
    assert driver.beat(A, member_id) is Error.NONE


def test_without_room_no_group_is_woken_before_anything_is_due_in_it(
    driver: ShardDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken, run_timers = list[int](), GroupShard.run_timers

    def note(group: GroupShard, now: Now) -> None:
        woken.append(now.steady_ms)
        run_timers(group, now)

    driver.member_of(A)
    monkeypatch.setattr(GroupShard, "run_timers", note)
    driver.space = DiskSpace(Path(), 0)
    driver.asks(joining(A))  # so that it is seen what is due there
    driver.passes(5_900)
    assert woken == []
    driver.passes(1_000)
    assert woken, "the session would be over"
