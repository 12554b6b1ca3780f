"""Who is asked to compute, and asked again, as its members hear it."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from fairlead.actors.group.computing import compute
from fairlead.actors.group.computing import elect as elect_module
from fairlead.actors.messages.computing import Install, Prepare, PrepareReply
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat
from fairlead.actors.messages.orders import ConfigureGroup
from fairlead.events.model import Cause, ClientAssignor, Why
from fairlead_tests.coordination.driver import HEARTBEAT_MS, REBALANCE_MS, CoordinatorDriver, told
from fairlead_tests.decider import resources


def asked_in_turn(driver: CoordinatorDriver, attempts: int) -> list[str]:
    """Let all members beat and none compute, until so many attempts failed; who was asked."""
    found: list[str] = []
    members = sorted(driver.group.members)
    while driver.group.target.failures < attempts:
        said = driver.passes(2_000)
        said += driver.asks(*(driver.joining(each) for each in members))
        for who, (error, _) in told(said).items():
            if error == Error.COMPUTE_ASSIGNMENT.value and who not in found[-1:]:
                found.append(who)
    return found


def test_all_that_took_too_long_are_asked_again_in_turn_after_a_failed_attempt(
    driver: CoordinatorDriver,
) -> None:
    for member in "abc":
        driver.asks(driver.joining(member))
    assert asked_in_turn(driver, 1) == ["a", "b", "c"]
    assert asked_in_turn(driver, 2) == ["a", "b", "c"]
    assert asked_in_turn(driver, 3) == ["a", "b", "c"]


def with_range(
    driver: CoordinatorDriver, member: str, low: int, high: int, version: int
) -> Heartbeat:
    """The join of a member whose assignor reads these versions and writes that one."""
    assignors = (ClientAssignor("balanced", low, high, version),)
    return replace(driver.joining(member), assignors=assignors)


def who_computes(driver: CoordinatorDriver) -> str:
    """Return who is given what it needs to compute."""
    for member_id, member in driver.group.members.items():
        (prepared,) = driver.send(Prepare("connect", member_id, member.current.member_epoch))
        if isinstance(prepared.reply, PrepareReply) and prepared.reply.error is Error.NONE:
            return member_id
    return ""


@pytest.fixture
def elections(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Count the elections from now on."""
    counted = list[object]()

    def elect(*asked: object) -> object:
        counted.append(asked)
        return real(*asked)

    real: Callable[..., object] = elect_module.elect
    monkeypatch.setattr(compute, "elect", elect)
    return counted


def test_a_plain_heartbeat_elects_nobody_while_somebody_computes(
    driver: CoordinatorDriver, elections: list[object]
) -> None:
    for member in "abc":
        driver.asks(driver.joining(member))
    assert len(elections) == 1
    for _ in range(3):
        driver.asks(*(driver.joining(member) for member in "abc"))
        driver.passes(HEARTBEAT_MS)
    assert len(elections) == 1


def test_while_computations_are_spaced_nobody_is_elected_until_the_next_may_begin(
    driver: CoordinatorDriver, elections: list[object]
) -> None:
    driver.settings = replace(driver.settings, assignment_interval_ms=1_000)
    driver.open()
    driver.put("A")
    driver.asks(driver.joining("a"))
    driver.compute("a")
    assert len(elections) == 1, "the first begins at once"
    for member in "bc":
        assert told(driver.asks(driver.joining(member))) == {member: ("NONE", "")}
    driver.beat("a")
    assert driver.beat("a") == [], "there is nothing to tell it yet"
    driver.passes(999)
    assert (len(elections), driver.group.assignment_epoch) == (1, 1)
    assert told(driver.passes(1))["a"][0] == "COMPUTE_ASSIGNMENT", "one for both that joined"
    assert len(elections) == 2
    driver.compute("a")
    assert driver.group.assignment_epoch == driver.group.group_epoch == 3


def test_an_interval_that_is_taken_back_keeps_nobody_waiting(driver: CoordinatorDriver) -> None:
    driver.send(ConfigureGroup("connect", {"assignment.interval.ms": "2147483647"}))
    driver.asks(driver.joining("a"))
    driver.compute("a")
    driver.put("A")
    driver.passes(5_000)
    assert driver.group.assignment_epoch < driver.group.group_epoch
    driver.send(ConfigureGroup("connect", {"assignment.interval.ms": None}))
    driver.passes(1)
    assert who_computes(driver) == "a"


def test_another_in_place_of_one_that_went_need_not_wait_for_the_interval(
    driver: CoordinatorDriver,
) -> None:
    driver.settings = replace(driver.settings, assignment_interval_ms=60_000)
    driver.open()
    for member in "ab":
        driver.asks(driver.joining(member))
    driver.asks(driver.request("a", -1))
    assert who_computes(driver) == "b"


def test_a_wall_clock_that_jumps_neither_times_a_computation_out_nor_lets_it_run_on(
    driver: CoordinatorDriver,
) -> None:
    for member in "ab":
        driver.asks(driver.joining(member))
    computes = list[str]()
    for jump_ms in (3_600_000, -3_600_000):
        driver.wall_jump_ms = jump_ms
        for _ in range(REBALANCE_MS // 2 // 5_000):
            computes.append(who_computes(driver))
            driver.passes(5_000)
            driver.asks(*(driver.joining(member) for member in "ab"))
    assert [*computes, who_computes(driver)] == [*"a" * 12, "b"]


def test_a_wall_clock_that_is_set_back_stalls_a_retry_no_longer_than_the_longest_back_off(
    driver: CoordinatorDriver,
) -> None:
    driver.asks(driver.joining("a"))
    (prepared,) = driver.send(Prepare("connect", "a", 0))
    assert isinstance(prepared.reply, PrepareReply)
    driver.send(Install("connect", "a", 0, 1, None, "no luck"))
    driver.passes(4_999)
    assert driver.group.group_epoch == 1
    driver.wall_jump_ms = -3_600_000
    driver.passes(1)
    assert (driver.group.group_epoch, driver.group.bump and driver.group.bump.cause) == (
        2,
        Cause(Why.ASSIGNOR_RETRY),
    )


def test_if_nobody_qualifies_after_a_departure_the_coordinator_computes_itself(
    driver: CoordinatorDriver,
) -> None:
    driver.put("A")
    driver.asks(with_range(driver, "a", 0, 9, 5))
    driver.compute("a")
    driver.asks(with_range(driver, "b", 0, 3, 1))
    driver.asks(with_range(driver, "c", 4, 6, 6))
    driver.compute("a")
    driver.asks(driver.request("a", -1))
    target = driver.group.target
    assert (target.assignment_epoch, target.assignor, target.computed_by) == (
        driver.group.group_epoch,
        "uniform",
        "coordinator",
    )
    assert target.members == {"b": resources("A"), "c": resources("")}
    said = told(driver.asks(with_range(driver, "a", 0, 9, 5)))
    assert said["a"][0] == Error.COMPUTE_ASSIGNMENT.value, "who is able is asked again"
