"""The groups of a shard as they are read: what they are, and where each one's history lies."""

from pathlib import Path

from fairlead.actors.messages.classic import JoinGroupReply, SyncGroup
from fairlead.actors.messages.groups import RemoveGroup
from fairlead.actors.messages.offsets import OffsetDelete, TopicOffset
from fairlead.events.entries.group_keys import by_group
from fairlead.events.group import Group
from fairlead.events.model import GroupState, GroupType, Why
from fairlead.projections.metrics.shards import figures_of
from fairlead.projections.shard_history import GroupEntries, ShardHistory
from fairlead.projections.shards import (
    COMPLETING,
    ChangedGroups,
    CommittedGroups,
    ShardFollower,
    all_groups,
    committed_offsets,
    state_of_clients,
)
from fairlead_tests.shards.driver import joining
from fairlead_tests.shards.recorded import Clients


def groups_of(clients: Clients) -> list[Group]:
    committing = CommittedGroups(clients.offsets, ChangedGroups()).group_ids
    return all_groups(ShardFollower(clients.control, ChangedGroups()).groups, committing)


def told(follower: ShardFollower, committing: CommittedGroups) -> dict[str, tuple[str, str]]:
    groups = all_groups(follower.groups, committing.group_ids)
    return {each.group_id: (each.type.value, each.state.value) for each in groups}


def test_all_groups_of_a_shard_are_followed(recorded: Clients) -> None:
    groups = groups_of(recorded)
    assert [each.group_id for each in groups] == ["billing", "pay", "registry", "resets"]
    assert [each.type for each in groups[:3]] == [
        GroupType.CONSUMER,
        GroupType.CLASSIC,
        GroupType.CLASSIC,
    ]
    assert [
        (each.topic, each.offset) for each in committed_offsets(recorded.offsets, "billing")
    ] == [
        ("orders", 17),
        ("orders", 4),
    ]


def test_a_group_has_of_the_log_just_what_is_its_own(recorded: Clients) -> None:
    control = recorded.control
    entries = [each for batch in control.tail(0) for each in batch]
    history = ShardHistory(control)
    for group_id, own in by_group(entries).items():
        mine = GroupEntries(control, group_id, history)
        assert [each for batch in mine.tail(0) for each in batch] == own
        middle = own[len(own) // 2].offset
        later = [each for each in own if each.offset >= middle]
        assert [each for batch in mine.tail(middle) for each in batch] == later
        latest = {(each.type, each.key): each for each in own}
        assert sorted(mine.load().entries) == sorted(latest.values())
    assert not history.knows("nobody")


def test_a_look_takes_what_is_new_and_a_group_that_is_deleted_goes(tmp_path: Path) -> None:
    clients = Clients(tmp_path)
    changed = ChangedGroups()
    follower = ShardFollower(clients.control, changed)
    committing = CommittedGroups(clients.offsets, changed)
    assert told(follower, committing) == {}
    clients.joins("billing", "app-1", "orders")
    clients.commits("resets", "", -1, TopicOffset("clicks", 1, 99))
    follower.catch_up()
    committing.catch_up()
    assert told(follower, committing) == {
        "billing": ("consumer", "Stable"),
        "resets": ("connect", "Empty"),
    }
    assert (changed.take(), changed.take()) == ({"billing", "resets"}, set())
    clients.goes("billing", "app-1")
    clients.shard.asks(OffsetDelete("resets", {"clicks": (1,)}))
    follower.catch_up()
    committing.catch_up()
    assert told(follower, committing) == {"billing": ("consumer", "Empty")}
    clients.shard.asks(RemoveGroup("billing"))
    follower.catch_up()
    assert told(follower, committing) == {}
    assert changed.take() == {"billing", "resets"}
    clients.close()


def test_a_classic_group_that_waits_for_its_leader_is_told_of_in_kafkas_words(
    tmp_path: Path,
) -> None:
    clients, states = Clients(tmp_path), list[str]()
    follower = ShardFollower(clients.control, ChangedGroups())

    def look() -> None:
        follower.catch_up()
        states.append(state_of_clients(follower.groups["pay"]))

    (joined,) = clients.shard.asks(joining("pay"))
    assert isinstance(joined, JoinGroupReply)
    look()
    clients.shard.asks(SyncGroup("pay", joined.member_id, 1))
    look()
    clients.shard.asks(joining("pay"))  # the round that begins is in no log
    look()
    clients.shard.asks(joining("pay", joined.member_id))
    look()
    assert states == [COMPLETING, "Stable", "Stable", COMPLETING]
    clients.close()


def test_of_a_log_that_was_trimmed_meanwhile_what_is_left_counts(tmp_path: Path) -> None:
    clients = Clients(tmp_path)
    clients.commits("gone", "", -1, TopicOffset("clicks", 0, 1))
    clients.joins("billing", "app-1", "orders")
    changed = ChangedGroups()
    follower = ShardFollower(clients.control, changed)
    committing = CommittedGroups(clients.offsets, changed)
    clients.commits("resets", "", -1, TopicOffset("clicks", 1, 99))
    clients.shard.asks(OffsetDelete("gone", {"clicks": (0,)}))
    clients.goes("billing", "app-1")
    for log in (clients.shard.log, clients.shard.offsets):
        log.trim(log.end)
    follower.catch_up()
    committing.catch_up()
    assert told(follower, committing) == {
        "billing": ("consumer", "Empty"),
        "resets": ("connect", "Empty"),
    }
    left = ShardHistory(clients.control).catch_up()
    assert (left.knows("billing"), left.rebalances.by_cause) == (False, {})
    clients.close()


def test_a_shard_is_measured_by_type_and_not_by_group(recorded: Clients) -> None:
    rebalances = ShardHistory(recorded.control).catch_up().rebalances
    figures = figures_of(7, groups_of(recorded), rebalances, {})
    assert figures.number == 7
    assert {each: count for each, count in figures.states.items() if count} == {
        (GroupType.CONSUMER, GroupState.STABLE): 1,
        (GroupType.CLASSIC, GroupState.STABLE): 2,
        (GroupType.CLASSIC, GroupState.EMPTY): 1,
    }
    assert figures.members == {GroupType.CONSUMER: 1, GroupType.CLASSIC: 2}
    counted = figures.rebalances.items()
    of_consumers = {why: count for (kind, why), count in counted if kind is GroupType.CONSUMER}
    assert of_consumers == {
        Why.MEMBER_JOINED: 3,
        Why.SUBSCRIPTION_CHANGED: 1,
        Why.MEMBER_LEFT: 1,
        Why.SESSION_EXPIRED: 1,
        Why.GROUP_UPGRADED: 1,
    }
    assert figures.rebalances[GroupType.CLASSIC, Why.GROUP_DOWNGRADED] == 1
    assert figures.rebalances[GroupType.CLASSIC, Why.MEMBER_JOINED] == 3
