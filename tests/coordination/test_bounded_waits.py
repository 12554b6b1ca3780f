"""No promise waits longer than it was to wait, whatever the wall clock does, and whoever restarts.

Counted from when a process of the coordinator has seen it first, on the steady clock.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.commands import ExpireSession
from fairlead.actors.messages.computing import Install, Prepare, PrepareReply
from fairlead.actors.messages.orders import Cordon, Expect
from fairlead.events.model import Why
from fairlead_tests.coordination.driver import SESSION_MS, SETTINGS, CoordinatorDriver
from fairlead_tests.decider import Decider, resources

DELAY_MS, WITHIN_MS, BACKOFF_MS = 300_000, 60_000, 5_000
HOUR_MS, TEN_YEARS_MS = 3_600_000, 10 * 365 * 86_400_000
STEP_MS = 1_000
A = resources("A")


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[CoordinatorDriver]:
    """A group of `a`, which runs connector A, and `b`; lost work waits for 300 s."""
    driver = CoordinatorDriver.at(tmp_path)
    driver.settings = replace(SETTINGS, max_delay_ms=DELAY_MS)
    driver.open()
    driver.put("A")
    for member in "ab":
        driver.asks(driver.joining(member))
    driver.compute("a")
    driver.beat("a")
    driver.asks(driver.request("a", owned=tuple(A)))
    driver.beat("b")
    assert driver.group.owner == dict.fromkeys(A, "a")
    yield driver
    driver.close()


def restart(driver: CoordinatorDriver) -> None:
    """Begin anew from the log, and look at once at what time it is."""
    driver.open()
    driver.passes(0)


def lose_a(driver: CoordinatorDriver) -> None:
    """Let `a` fall silent, and `b` compute what becomes of its work."""
    for _ in range(3):
        driver.beat("b")
        driver.passes(SESSION_MS // 3)
    driver.beat("b")
    driver.passes(SESSION_MS // 3)
    assert set(driver.group.members) == {"b"}
    driver.compute("b")


def waits(driver: CoordinatorDriver, longest_ms: int) -> int:
    """Return for how long the parked work waits, with `b` there all the time."""
    since_ms = driver.now_ms
    while not driver.group.schedule.fired:
        assert driver.now_ms - since_ms <= longest_ms, "it waits on and on"
        driver.beat("b")
        driver.passes(STEP_MS)
    return driver.now_ms - since_ms


def test_a_wall_clock_that_is_set_back_does_not_stall_parked_work(
    driver: CoordinatorDriver,
) -> None:
    lose_a(driver)
    driver.wall_jump_ms = -HOUR_MS
    waits(driver, DELAY_MS + STEP_MS)
    assert driver.group.schedule.fired == A
    driver.compute("b")
    driver.beat("b")
    assert driver.group.owner == dict.fromkeys(A, "b")


@pytest.mark.parametrize("jump_ms", [-TEN_YEARS_MS, -HOUR_MS, -DELAY_MS // 2, 0])
@pytest.mark.parametrize("elapsed_ms", [0, DELAY_MS // 2])
def test_parked_work_waits_no_longer_than_its_delay_from_the_restart_on(
    driver: CoordinatorDriver, jump_ms: int, elapsed_ms: int
) -> None:
    lose_a(driver)
    assert driver.group.schedule.parked.keys() == A
    driver.now_ms += elapsed_ms
    driver.wall_jump_ms = jump_ms
    restart(driver)
    assert waits(driver, DELAY_MS) <= DELAY_MS


def test_parked_work_whose_clock_went_forward_waits_no_longer_for_that(
    driver: CoordinatorDriver,
) -> None:
    driver.wall_jump_ms = TEN_YEARS_MS
    lose_a(driver)
    driver.wall_jump_ms = 0
    restart(driver)
    assert waits(driver, DELAY_MS) == DELAY_MS


def test_a_later_crash_shares_no_deadline_that_the_clock_has_put_off() -> None:
    decider = Decider(GroupSettings(max_delay_ms=DELAY_MS))
    decider.configure("A A-0 A-1")
    for member_id in ("W1", "W2", "W3"):
        decider.join(member_id)
        decider.settle()
    decider.now_ms = TEN_YEARS_MS
    decider.carry_out(ExpireSession("W1"))
    decider.now_ms = HOUR_MS
    decider.carry_out(ExpireSession("W2"))
    deadlines = {each: loss.deadline_ms for each, loss in decider.group.losses.items()}
    assert deadlines == {"W1": TEN_YEARS_MS + DELAY_MS, "W2": HOUR_MS + DELAY_MS}


@pytest.mark.parametrize("restarts", [False, True])
def test_an_expectation_of_a_clock_that_was_ahead_ends_in_its_time(
    driver: CoordinatorDriver, *, restarts: bool
) -> None:
    driver.wall_jump_ms = TEN_YEARS_MS
    driver.send(Expect("connect", "a", WITHIN_MS))
    driver.wall_jump_ms = 0
    if restarts:
        restart(driver)
    for _ in range(WITHIN_MS // STEP_MS):
        assert driver.group.worker_orders.keys() == {"http://a"}
        driver.passes(STEP_MS)
        driver.beat("a")
        driver.beat("b")
    assert driver.group.worker_orders == {}


def test_a_worker_that_is_lost_is_expected_no_longer_than_was_ordered(
    driver: CoordinatorDriver,
) -> None:
    driver.wall_jump_ms = TEN_YEARS_MS
    driver.send(Expect("connect", "a", WITHIN_MS))
    driver.wall_jump_ms = 0
    driver.send(Cordon("connect", "a"))
    lose_a(driver)
    restart(driver)
    assert waits(driver, WITHIN_MS) <= WITHIN_MS


def test_a_lost_worker_is_expected_no_longer_when_the_clock_is_set_back_afterwards(
    driver: CoordinatorDriver,
) -> None:
    lose_a(driver)
    driver.wall_jump_ms = TEN_YEARS_MS
    driver.send(Expect("connect", "a", WITHIN_MS))
    driver.wall_jump_ms = 0
    restart(driver)
    assert waits(driver, WITHIN_MS) <= WITHIN_MS


@pytest.mark.parametrize("jump_ms", [-HOUR_MS, -30_000, -BACKOFF_MS, 0])
@pytest.mark.parametrize("restarts", [False, True])
def test_an_attempt_that_failed_is_repeated_after_its_back_off(
    driver: CoordinatorDriver, jump_ms: int, *, restarts: bool
) -> None:
    driver.put("B")
    epoch = driver.group.members["a"].current.member_epoch
    (prepared,) = driver.send(Prepare("connect", "a", epoch))
    assert isinstance(prepared.reply, PrepareReply)
    assert prepared.reply.snapshot is not None
    at_epoch = prepared.reply.snapshot.group_epoch
    driver.send(Install("connect", "a", epoch, at_epoch, None, "no luck"))
    assert driver.group.target.error == "no luck"
    driver.wall_jump_ms = jump_ms
    if restarts:
        restart(driver)
    for _ in range(BACKOFF_MS // STEP_MS):
        driver.passes(STEP_MS)
    assert driver.group.bump is not None
    assert driver.group.bump.cause.why is Why.ASSIGNOR_RETRY
