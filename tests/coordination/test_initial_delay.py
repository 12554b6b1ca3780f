"""An empty connect group may wait for more members before its first target (KIP-134)."""

from dataclasses import replace

import pytest

from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import LEAVE_EPOCH, Heartbeat
from fairlead.actors.messages.orders import ConfigureGroup
from fairlead_tests.coordination.driver import REBALANCE_MS, CoordinatorDriver, told

DELAY = "connect.initial.rebalance.delay.ms"
ASKED = Error.COMPUTE_ASSIGNMENT.value


@pytest.fixture
def driver(driver: CoordinatorDriver) -> CoordinatorDriver:
    """A group that waits three seconds."""
    driver.settings = replace(driver.settings, connect_initial_delay_ms=3_000)
    driver.open()
    driver.put("A")
    return driver


def joining(driver: CoordinatorDriver, member: str) -> Heartbeat:
    """The join of a member for which the coordinator computes."""
    return replace(driver.joining(member), assignors=None, server_assignor="uniform")


def targets(driver: CoordinatorDriver) -> int:
    """For which epoch the group has a target."""
    return driver.group.assignment_epoch


def test_the_first_target_of_an_empty_group_is_made_once_for_all_that_join_in_time(
    driver: CoordinatorDriver,
) -> None:
    for member in "abc":
        driver.asks(joining(driver, member))
        driver.passes(2_999)
    assert (driver.group.group_epoch, targets(driver)) == (3, 0)
    driver.passes(1)
    assert (set(driver.group.target.members), targets(driver)) == ({"a", "b", "c"}, 3)


def test_newcomers_put_it_off_for_a_rebalance_timeout_at_most(driver: CoordinatorDriver) -> None:
    driver.send(ConfigureGroup("connect", {"session.timeout.ms": str(REBALANCE_MS)}))
    for member in range(REBALANCE_MS // 2_000):
        driver.asks(joining(driver, f"m{member}"))
        driver.passes(1_999)
        assert targets(driver) == 0
        driver.passes(1)
    assert targets(driver) == driver.group.group_epoch


def test_who_asks_again_and_what_else_changes_puts_nothing_off(driver: CoordinatorDriver) -> None:
    driver.asks(joining(driver, "a"))
    driver.passes(2_000)
    driver.asks(joining(driver, "a"))
    driver.put("B")
    driver.passes(1_000)
    assert targets(driver) == driver.group.group_epoch


def test_a_group_that_has_a_member_waits_for_nobody(driver: CoordinatorDriver) -> None:
    driver.asks(joining(driver, "a"))
    driver.passes(3_000)
    driver.asks(joining(driver, "b"))
    assert targets(driver) == driver.group.group_epoch


def test_one_that_was_left_while_it_waited_waits_anew(driver: CoordinatorDriver) -> None:
    driver.asks(joining(driver, "a"))
    driver.passes(2_000)
    driver.asks(driver.request("a", LEAVE_EPOCH))
    driver.asks(joining(driver, "b"))
    driver.passes(2_999)
    assert targets(driver) == 0
    driver.passes(1)
    assert set(driver.group.target.members) == {"b"}


def test_a_member_is_asked_to_compute_only_once_the_wait_is_over(
    driver: CoordinatorDriver,
) -> None:
    assert told(driver.asks(driver.joining("a")))["a"][0] == Error.NONE.value
    driver.beat("a")
    driver.passes(2_999)
    assert told(driver.passes(1))["a"][0] == ASKED


def test_a_delay_that_is_taken_back_ends_the_wait(driver: CoordinatorDriver) -> None:
    driver.asks(joining(driver, "a"))
    driver.send(ConfigureGroup("connect", {DELAY: "0"}))
    driver.passes(0)
    assert targets(driver) == driver.group.group_epoch


def test_a_restart_of_the_coordinator_ends_the_wait(driver: CoordinatorDriver) -> None:
    driver.asks(joining(driver, "a"))
    driver.open()
    driver.asks(joining(driver, "a"))
    assert targets(driver) == driver.group.group_epoch
