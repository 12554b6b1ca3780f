"""How old the last heartbeat of a classic worker is, and of one in a group of both protocols."""

from fairlead.actors.messages.classic import Leaver
from fairlead.actors.messages.errors import Error
from fairlead.events.model import GroupType
from fairlead_tests.translation.driver import MixedDriver

ALL_A, ALL_B = "A A-0 A-1 A-2", "B B-0 B-1"


def ages(driver: MixedDriver) -> dict[str, int]:
    return dict(driver.shard.describe_traffic(driver.now).heartbeat_ages)


def test_a_classic_worker_is_heard_by_each_of_its_calls(driver: MixedDriver) -> None:
    one, two = driver.pair(ALL_A, ALL_B)
    assert ages(driver) == {one: 0, two: 0}
    driver.passes(1_000)
    assert driver.classic_beat(one, 2) is Error.NONE
    assert ages(driver) == {one: 0, two: 1_000}
    driver.syncs(two, 2)
    driver.passes(500)
    assert driver.classic_beat(one, 1) is Error.ILLEGAL_GENERATION
    assert ages(driver) == {one: 500, two: 500}
    driver.reopen()
    assert ages(driver) == {}


def test_a_conversion_is_no_word_of_the_members_that_it_converts(driver: MixedDriver) -> None:
    one, two = driver.pair(ALL_A, ALL_B)
    driver.passes(1_000)
    began_ms = driver.now_ms
    driver.modern_joins("W1")
    late_ms = driver.now_ms - began_ms
    assert driver.group.type is GroupType.CONNECT
    assert (ages(driver)[one], ages(driver)[two]) == (1_000 + late_ms, 1_000 + late_ms)
    driver.classic_beat(one)
    assert (ages(driver)[one], ages(driver)[two]) == (0, 1_000 + late_ms)


def test_a_generation_without_a_member_forgets_it(driver: MixedDriver) -> None:
    one, two = driver.pair(ALL_A, ALL_B)
    driver.leaves(Leaver(two))
    driver.joins(one, ALL_A)
    assert ages(driver) == {one: 0}
    assert driver.shard.state.timers.members.heartbeat_ages([one, two], driver.now_ms) == {one: 0}
