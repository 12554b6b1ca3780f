"""A pattern stands for the topics that its member may describe, now and after each change."""

from dataclasses import replace
from pickle import dumps, loads

import pytest

from fairlead.actors.messages.consumers import ConsumerGroupHeartbeat, TopicRights
from fairlead_tests.consumer.driver import ConsumerDriver, topic

SECRET = frozenset({"t-secret"})
ALL = {"t4": topic("t4", 4), "t-secret": topic("t-secret", 2)}
MORE = {**ALL, "t-new": topic("t-new", 1), "t-secret-2": topic("t-secret-2", 1)}
ANN = TopicRights(prefixes=frozenset({"t"}), denied_prefixes=SECRET)


@pytest.fixture
def driver() -> ConsumerDriver:
    return ConsumerDriver(topics=ALL)


def matched(driver: ConsumerDriver, member_id: str) -> tuple[str, ...]:
    return driver.group.subscriptions[member_id].matched


def test_a_pattern_leaves_out_what_its_member_may_not_describe(driver: ConsumerDriver) -> None:
    driver.joins("A", subscribed_topic_regex="t.*", topic_rights=ANN)
    assert matched(driver, "A") == ("t4",)
    driver.sees(MORE)
    assert matched(driver, "A") == ("t-new", "t4")
    driver.joins("B", subscribed_topic_regex="t.*", topic_rights=TopicRights(names=SECRET))
    assert matched(driver, "B") == ("t-secret",)
    driver.joins("C", subscribed_topic_regex="t.*")
    assert matched(driver, "C") == ("t-new", "t-secret", "t-secret-2", "t4")


def test_other_rights_in_a_heartbeat_change_what_a_pattern_stands_for(
    driver: ConsumerDriver,
) -> None:
    driver.joins("A", "named", subscribed_topic_regex="t.*", topic_rights=ANN)
    epoch = driver.group.group_epoch
    driver.beats("A", topic_rights=ANN)
    assert driver.group.group_epoch == epoch
    driver.beats("A", topic_rights=TopicRights(names=SECRET))
    assert driver.group.group_epoch == epoch + 1
    (subscription,) = driver.group.subscriptions.values()
    assert (subscription.names, subscription.matched) == (("named",), ("t-secret",))


def test_after_a_restart_a_pattern_waits_for_the_rights_of_its_member(
    driver: ConsumerDriver,
) -> None:
    driver.joins("A", subscribed_topic_regex="t.*", topic_rights=ANN)
    driver.topics = MORE
    driver.open()
    assert matched(driver, "A") == ("t4",)
    driver.beats("A", topic_rights=ANN)
    assert matched(driver, "A") == ("t-new", "t4")


@pytest.mark.parametrize(
    ("rights", "visible"),
    [
        (TopicRights(), ()),
        (TopicRights(prefixes=frozenset({""})), ("a", "b-1", "b-2")),
        (TopicRights(frozenset({"a"}), denied_names=frozenset({"a"})), ()),
        (TopicRights(ruled_names=frozenset()), ("a", "b-1", "b-2")),
        (TopicRights(ruled_names=frozenset({"a"}), ruled_prefixes=frozenset({"b-2"})), ("b-1",)),
    ],
)
def test_rights_hold_names_and_prefixes(rights: TopicRights, visible: tuple[str, ...]) -> None:
    assert rights.filter(("a", "b-1", "b-2")) == visible


def test_equal_rights_of_many_members_are_one_object_in_the_process_of_their_group() -> None:
    requests = [
        ConsumerGroupHeartbeat("g", member, 1, topic_rights=replace(ANN)) for member in ("A", "B")
    ]
    first, second = (loads(dumps(each)).topic_rights for each in requests)
    assert first == ANN
    assert first is second
