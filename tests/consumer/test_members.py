"""Consumers join, subscribe, move on and go, by KIP-848 and as Kafka's broker does it."""

from collections.abc import Callable
from typing import Any

import pytest

from fairlead.actors.messages.classic import JoinGroup, LeaveGroup, Leaver
from fairlead.actors.messages.commands import CommandReply
from fairlead.actors.messages.consumers import ConsumerGroupHeartbeat, ConsumerGroupHeartbeatReply
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.orders import DeleteGroup
from fairlead.events.entries.codec import restore
from fairlead.events.group import Group
from fairlead.events.log.space import DiskSpace
from fairlead.events.model import Cause, ClassicProtocol, GroupState, GroupType, MemberState, Why
from fairlead.events.records import Topic
from fairlead_tests.consumer.driver import SESSION_MS, ConsumerDriver, topic

ALL = {"t4": topic("t4", 4), "u2": topic("u2", 2)}


def shares(group: Group) -> dict[str, str]:
    """What each member is to have."""
    return {each: " ".join(map(str, sorted(share))) for each, share in group.target_of.items()}


@pytest.fixture
def driver() -> ConsumerDriver:
    return ConsumerDriver(topics=ALL)


def causes(driver: ConsumerDriver) -> Cause:
    assert driver.group.bump is not None
    return driver.group.bump.cause


def test_a_group_begins_at_epoch_1_and_its_first_subscription_is_epoch_2(
    driver: ConsumerDriver,
) -> None:
    other = ConsumerDriver()
    assert other.joins("A").member_epoch == 1
    told = driver.joins("A", "t4")
    assert (told.member_epoch, told.assignment) == (2, {"t4#0": (0, 1, 2, 3)})
    assert (driver.group.type, driver.group.state) == (GroupType.CONSUMER, GroupState.STABLE)


def test_who_subscribes_to_nothing_moves_nobody(driver: ConsumerDriver) -> None:
    driver.joins("A", "t4")
    told = driver.joins("B")
    assert (told.member_epoch, told.assignment) == (2, {})
    assert driver.holds() == {"A": "t4-0 t4-1 t4-2 t4-3", "B": ""}


def test_a_subscription_that_changes_raises_the_epoch_and_moves_what_it_must(
    driver: ConsumerDriver,
) -> None:
    driver.joins("A", "t4", "u2")
    driver.joins("B", "t4", "u2")
    driver.settles()
    epoch = driver.group.group_epoch
    driver.beats("B", subscribed_topic_names=("u2",))
    assert causes(driver) == Cause(Why.SUBSCRIPTION_CHANGED, "B")
    driver.settles()
    assert driver.group.group_epoch == epoch + 1
    assert driver.holds() == {"A": "t4-0 t4-1 t4-2 t4-3", "B": "u2-0 u2-1"}
    driver.beats("B", subscribed_topic_names=("u2", "u2"))
    assert driver.group.group_epoch == epoch + 1, "it said that before"


def test_a_pattern_stands_for_the_topics_that_there_are_at_any_time(
    driver: ConsumerDriver,
) -> None:
    driver.joins("A", "u2", subscribed_topic_regex="t.*")
    assert driver.holds() == {"A": "t4-0 t4-1 t4-2 t4-3 u2-0 u2-1"}
    driver.sees({**ALL, "tt": topic("tt", 1), "xt": topic("xt", 1)})
    assert causes(driver) == Cause(Why.TOPICS_CHANGED, "tt")
    driver.settles()
    assert driver.holds() == {"A": "t4-0 t4-1 t4-2 t4-3 tt-0 u2-0 u2-1"}
    driver.beats("A", subscribed_topic_regex="")
    driver.settles()
    assert driver.holds() == {"A": "u2-0 u2-1"}


@pytest.mark.parametrize("pattern", ["(", "(?=t)", r"(a)\1", "a" * 1_001, "\udc80"])
def test_what_is_no_pattern_of_re2_is_refused(driver: ConsumerDriver, pattern: str) -> None:
    told = driver.joins("A", subscribed_topic_regex=pattern)
    assert told.error is Error.INVALID_REGULAR_EXPRESSION
    assert told.message is not None
    assert "RE2" in told.message
    assert driver.group.members == {}


def test_a_pattern_takes_no_more_time_than_its_names_are_long(driver: ConsumerDriver) -> None:
    driver.sees({"a" * 200 + "!": topic("a", 1)})
    assert driver.joins("A", subscribed_topic_regex="(a|aa|a*)*$").assignment == {}


def test_more_partitions_are_shared_out_and_the_cause_is_told(driver: ConsumerDriver) -> None:
    driver.joins("A", "t4")
    driver.sees({**ALL, "t4": Topic("t4#0", 6)})
    assert causes(driver) == Cause(Why.TOPICS_CHANGED, "t4")
    assert driver.beats("A").assignment == {"t4#0": (0, 1, 2, 3, 4, 5)}
    epoch = driver.group.group_epoch
    driver.sees({**ALL, "t4": Topic("t4#0", 6), "other": topic("other", 3)})
    assert driver.group.group_epoch == epoch, "nobody subscribes to it"


def test_a_deleted_topic_is_given_up_by_its_id_and_forgotten_then(driver: ConsumerDriver) -> None:
    driver.joins("A", "t4", "u2")
    driver.sees({"u2": ALL["u2"]})
    assert driver.beats("A").assignment == {"u2#0": (0, 1)}
    assert driver.group.members["A"].current.state is MemberState.UNREVOKED
    driver.beats("A", topic_partitions={"u2#0": (0, 1), "t4#0": (1,)})
    assert driver.group.members["A"].current.state is MemberState.UNREVOKED
    driver.settles()
    assert driver.holds() == {"A": "u2-0 u2-1"}
    driver.joins("B", "u2")
    assert driver.group.topics == {"u2": ALL["u2"]}


def test_a_deleted_topic_is_not_shared_out_by_a_process_that_knows_no_topics_yet(
    driver: ConsumerDriver,
) -> None:
    driver.joins("A", "t4", "u2")
    driver.sees({"u2": ALL["u2"]})
    driver.open(is_told=False)
    driver.joins("B", "t4", "u2")
    assert driver.group.topics is not None
    assert driver.group.topics["t4"].is_released
    assert not driver.group.topics["u2"].is_released
    driver.sees(ALL)
    assert driver.group.topics == ALL


def test_of_a_topic_created_anew_nothing_is_assigned_before_the_old_one_is_given_up(
    driver: ConsumerDriver,
) -> None:
    driver.joins("A", "t4")
    driver.sees({"t4": topic("t4", 4, life=1)})
    assert driver.beats("A").assignment == {}
    driver.acknowledges("A")
    driver.settles()
    told = driver.beats(
        "A", rebalance_timeout_ms=9, subscribed_topic_names=("t4",), topic_partitions={}
    )
    assert told.assignment == {"t4#1": (0, 1, 2, 3)}


def test_what_an_earlier_process_knew_of_topics_is_in_the_log(driver: ConsumerDriver) -> None:
    driver.joins("A", "t4")
    told = driver.group
    entries = driver.control.entries
    group: Group = restore("g", entries, len(entries))
    assert (group.topics, group.configured) == (told.topics, told.configured)
    assert group.subscriptions == told.subscriptions


def test_a_member_goes_on_at_its_epoch_when_the_coordinator_is_another_process(
    driver: ConsumerDriver,
) -> None:
    driver.joins("A", "t4")
    driver.joins("B", "t4")
    driver.open()
    assert driver.beats("A").assignment == {"t4#0": (0, 1)}
    driver.open()
    driver.settles()
    assert driver.holds() == {"A": "t4-0 t4-1", "B": "t4-2 t4-3"}


def test_a_silent_member_goes_with_its_subscription_and_what_only_it_read(
    driver: ConsumerDriver,
) -> None:
    driver.joins("A", "t4")
    driver.joins("B", "u2")
    driver.passes(SESSION_MS - 1)
    driver.beats("A")
    driver.passes(1)
    assert causes(driver) == Cause(Why.SESSION_EXPIRED, "B")
    assert driver.group.subscriptions.keys() == {"A"}
    assert driver.group.topics == {"t4": ALL["t4"]}
    assert driver.beats("B", 3).error is Error.UNKNOWN_MEMBER_ID


def test_who_does_not_give_up_within_its_rebalance_timeout_is_fenced(
    driver: ConsumerDriver,
) -> None:
    driver.joins("A", "t4", rebalance_timeout_ms=5_000)
    driver.joins("B", "t4")
    for _ in range(5):
        driver.beats("A")
        driver.beats("B")
        driver.passes(1_000)
    assert causes(driver) == Cause(Why.REBALANCE_EXPIRED, "A")
    assert driver.beats("A", 2).error is Error.UNKNOWN_MEMBER_ID
    driver.settles()
    assert driver.holds() == {"B": "t4-0 t4-1 t4-2 t4-3"}


def test_a_static_seat_is_kept_for_a_session_and_taken_under_another_id(
    driver: ConsumerDriver,
) -> None:
    driver.joins("A", "t4", instance_id="i")
    assert driver.joins("B", "t4", instance_id="i").error is Error.UNRELEASED_INSTANCE_ID
    driver.beats("A", -2, instance_id="i")
    told = driver.joins("B", "t4", instance_id="i")
    assert (told.member_epoch, told.assignment) == (2, {"t4#0": (0, 1, 2, 3)})
    assert driver.beats("A", 2, instance_id="i").error is Error.FENCED_INSTANCE_ID
    assert driver.beats("C", 2, instance_id="j").error is Error.UNKNOWN_MEMBER_ID
    driver.beats("B", -2, instance_id="i")
    driver.passes(SESSION_MS)
    assert driver.group.state is GroupState.EMPTY


def test_a_member_id_that_moves_to_another_seat_keeps_the_share_of_that_seat(
    driver: ConsumerDriver,
) -> None:
    for member_id, seat in (("A", "i"), ("B", "j")):
        driver.joins(member_id, "t4", instance_id=seat)
    driver.settles()
    for member_id, seat in (("A", "i"), ("B", "j")):
        driver.beats(member_id, -2, instance_id=seat)
    for member_id, seat in (("C", "i"), ("A", "j")):
        driver.joins(member_id, "t4", instance_id=seat)
    given = {"C": "t4-0 t4-1", "A": "t4-2 t4-3"}
    assert shares(driver.group) == given
    driver.beats("C", instance_id="i", rack_id="another")
    assert shares(driver.group) == given
    entries = driver.control.entries
    assert shares(restore("g", entries, len(entries))) == given


def test_a_static_member_that_comes_back_with_another_subscription_gets_another_share(
    driver: ConsumerDriver,
) -> None:
    driver.joins("A", "t4", instance_id="i")
    driver.beats("A", -2, instance_id="i")
    assert driver.joins("B", "u2", instance_id="i").assignment == {"u2#0": (0, 1)}
    assert driver.group.subscriptions.keys() == {"B"}


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"rebalance_timeout_ms": -1}, Error.INVALID_REQUEST),
        ({"topic_partitions": None}, Error.INVALID_REQUEST),
        ({"subscribed_topic_names": ("",)}, Error.INVALID_REQUEST),
        ({"subscribed_topic_names": ("t\0",)}, Error.INVALID_REQUEST),
        ({"subscribed_topic_names": ("x" * 250,)}, Error.INVALID_REQUEST),
        ({"subscribed_topic_names": tuple(map(str, range(10_001)))}, Error.INVALID_REQUEST),
        ({"rack_id": ""}, Error.INVALID_REQUEST),
        ({"instance_id": "\udc80"}, Error.INVALID_REQUEST),
        ({"server_assignor": "mine"}, Error.UNSUPPORTED_ASSIGNOR),
    ],
)
def test_a_join_that_is_none_is_refused_and_changes_nothing(
    driver: ConsumerDriver, said: dict[str, Any], error: Error
) -> None:
    told = driver.joins("A", "t4", **said)
    assert (told.error, told.member_id, driver.group.members) == (error, None, {})
    assert told.message


def test_a_group_that_is_full_takes_in_nobody() -> None:
    driver = ConsumerDriver()
    driver.settings = type(driver.settings)(max_size=1)
    driver.open()
    driver.joins("A", "t4")
    assert driver.joins("B", "t4").error is Error.GROUP_MAX_SIZE_REACHED


def test_while_the_disk_is_full_a_consumer_is_asked_to_try_again(
    driver: ConsumerDriver, tmp_path: Any
) -> None:
    driver.shard.set_disk_space(DiskSpace(tmp_path, 0), driver.now)
    told = driver.joins("A", "t4")
    assert (told.error, driver.group.members) == (Error.COORDINATOR_NOT_AVAILABLE, {})


def classic_join(driver: ConsumerDriver) -> Any:
    offer = ClassicProtocol("range", bytes.fromhex("000000000001000274340000000000"))
    return driver.asks(JoinGroup("g", "", "game", (offer,), SESSION_MS, 20_000, asks_for_id=False))


def test_an_empty_group_is_taken_over_by_members_of_the_other_protocol(
    driver: ConsumerDriver,
) -> None:
    driver.joins("A", "t4")
    assert classic_join(driver).error is Error.INCONSISTENT_GROUP_PROTOCOL
    driver.beats("A", -1)
    joined = classic_join(driver)
    assert (joined.error, joined.generation) == (Error.NONE, 4)
    assert (driver.group.type, driver.group.configured) == (GroupType.CLASSIC, frozenset())
    assert driver.joins("B", "t4").error is Error.GROUP_ID_NOT_FOUND
    driver.asks(LeaveGroup("g", (Leaver(joined.member_id),)))
    assert driver.joins("B", "t4").member_epoch == 6
    assert driver.group.type is GroupType.CONSUMER
    driver.open()
    assert (driver.group.type, driver.group.group_epoch) == (GroupType.CONSUMER, 6)


def test_an_empty_group_is_deleted_and_its_next_life_counts_on(driver: ConsumerDriver) -> None:
    driver.joins("A", "t4")
    for error in (Error.NON_EMPTY_GROUP, Error.NONE):
        told = driver.asks_plain(DeleteGroup("g"))
        assert isinstance(told, CommandReply)
        assert told.error is error
        driver.beats("A", -1)
    assert driver.group.state is GroupState.DEAD
    assert driver.joins("A", "t4").member_epoch == 4


def test_whoever_asks_for_a_group_that_is_not_there_is_told_so() -> None:
    assert ConsumerDriver().beats("A", 3).error is Error.GROUP_ID_NOT_FOUND


SAID: list[Callable[[], ConsumerGroupHeartbeat]] = [
    lambda: ConsumerGroupHeartbeat("other", "A", 0, None, None, 9, ("t4",), topic_partitions={}),
    lambda: ConsumerGroupHeartbeat("g", "A" * 300, 0, None, None, 9, (), topic_partitions={}),
    lambda: ConsumerGroupHeartbeat("g", "A", 1 << 70),
    lambda: ConsumerGroupHeartbeat("g", "A", 2, topic_partitions={"t4#0": (-9, 1 << 40)}),
    lambda: ConsumerGroupHeartbeat("g", "A", 2, topic_partitions={"x": (1, 1)}),
]


@pytest.mark.parametrize("said", SAID)
def test_hostile_values_are_answered_by_an_error_and_change_nothing(
    driver: ConsumerDriver, said: Callable[[], ConsumerGroupHeartbeat]
) -> None:
    driver.joins("A", "t4")
    end = driver.group.end
    told = driver.asks(said())
    assert isinstance(told, ConsumerGroupHeartbeatReply)
    assert (told.error is not Error.NONE, driver.group.end) == (True, end)


def test_the_server_assignor_is_the_one_that_most_members_name() -> None:
    driver = ConsumerDriver(topics={"a": topic("a", 3), "c": topic("c", 3)})
    driver.joins("A", "a", "c", server_assignor="range")
    driver.joins("B", "a", "c", server_assignor="range")
    driver.settles()
    assert driver.group.target.assignor == "range"
    assert driver.holds() == {"A": "a-0 a-1 c-0 c-1", "B": "a-2 c-2"}
