"""What a broker of Kafka 4.3.0 was seen to answer, where no recorded conversation asks for it."""

from dataclasses import replace
from typing import Any

import pytest

from fairlead.actors.consumer.decide import SERVER_ASSIGNORS
from fairlead.actors.consumer.requests import refuse_request
from fairlead.actors.messages.classic import LeaveGroup, Leaver, SyncGroup
from fairlead.actors.messages.consumers import ConsumerGroupHeartbeat
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.offsets import OffsetCommit, OffsetDelete, OffsetFetch, TopicOffset
from fairlead.actors.shards.packets import with_number
from fairlead.events.model import GroupType
from fairlead_tests.consumer.classic import alone, joining
from fairlead_tests.consumer.driver import ConsumerDriver

COMMIT = (TopicOffset("t4", 1, 7),)


@pytest.fixture
def driver() -> ConsumerDriver:
    return ConsumerDriver()


@pytest.mark.parametrize(
    ("member_id", "instance_id", "error"),
    [
        ("A", None, Error.NONE),
        ("A", "one", Error.NONE),
        ("", "one", Error.NONE),
        ("B", "one", Error.FENCED_INSTANCE_ID),
        ("A", "two", Error.UNKNOWN_MEMBER_ID),
        ("B", None, Error.UNKNOWN_MEMBER_ID),
    ],
)
def test_operators_remove_a_consumer_by_either_of_its_ids(
    driver: ConsumerDriver, member_id: str, instance_id: str | None, error: Error
) -> None:
    driver.joins("A", "t4", instance_id="one")
    epoch = driver.group.group_epoch
    reply = driver.asks(LeaveGroup(driver.group_id, (Leaver(member_id, instance_id),)))
    assert [each.error for each in reply.leavers] == [error]
    is_gone = error is Error.NONE
    assert (driver.group.group_epoch, [*driver.group.members]) == (
        (epoch + 1, []) if is_gone else (epoch, ["A"])
    )


def test_the_classic_members_that_are_left_by_a_removed_consumer_are_a_classic_group(
    driver: ConsumerDriver,
) -> None:
    driver.joins("A", "t4")
    joined = driver.asks(joining())
    driver.asks(LeaveGroup(driver.group_id, (Leaver("A"),)))
    assert joined.error is Error.NONE
    assert (driver.group.members, driver.group.type) == ({}, GroupType.CLASSIC)


@pytest.mark.parametrize(
    ("member_id", "epoch", "error"),
    [
        (None, -1, Error.NONE),
        ("A", 2, Error.NONE),
        ("A", -1, Error.STALE_MEMBER_EPOCH),
        ("", -1, Error.UNKNOWN_MEMBER_ID),
        ("B", -1, Error.UNKNOWN_MEMBER_ID),
        (None, 2, Error.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_names_a_member_or_an_epoch_fetches_as_that_member(
    driver: ConsumerDriver, member_id: str | None, epoch: int, error: Error
) -> None:
    driver.joins("A", "t4")
    reply = driver.asks(OffsetFetch(driver.group_id, None, member_id, epoch))
    assert reply.error is error


@pytest.mark.parametrize(
    ("knows_epochs", "error"),
    [(True, Error.GROUP_ID_NOT_FOUND), (False, Error.ILLEGAL_GENERATION)],
)
def test_a_member_of_no_group_commits_nothing(
    driver: ConsumerDriver, *, knows_epochs: bool, error: Error
) -> None:
    commit = OffsetCommit(driver.group_id, COMMIT, "A", 1, knows_epochs=knows_epochs)
    assert [each.error for each in driver.asks(commit).verdicts] == [error]
    driver.asks(OffsetCommit(driver.group_id, COMMIT))
    assert [each.error for each in driver.asks(commit).verdicts] == [Error.UNKNOWN_MEMBER_ID]


def test_a_consumer_commits_with_member_epochs_alone(driver: ConsumerDriver) -> None:
    epoch = driver.joins("A", "t4").member_epoch
    classic = driver.asks(joining())
    told = [
        driver.asks(OffsetCommit(driver.group_id, COMMIT, who, at, knows_epochs=False)).error
        for who, at in (("A", epoch), (classic.member_id, classic.generation), ("B", epoch))
    ]
    assert told == [Error.UNSUPPORTED_VERSION, Error.NONE, Error.UNKNOWN_MEMBER_ID]


def test_a_member_that_has_gone_fetches_no_offsets_of_its_empty_group(
    driver: ConsumerDriver,
) -> None:
    fetch = OffsetFetch(driver.group_id, None, "A", 2)
    before = driver.asks(fetch).error
    driver.joins("A", "t4")
    driver.beats("A", -1)
    told = before, driver.asks(fetch).error, driver.asks(OffsetFetch(driver.group_id)).error
    assert told == (Error.NONE, Error.UNKNOWN_MEMBER_ID, Error.NONE)


@pytest.mark.parametrize("is_empty", [False, True])
@pytest.mark.parametrize("epoch", [-2, -1, 1])
def test_a_classic_group_is_no_group_for_a_consumer_that_does_not_join_it(
    driver: ConsumerDriver, *, epoch: int, is_empty: bool
) -> None:
    member_id = alone(driver)
    if is_empty:
        driver.asks(LeaveGroup(driver.group_id, (Leaver(member_id),)))
    told = driver.beats("A", epoch, instance_id="one")
    assert (told.error, driver.group.type) == (Error.GROUP_ID_NOT_FOUND, GroupType.CLASSIC)


def test_a_classic_consumer_comes_to_a_group_of_consumers_with_any_id(
    driver: ConsumerDriver,
) -> None:
    driver.joins("A", "t4")
    told = driver.asks(joining("of before", asks_for_id=True))
    assert (told.error, told.member_id) == (Error.NONE, "of before")
    assert driver.group.members.keys() == {"A", "of before"}


def test_a_consumer_without_an_instance_id_joins_again_with_one(driver: ConsumerDriver) -> None:
    driver.joins("A", "t4")
    driver.joins("B", "t4", instance_id="of B")
    taken = [driver.joins("A", "t4", instance_id=each).error for each in ("of B", "of A", "new")]
    assert taken == [Error.UNRELEASED_INSTANCE_ID, Error.NONE, Error.INVALID_REQUEST]
    assert driver.group.instances == {"of A": "A", "of B": "B"}


def test_a_consumer_leaves_its_seat_before_it_takes_that_of_another(driver: ConsumerDriver) -> None:
    driver.joins("A", "t4", instance_id="of A")
    driver.joins("B", "t4")
    driver.beats("A", -2, instance_id="of A")
    classic: str = driver.asks(joining("", instance_id="of C")).member_id
    taken = [driver.joins("B", "t4", instance_id=each).error for each in ("of A", "of C")]
    assert taken == [Error.INVALID_REQUEST] * 2
    assert driver.group.instances == {"of A": "A", "of C": classic}


def test_a_commit_is_told_of_topics_that_are_not_there_whatever_the_group_says(
    driver: ConsumerDriver,
) -> None:
    driver.joins("A", "t4")
    offsets = TopicOffset("t4", 1, 7), TopicOffset("nobody", 0, 7), TopicOffset("t4", 4, 7)
    unknown = Error.UNKNOWN_TOPIC_OR_PARTITION
    told = driver.asks(OffsetCommit(driver.group_id, offsets, "B", 1)).verdicts
    assert [(each.topic, each.partition, each.error) for each in told] == [
        ("nobody", 0, unknown),
        ("t4", 4, unknown),
        ("t4", 1, Error.UNKNOWN_MEMBER_ID),
    ]


@pytest.mark.parametrize("places", [{"nobody": (0,)}, {"t4": (4,)}, {"nobody": (0,), "t4": (1,)}])
def test_of_a_group_that_is_not_there_nothing_is_deleted_whatever_topics_are_named(
    driver: ConsumerDriver, places: dict[str, tuple[int, ...]]
) -> None:
    told = driver.asks(OffsetDelete("g", places))
    assert (told.error, told.verdicts) == (Error.GROUP_ID_NOT_FOUND, ())


def test_a_classic_consumer_keeps_its_rack_in_a_group_of_consumers(driver: ConsumerDriver) -> None:
    one: str = driver.asks(joining(rack="a")).member_id
    driver.joins("A", "t4", rack_id="b")
    two: str = driver.asks(joining(rack="c")).member_id
    racks = {each: member.metadata.rack for each, member in driver.group.members.items()}
    assert racks == {one: "a", "A": "b", two: "c"}
    driver.asks(joining(two, rack="d"))
    assert driver.group.members[two].metadata.rack == "d"


@pytest.mark.parametrize("offset", [-1, -5, -(1 << 63) + 1])
def test_a_negative_offset_is_committed(driver: ConsumerDriver, offset: int) -> None:
    committed = TopicOffset("t4", 1, offset, metadata="")
    told = driver.asks(OffsetCommit(driver.group_id, (committed,)))
    assert [each.error for each in told.verdicts] == [Error.NONE]
    driver.open()
    assert driver.asks(OffsetFetch(driver.group_id)).offsets == (committed,)


def test_offsets_of_what_is_not_there_are_not_deleted(driver: ConsumerDriver) -> None:
    driver.asks(OffsetCommit(driver.group_id, COMMIT))
    places = {"t4": (1, 4), "nobody": (0,), "\udc80": (0,)}
    told = driver.asks(OffsetDelete(driver.group_id, places))
    assert [each.error for each in told.verdicts] == [
        *([Error.UNKNOWN_TOPIC_OR_PARTITION] * 3),
        Error.NONE,
    ]


def test_a_commit_is_the_same_with_its_number() -> None:
    commit = OffsetCommit("g", COMMIT, "A", 1, knows_epochs=True)
    assert with_number(commit, 7) == replace(commit, number=7)


def test_a_group_id_of_blanks_is_empty() -> None:
    join = ConsumerGroupHeartbeat(" ", "A", 0, rebalance_timeout_ms=1, topic_partitions={})
    told = refuse_request(replace(join, subscribed_topic_names=("t4",)), SERVER_ASSIGNORS)
    assert told == (Error.INVALID_REQUEST, "GroupId is empty: name the group; nothing was changed")


def test_the_only_member_of_a_group_keeps_its_protocol_type(driver: ConsumerDriver) -> None:
    again = joining(driver.asks(joining()).member_id)
    told = driver.asks(replace(again, protocol_type="other"))
    assert told.error is Error.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("is_mixed", [False, True])
def test_the_only_classic_member_of_a_group_keeps_one_of_its_protocols(
    driver: ConsumerDriver, *, is_mixed: bool
) -> None:
    if is_mixed:
        driver.joins("A", "t4")
    again = joining(driver.asks(joining()).member_id)
    (offered,) = again.protocols
    other = replace(offered, name="range")
    told = [
        driver.asks(replace(again, protocols=protocols)).error
        for protocols in ((other,), (other, offered), (other,))
    ]
    assert told == [Error.INCONSISTENT_GROUP_PROTOCOL, Error.NONE, Error.NONE]


@pytest.mark.parametrize(
    ("protocol_type", "protocol"), [("", "cooperative-sticky"), ("consumer", "")]
)
def test_an_assignment_is_asked_for_with_the_protocol_that_it_is_in(
    driver: ConsumerDriver, protocol_type: str, protocol: str
) -> None:
    told = driver.asks(joining())
    call = SyncGroup(driver.group_id, told.member_id, 1, None, protocol_type, protocol, {})
    assert driver.asks(call).error is Error.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"session_timeout_ms": 1}, (Error.INVALID_SESSION_TIMEOUT, "C")),
        ({"protocol_type": "connect"}, (Error.INCONSISTENT_GROUP_PROTOCOL, "")),
        ({"instance_id": "one"}, (Error.FENCED_INSTANCE_ID, "")),
    ],
)
def test_a_group_of_consumers_names_no_classic_member_that_it_refuses(
    driver: ConsumerDriver, change: dict[str, Any], refusal: tuple[Error, str]
) -> None:
    driver.joins("A", "t4", instance_id="one")
    told = driver.asks(replace(joining("C"), **change))
    assert (told.error, told.member_id) == refusal
