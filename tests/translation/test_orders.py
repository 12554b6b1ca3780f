"""What operators order of classic members of a mixed group, and returns that end other seats."""

import pytest

from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.orders import RemoveMember, SetPlacement
from fairlead.events.model import Cause, GroupType, Why
from fairlead.events.records import GroupMetadata
from fairlead_tests.decider import resource
from fairlead_tests.translation.driver import CLASSIC_SESSION_MS, MixedDriver

ALL_A, ALL_B = "A A-0 A-1 A-2", "B B-0 B-1"


def test_a_classic_member_that_is_removed_by_force_is_answered_no_more_and_goes_with_its_session(
    driver: MixedDriver,
) -> None:
    one, _ = driver.pair(ALL_A, ALL_B)
    driver.modern_joins("W1")
    generation = driver.group.members[one].current.member_epoch
    assert driver.classic_beat(one) is Error.REBALANCE_IN_PROGRESS
    driver.send(RemoveMember("connect", one, force=True, principal="ann"))
    for _ in range(CLASSIC_SESSION_MS // 2_000 - 1):
        driver.lives("W1", 2_000)
        said = len(driver.said)
        driver.call(driver.join_call(one, ALL_A))
        assert len(driver.said) == said, "it hears nothing, so it fences itself"
    assert one in driver.group.members, "it may still run what it had"
    assert driver.group.members[one].current.member_epoch == generation
    driver.lives("W1", 2_000)
    assert one not in driver.group.members
    bumps = [each for each in driver.records if isinstance(each, GroupMetadata)]
    assert [each.cause.why for each in bumps if each.actor == "ann"] == [Why.MEMBER_REMOVED]
    assert driver.group.losses == {}, "nobody expects it back"


def test_an_order_to_remove_a_member_ends_when_another_process_takes_its_seat(
    driver: MixedDriver,
) -> None:
    one = driver.joins(instance_id="i", url="http://i/").member_id
    driver.syncs(one, 1, instance_id="i")
    driver.modern_joins("W1")
    driver.send(RemoveMember("connect", "i"))
    assert driver.group.worker_orders["i"].removing == one
    taken = driver.joins(instance_id="i", url="http://i/")
    assert (taken.error, driver.group.worker_orders) == (Error.NONE, {})
    driver.send(RemoveMember("connect", "i"))
    assert driver.group.worker_orders["i"].removing == taken.member_id
    assert driver.modern_joins("W2", instance_id="i").error is Error.NONE
    assert driver.group.worker_orders == {}


@pytest.mark.parametrize("is_classic", [True, False], ids=["classic", "connect"])
def test_who_takes_a_seat_over_whose_member_was_drained_to_be_removed_is_given_work(
    driver: MixedDriver, *, is_classic: bool
) -> None:
    one = driver.joins(instance_id="i", url="http://i/").member_id
    driver.syncs(one, 1, instance_id="i")
    driver.modern_joins("W1")
    assert driver.group.share_of(one)
    driver.send(RemoveMember("connect", "i"))
    assert driver.group.share_of(one) == frozenset()
    if is_classic:
        taken = driver.joins(instance_id="i", url="http://i/").member_id
    else:
        taken = driver.modern_joins("W2", instance_id="i", url="http://i/").member_id
    assert driver.group.instances == {"i": taken}
    assert len(driver.group.share_of(taken)) == len(driver.group.configured) // 2


def test_a_downgrade_ends_the_orders_to_remove_its_members_which_would_strike_after_an_upgrade(
    driver: MixedDriver,
) -> None:
    one, two = driver.pair(ALL_A, ALL_B)
    driver.modern_joins("W1")
    driver.send(RemoveMember("connect", one, force=True))
    driver.send(RemoveMember("connect", two))
    driver.heartbeat_reply(driver.request("W1", -1))
    assert (driver.group.type, driver.group.worker_orders) == (GroupType.CLASSIC, {})
    driver.modern_joins("W2")
    assert driver.classic_beat(one) is Error.REBALANCE_IN_PROGRESS


def test_a_classic_return_that_ends_another_seat_has_its_work_placed_anew(
    driver: MixedDriver,
) -> None:
    driver.modern_joins("W1")
    for member, instance in (("S1", "i"), ("S2", "j")):
        driver.modern_joins(member, instance_id=instance, url=f"http://{instance}/")
    for _ in range(6):
        for member in ("W1", "S1", "S2"):
            driver.beats(member)
    kept = driver.group.share_of("S2")
    for member, instance in (("S1", "i"), ("S2", "j")):
        driver.asks(driver.request(member, -2, instance_id=instance, owned=()))
    epoch = driver.group.group_epoch
    driver.joins(instance_id="i", url="http://j/")
    assert "S2" not in driver.group.members, "its worker is another seat's now"
    assert (driver.group.group_epoch, driver.group.assignment_epoch) == (epoch + 1, epoch + 1)
    assert kept, "or nothing is shown"
    assert kept <= driver.group.target_owner.keys()


def test_a_classic_return_is_a_reason_to_place_what_nobody_could_run(driver: MixedDriver) -> None:
    driver.modern_joins("W1")
    driver.modern_joins("S1", instance_id="i")
    driver.asks(driver.request("S1", -2, instance_id="i", owned=()))
    driver.send(SetPlacement("connect", resource("A-0"), pins=("S1",)))
    assert driver.group.target.unplaceable.keys() == {resource("A-0")}
    reply = driver.joins(instance_id="i", url="http://S1")
    assert driver.group.bump is not None
    assert driver.group.bump.cause == Cause(Why.MEMBER_JOINED, "http://S1")
    assert driver.group.target_owner[resource("A-0")] == reply.member_id
