"""The group tells how old the last heartbeat of each worker is, at no record (PROTOCOL §8)."""

from dataclasses import replace

from fairlead_tests.coordination.driver import (
    HEARTBEAT_MS,
    SESSION_MS,
    CoordinatorDriver,
)


def ages(driver: CoordinatorDriver) -> dict[str, int]:
    return dict(driver.coordinator.describe_traffic(driver.now).heartbeat_ages)


def joins(driver: CoordinatorDriver, instance_id: str | None = None) -> None:
    """Have `a` in the group, with a heartbeat that is held."""
    driver.asks(replace(driver.joining("a"), instance_id=instance_id))
    driver.compute("a")
    driver.asks(replace(driver.joining("a"), instance_id=instance_id))
    driver.beat("a")
    assert driver.coordinator.traffic().held == 1


def test_a_heartbeat_that_is_held_counts_from_its_arrival(driver: CoordinatorDriver) -> None:
    joins(driver)
    assert ages(driver) == {"a": 0}
    driver.passes(HEARTBEAT_MS - 1)
    assert ages(driver) == {"a": HEARTBEAT_MS - 1}
    (answer,) = driver.passes(1)
    assert (answer.to, ages(driver)) == ("a", {"a": HEARTBEAT_MS}), "the answer is no word of it"
    driver.passes(5)
    assert driver.beat("a") == []
    assert ages(driver) == {"a": 0}


def test_what_is_decided_again_for_others_makes_no_heartbeat_newer(
    driver: CoordinatorDriver,
) -> None:
    joins(driver)
    driver.passes(700)
    driver.asks(driver.joining("b"))
    assert ages(driver) == {"a": 700, "b": 0}


def test_the_question_writes_nothing_and_names_the_interval(driver: CoordinatorDriver) -> None:
    joins(driver)
    before = driver.control.end, driver.coordinator.traffic()
    told = driver.coordinator.describe_traffic(driver.now)
    assert (told.heartbeats, told.heartbeat_interval_ms) == (before[1].heartbeats, HEARTBEAT_MS)
    assert driver.flush() == []
    assert (driver.control.end, driver.coordinator.traffic()) == before


def test_a_refused_heartbeat_is_no_word_of_its_member(driver: CoordinatorDriver) -> None:
    joins(driver)
    driver.passes(500)
    driver.asks(driver.request("a", 999))
    assert ages(driver) == {"a": 500}


def test_nothing_is_told_of_a_member_that_this_process_has_not_heard_of(
    driver: CoordinatorDriver,
) -> None:
    joins(driver)
    driver.open()
    driver.passes(100)
    assert (set(driver.group.members), ages(driver)) == ({"a"}, {})
    driver.asks(driver.joining("a"))
    assert ages(driver) == {"a": 0}


def test_nothing_is_told_of_a_member_that_is_away_or_gone(driver: CoordinatorDriver) -> None:
    joins(driver, instance_id="i")
    driver.asks(driver.request("a", -2, instance_id="i"))
    assert (set(driver.group.members), ages(driver)) == ({"a"}, {})
    driver.asks(driver.joining("b"))
    driver.passes(SESSION_MS)
    assert ages(driver) == {}


def test_time_for_which_the_process_was_held_up_makes_no_heartbeat_older_than_it_is(
    driver: CoordinatorDriver,
) -> None:
    joins(driver)
    driver.passes(400)
    driver.coordinator.extend_timers(1_000)
    driver.asks(driver.joining("b"))
    assert ages(driver)["a"] in range(401), "it may count as later, and never as to come"
